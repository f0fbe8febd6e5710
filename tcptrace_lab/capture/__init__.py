"""Reads, converts and annotates capture files. `atm` converts TCP captures to captures of an ATM link."""
