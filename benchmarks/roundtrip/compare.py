"""Compares one setting: the setting is simulated, captured at each sender and analyzed, and the ledgers are compared."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roundtrip.seen import own, seen
from tcptrace_lab.engine.segments import read
from tcptrace_lab.schema import CAUSES
from tcptrace_lab.simulation import At, write_capture
from tcptrace_lab.stacks import simulate

if TYPE_CHECKING:
    from roundtrip.seen import Span
    from roundtrip.settings import Drawn

WITHIN = 0.02
"""Maximum share of a direction's life with another cause."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One direction of one setting.

    Attributes:
        from_client: whether the client sends this direction.
        off_share: share of the direction's life for which the two ledgers give different causes.
        off_seen_share: the share that remains if only the visible part of the model's ledger is compared (`seen`).
        confused: shares of the life by pairs of causes. The first cause is that of the visible part, and the second is our cause.
    """

    from_client: bool
    off_share: float
    off_seen_share: float
    confused: dict[tuple[str, str], float]

    @property
    def right(self) -> bool:
        """Whether the ledgers agree, or agree as far as a capture can show the model's ledger."""
        return min(self.off_share, self.off_seen_share) <= WITHIN


def compare(drawn: Drawn) -> list[Compared]:
    """Return both directions that carry data, each compared through a capture at its own sender."""
    run = simulate(drawn.setting, truth=True)
    found = []
    for from_client, at in ((True, At.CLIENT), (False, At.SERVER)):
        if not any(packet.payload_bytes for packet in run.packets if packet.from_client == from_client):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "run.pcap")
            with path.open("wb") as stream:
                write_capture(run, drawn.setting, stream, at=at)
            sums = read([str(path)], worth=()).accounts.collect().row(0, named=True)
        side = "client" if from_client else "server"
        told = Counter({cause: ns for cause in CAUSES if (ns := sums[f"{side}_{cause.replace('-', '_')}_ns"])})
        whole, shown = (_sums(spans) for spans in (own(run, from_client=from_client), seen(run, drawn.setting, from_client=from_client)))
        off_share, _ = _apart(whole, told)
        off_seen_share, confused = _apart(shown, told)
        found.append(Compared(from_client, off_share, off_seen_share, confused))
    return found


def _sums(spans: list[Span]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for start_ns, end_ns, cause in spans:
        sums[cause] += end_ns - start_ns
    return sums


def _apart(truth: Counter[str], told: Counter[str]) -> tuple[float, dict[tuple[str, str], float]]:
    """Return by how much the ledgers differ, and the confused causes, largest first.

    The difference is half of the sum of all differences, as a share of the life.
    """
    life = sum(truth.values()) or 1
    less = {cause: (truth[cause] - told[cause]) / life for cause in truth if truth[cause] > told[cause]}
    more = {cause: (told[cause] - truth[cause]) / life for cause in told if told[cause] > truth[cause]}
    confused = {(one, other): min(a, b) for one, a in less.items() for other, b in more.items()}
    return sum(abs(truth[cause] - told[cause]) for cause in truth | told) / 2 / life, confused
