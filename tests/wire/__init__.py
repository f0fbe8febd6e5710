"""Tests of how the engine finds segments in frames."""
