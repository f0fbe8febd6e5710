"""Application messages, the slow message sizes of a capture, and the slow sizes that the rules of TCP stacks predict."""
