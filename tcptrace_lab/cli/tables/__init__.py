"""Formats results for the terminal, as tables and lines of text that fit into 80 columns."""
