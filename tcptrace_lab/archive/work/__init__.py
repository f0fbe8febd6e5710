"""Runs the tasks of `batch` in local processes or on a cluster. A lock allows only one run at a time per archive."""
