"""Computes the index of an archive (overview, outliers, regressions), and writes its page."""
