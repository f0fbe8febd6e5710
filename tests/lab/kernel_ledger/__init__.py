"""The kernel's own ledger of a sender, by its trace events."""
