"""The engine's tables, at any size."""
