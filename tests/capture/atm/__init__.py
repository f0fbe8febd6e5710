"""TCP over ATM."""
