"""The report, without a browser."""
