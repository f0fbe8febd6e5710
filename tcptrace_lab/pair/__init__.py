"""Two captures of one transfer: what the path between them did to every packet, and what the hosts behind them did.

    analyses of both → `packets` (what identifies each) → `connections` (which is which) → `match` and `clocks` (packet by packet, on one
    clock) → `between` (what became of each) → `figures` → `document` (the JSON)

`pair_captures` is that road.
"""

from __future__ import annotations

from tcptrace_lab.pair.document import document
from tcptrace_lab.pair.road import Pair, pair_captures

__all__ = ["Pair", "document", "pair_captures"]
