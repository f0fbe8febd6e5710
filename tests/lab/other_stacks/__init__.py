"""Transfers by other TCP stacks."""
