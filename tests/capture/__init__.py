"""Files that captures are in."""
