"""Transfers by other TCP stacks than Linux', each through a tun device, with the stack's own state as the truth."""
