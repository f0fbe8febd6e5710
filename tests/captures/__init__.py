"""The captures of `captures/`, and those of others."""
