"""Analysis → a Wireshark profile, and a post-dissector that gives each frame its cause."""
