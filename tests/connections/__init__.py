"""What is said of segments and connections."""
