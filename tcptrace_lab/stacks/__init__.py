"""What TCP stacks do, as rules that can be run: which message sizes stall, and which buffers can lock a stream (`ranges`)."""
