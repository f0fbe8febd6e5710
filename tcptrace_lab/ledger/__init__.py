"""The ledger's rows: departures, stalls, and the rules of other packages."""
