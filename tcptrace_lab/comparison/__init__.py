"""Before and after, or several repetitions: what differs between captures, by how much, and whether that can be chance.

    analyses → `run` (what is compared of each capture) → `match` (which services are the same) → `judge` (means, intervals, tests; with
    `student`) and `findings` (came, went, stayed) → `document` (the JSON)

`compare` is that road.
"""

from __future__ import annotations

from tcptrace_lab.comparison.document import document
from tcptrace_lab.comparison.road import Comparison, compare

__all__ = ["Comparison", "compare", "document"]
