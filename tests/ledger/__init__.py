"""The time ledger."""
