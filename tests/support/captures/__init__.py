"""Helpers that make, change or find captures."""
