"""Models of stacks."""
