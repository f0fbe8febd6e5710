"""Live transfers and experiments."""
