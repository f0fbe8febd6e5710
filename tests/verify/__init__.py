"""Tests of `verify`, which compares our results with those of other programs."""
