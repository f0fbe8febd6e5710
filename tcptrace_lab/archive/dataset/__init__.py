"""The tables of an archive: written, asked, and listed."""
