"""Application messages, the sizes that are slow, and what the rules of stacks predict."""
