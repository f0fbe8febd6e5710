"""Reads, performs and summarizes experiments that a file declares."""
