"""The model's own ledger against the one that is read off its captures, over many settings drawn at random."""
