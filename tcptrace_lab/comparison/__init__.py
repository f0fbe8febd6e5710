"""`compare`: how groups of captures differ (before and after, or several repetitions), by how much, and whether chance explains it.

    analyses → `run` (what is compared of each capture) → `match` (which services correspond) → `significance` (means, confidence
    intervals and tests, computed by `t_test`) and `findings` (which findings appeared, disappeared or stayed) → `document` (the JSON)
    and `texts` (the text)

`compare` runs all of these steps; `figures` lists the compared quantities.
"""

from __future__ import annotations

from tcptrace_lab.comparison.comparison import Comparison, compare
from tcptrace_lab.comparison.document import document

__all__ = ["Comparison", "compare", "document"]
