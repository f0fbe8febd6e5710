"""Comparisons of captures."""
