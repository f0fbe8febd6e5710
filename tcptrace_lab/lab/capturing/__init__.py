"""Runs dumpcap."""
