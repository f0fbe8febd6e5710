"""The published experiments, run through the models of stacks, beside what was measured then.

`python benchmarks/papers/run.py` runs them all and writes `benchmarks/papers/results.md`. Tests run smaller parts of the same functions.
"""
