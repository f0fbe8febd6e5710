"""Transactions of HTTP and FTP."""
