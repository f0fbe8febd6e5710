"""Experiments declared in files: how they are read, performed, and summarized."""
