"""The commands. Each command has a file with its options and one call."""
