"""Chooses the fault that the verdict describes.

The costs of faults are added up by family (`family_of`). A fault counts less if its direction has little data.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tcptrace_lab import causes
from tcptrace_lab.causes.rule import Case
from tcptrace_lab.findings import one_cause
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers
from tcptrace_lab.verdict.direction import OF_LOSSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcptrace_lab.findings.finding import Finding
    from tcptrace_lab.verdict.result import Analysed

OF_READER: Final = one_cause.RECEIVERS_OWN
"""Causes that count as one fault if the receiving application reads slowly: the window is zero or too small."""

MIN_WEIGHT: Final = 0.1
"""Minimum weight of a fault in the choice (a heuristic). The weight is the square root of a share: the direction's data, divided by the
data of the largest direction. A direction with a hundredth of the data, or less, has this weight."""

LITTLE_SHARE: Final = 0.1
"""A direction with a smaller share of the data of the largest direction carries little data (a heuristic)."""


class Sent:
    """How much data each direction of each connection sent, and how much the whole capture contains."""

    def __init__(self, analysis: Analysed) -> None:
        """Query the sizes."""
        self._conns, *sides = analysis.connections.select("conn", *(f"{side}_unique_bytes" for side in SIDES)).collect().get_columns()
        self._sides = dict(zip(SIDES.values(), sides, strict=True))
        self.all_bytes = sum(int(side.sum() or 0) for side in sides)
        self.largest_bytes = max(int(side.max() or 0) for side in sides)  # type: ignore[arg-type]

    def by(self, conn: int, *, from_client: bool) -> int:
        """Return the number of bytes that this direction sent. Retransmitted bytes count once."""
        return int(self._sides[from_client][int(self._conns.index_of(conn) or 0)] or 0)

    def weight(self, fault: Finding) -> float:
        """Return the weight of a fault, which grows with the data of its direction.

        If the fault costs both directions time, the direction with more data counts.
        """
        if fault.conn is None or not self.largest_bytes:
            return 1.0
        own = [self.by(fault.conn, from_client=from_client) for from_client in SIDES.values() if is_of(fault, from_client)]
        return max(math.sqrt(max(own) / self.largest_bytes), MIN_WEIGHT)

    def is_little(self, fault: Finding) -> bool:
        """Return whether the direction of a fault carries little data, compared with the largest direction (`LITTLE_SHARE`)."""
        return self.weight(fault) < math.sqrt(LITTLE_SHARE)

    def why(self, chosen: Sequence[Finding], faults: Sequence[Finding]) -> str:
        """Return why the direction of `chosen` was chosen: `most fixable time (477 ms) and most data (400 kB of 413 kB)`."""
        conn, from_client, cost_ns = chosen[0].conn, bool(chosen[0].from_client), cost_ns_of(chosen)
        sent = 0 if conn is None else self.by(conn, from_client=from_client)
        lost: dict[tuple[int | None, bool | None], int] = {}
        for fault in faults:
            lost[fault.conn, fault.from_client] = lost.get((fault.conn, fault.from_client), 0) + (fault.cost_ns or 0)
        is_most = lost[conn, chosen[0].from_client] == max(lost.values())
        words = f"{'most ' if is_most else ''}fixable time ({numbers.duration(cost_ns)})"
        return f"{words} and {self.data(sent)}" if sent else words

    def data(self, sent: int) -> str:
        """Return how much data was sent: `most data (400 kB of 413 kB)`."""
        return f"{'most ' if sent == self.largest_bytes else ''}data ({numbers.size(sent)} of {numbers.size(self.all_bytes)})"


def is_of(fault: Finding, from_client: bool) -> bool:  # noqa: FBT001  (the column `from_client` of the tables)
    """Return whether a fault costs this direction time. The fault belongs to this direction, or delays both directions at once."""
    advices = [causes.of_cause(cause).advice for cause in fault.causes]
    return fault.from_client == from_client or any(advice is not None and advice.of_client_alone for advice in advices)


def heaviest(faults: Sequence[Finding], sent: Sent) -> tuple[Finding, ...]:
    """Return the findings on the family of faults that costs most, in the direction where this family costs most.

    Each cost is multiplied by its weight (`Sent.weight`).
    """
    total: dict[frozenset[str], float] = {}
    directions: dict[tuple[frozenset[str], int | None, bool | None], list[Finding]] = {}
    for fault in faults:
        family = family_of(fault)
        total[family] = total.get(family, 0.0) + (fault.cost_ns or 0) * sent.weight(fault)
        directions.setdefault((family, fault.conn, fault.from_client), []).append(fault)
    best = max(total, key=lambda each: total[each])
    own = [found for (family, *_), found in directions.items() if family == best]
    heaviest = max(own, key=lambda found: cost_ns_of(found) * sent.weight(found[0]))
    return tuple(heaviest)


def _totals(faults: Iterable[Finding]) -> dict[frozenset[str], int]:
    """Return the cost of each family of faults, in the order in which the families first appear."""
    total: dict[frozenset[str], int] = {}
    for fault in faults:
        total[family_of(fault)] = total.get(family_of(fault), 0) + (fault.cost_ns or 0)
    return total


def family_of(fault: Finding) -> frozenset[str]:
    """Return the family of a fault: the causes that count as one fault with the causes of this finding."""
    if fault.causes & OF_LOSSES:
        return OF_LOSSES
    return OF_READER if Case.SLOW_READER in fault.cases else fault.causes


def cost_ns_of(faults: Iterable[Finding]) -> int:
    """Return the total cost of these findings."""
    return sum(fault.cost_ns or 0 for fault in faults)


def as_much(faults: Sequence[Finding], best: Finding) -> str:
    """Return text on another fault that costs the whole capture as much as `best`; empty if there is none.

    If there are several, the text names the first in the order of the findings.
    """
    total = _totals(faults)
    other = next((one for one in faults if family_of(one) != family_of(best) and total[family_of(one)] == total[family_of(best)]), None)
    return f"; another problem costs as much: {other.title}" if other else ""
