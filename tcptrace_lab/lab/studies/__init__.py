"""Experiments that a file declares: reads, performs and summarizes them."""
