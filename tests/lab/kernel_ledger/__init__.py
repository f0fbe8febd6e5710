"""Tests of the kernel's ledger: the reason for each wait of a sender, from the kernel's trace events."""
