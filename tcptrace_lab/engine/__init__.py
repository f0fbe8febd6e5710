"""The engine's tables as lazy frames: read, read again, put in order, and kept within a bounded amount of memory."""
