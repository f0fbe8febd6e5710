"""A kernel's reports about its sockets, written by hand."""
