"""Declared experiments: read, performed, and summed up."""
