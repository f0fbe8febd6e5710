"""Kernel records about sockets, written by hand."""
