"""The benchmarks measure what they claim to measure."""
