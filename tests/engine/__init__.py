"""The engine's tables, whatever their size."""
