"""Tables and lines of text for the terminal. They fit into 80 columns."""
