"""Other programs as a second opinion."""
