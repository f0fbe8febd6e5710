"""Formats results as tables and lines of text for the terminal, which fit into 80 columns."""
