"""Other programs, with which results are compared."""
