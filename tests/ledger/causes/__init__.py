"""One file per cause of waiting."""
