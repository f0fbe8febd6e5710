"""From frames to segments."""
