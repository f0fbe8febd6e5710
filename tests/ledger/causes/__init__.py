"""Tests of the ledger, one file for each cause of a wait."""
