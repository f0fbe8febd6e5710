"""Writes a Wireshark profile, and a post-dissector that shows the cause of each frame's wait."""
