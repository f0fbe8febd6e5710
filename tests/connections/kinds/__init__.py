"""Kinds of segments, in exchanges written by hand."""
