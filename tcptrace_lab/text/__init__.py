"""Numbers and texts for people: formatting, parsing, and escaping."""
