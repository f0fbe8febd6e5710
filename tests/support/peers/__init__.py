"""Helpers that compare our results with those of other programs."""
