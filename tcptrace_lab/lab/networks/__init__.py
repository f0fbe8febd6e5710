"""Private networks, the paths in them, and what their logs say of each packet."""
