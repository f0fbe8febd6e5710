"""Numbers and texts for people: written, read, and made safe to show."""
