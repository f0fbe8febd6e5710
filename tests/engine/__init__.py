"""The engine's tables, for captures of any size."""
