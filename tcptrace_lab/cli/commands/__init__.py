"""One file per command, each with its options and one call."""
