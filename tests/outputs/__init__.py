"""Tests of the files that are written for other programs."""
