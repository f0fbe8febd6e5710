"""Which files make which captures, and whether they are complete."""
