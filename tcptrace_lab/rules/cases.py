"""Special cases of a direction, in which what holds it up is told in other words than usual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab import rates
from tcptrace_lab.rules.rule import Case
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = tuple(
    f"{side}_{name}" for side in SIDES for name in ("segments", "retransmitted_segments", "spurious_retransmissions", "read_windows")
)
"""What they are known by, of `schema.CONNECTIONS`."""


def of(row: Mapping[str, Any], side: str) -> frozenset[Case]:
    """The cases that hold for what `side` (`client` or `server`) sends, by a row with `COLUMNS`."""
    (other,) = SIDES.keys() - {side}
    resent = row[f"{side}_retransmitted_segments"]
    holds = {
        Case.UNANSWERED: not row[f"{other}_segments"],
        Case.SLOW_READER: (row[f"{side}_read_windows"] or 0) >= rates.LEAST_SAMPLES,
        Case.NEEDLESS: bool(resent) and row[f"{side}_spurious_retransmissions"] == resent,
    }
    return frozenset(case for case, it_does in holds.items() if it_does)
