"""The rules in which families of TCP stacks differ: send buffer, Nagle's algorithm, delayed ACKs, advertised window."""
