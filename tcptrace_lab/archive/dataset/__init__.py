"""The tables of an archive: how they are written, queried and listed."""
