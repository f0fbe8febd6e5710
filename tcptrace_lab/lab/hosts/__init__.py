"""The two hosts of a network: their sockets, their programs, and what the kernel reports about the sockets."""
