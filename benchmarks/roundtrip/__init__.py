"""Compares the model's own ledger with the ledger of its captures, over many random settings."""
