"""Runs the tasks of `batch` (hash a file, analyze a capture) in local processes or on a cluster, for one run at a time per archive."""
