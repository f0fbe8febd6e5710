"""What a kernel tells of its sockets, written by hand."""
