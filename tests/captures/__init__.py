"""The captures of `captures/`, and the shared captures of other projects."""
