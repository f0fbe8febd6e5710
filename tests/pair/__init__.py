"""Two captures of one transfer."""
