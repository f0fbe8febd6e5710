"""Messages and their sizes."""
