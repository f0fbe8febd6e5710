"""`compare`: how groups of captures differ (before and after, or several repetitions), by how much, and whether chance explains it.

    analyses → `run` (what is compared of each capture) → `match` (which services correspond) → `judge` (means, confidence intervals and
    tests, computed by `student`) and `findings` (which findings came, went or stayed) → `document` (the JSON) and `words` (the text)

`compare` runs all of these steps; `figures` lists the compared quantities.
"""

from __future__ import annotations

from tcptrace_lab.comparison.document import document
from tcptrace_lab.comparison.road import Comparison, compare

__all__ = ["Comparison", "compare", "document"]
