"""dumpcap, started and ended."""
