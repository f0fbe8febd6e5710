"""What the engine reports about segments and connections."""
