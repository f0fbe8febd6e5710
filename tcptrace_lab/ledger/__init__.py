"""Rows of the ledger: departures, stalls, and the rules of other packages."""
