"""Runs the engine and returns its tables as lazy frames, which are stored or read again so that memory stays limited."""
