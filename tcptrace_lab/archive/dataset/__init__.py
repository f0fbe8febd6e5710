"""Writes, queries and lists the tables of an archive."""
