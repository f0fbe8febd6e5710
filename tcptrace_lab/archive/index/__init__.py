"""The index of an archive: an overview, outliers, regressions, and the page."""
