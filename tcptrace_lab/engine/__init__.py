"""Runs the engine and returns its tables as lazy frames. To limit memory, rows are stored in files or read again."""
