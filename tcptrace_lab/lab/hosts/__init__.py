"""The two ends of a network: sockets, programs, and what the kernel reports about them."""
