"""Two captures of one transfer at two points: what the path between them did to each packet, and how long the hosts took.

    analyses of both → `packets` (identify each packet) → `connections` (match connections) → `match` and `clocks` (match packets; align
    the two clocks) → `packet_fates` (lost, delayed, reordered or only not captured) → `figures` (totals) → `document` (the JSON)

`pair_captures` runs all of these steps.
"""

from __future__ import annotations

from tcptrace_lab.pair.document import document
from tcptrace_lab.pair.pair import Pair, pair_captures

__all__ = ["Pair", "document", "pair_captures"]
