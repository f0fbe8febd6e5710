"""Application messages, the message sizes that are slow, and the slow sizes that the rules of TCP stacks predict."""
