"""A second implementation of the figures of UDP flows, in plain Python.

It shares no code with the engine. It follows the definitions and reads one datagram after the other.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

BUCKET = 0.001
"""Relative tolerance of a quantile."""


@dataclass
class Direction:
    """The datagrams that one side of a flow sent."""

    times_ns: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    fragmented: int = 0
    gaps_ns: list[int] = field(default_factory=list)
    ip_ids: list[int] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Return the columns of `schema.FLOWS` for this direction. Their names lack the direction's prefix."""
        lasting_ns = max(self.times_ns) - min(self.times_ns) if self.times_ns else 0
        missing, reordered = told_by(self.ip_ids)
        mean_ns = statistics.fmean(self.gaps_ns) if self.gaps_ns else 0
        return {
            "datagrams": len(self.sizes),
            "payload_bytes": sum(self.sizes),
            "fragmented_datagrams": self.fragmented,
            "min_payload_bytes": min(self.sizes, default=None),
            "mean_payload_bytes": sum(self.sizes) / len(self.sizes) if self.sizes else None,
            "max_payload_bytes": max(self.sizes, default=None),
            "distinct_sizes": len(set(self.sizes)),
            "first_ts_ns": min(self.times_ns, default=None),
            "last_ts_ns": max(self.times_ns, default=None),
            "rate_bps": sum(self.sizes) * 8e9 / lasting_ns if lasting_ns else None,
            "gap_p50_ns": nearest_rank(self.gaps_ns, 0.50),
            "gap_p95_ns": nearest_rank(self.gaps_ns, 0.95),
            "gap_max_ns": max(self.gaps_ns, default=None),
            "gap_variation": statistics.pstdev(self.gaps_ns) / mean_ns if len(self.gaps_ns) > 1 and mean_ns else None,
            "missing_datagrams": missing,
            "reordered_datagrams": reordered,
            "loss_known_by": None if missing is None else "ip_id",
        }


def flows(datagrams: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the columns of `schema.FLOWS` for each flow, without the endpoints.

    `datagrams` are rows of `schema.DATAGRAMS`, in order.
    """
    sides: dict[tuple[int, bool], Direction] = {}
    echoes_ns: dict[int, list[int]] = {}
    for row in datagrams:
        for from_client in (True, False):
            sides.setdefault((row["flow"], from_client), Direction())
        echoes = echoes_ns.setdefault(row["flow"], [])
        side = sides[row["flow"], row["from_client"]]
        if row["ts_ns"] is not None:
            side.times_ns.append(row["ts_ns"])
        side.sizes.append(row["payload_bytes"])
        side.fragmented += row["fragments"] > 1
        own_ns, other_ns = row["since_previous_ns"], row["since_other_ns"]
        if own_ns is not None and own_ns >= 0:
            side.gaps_ns.append(own_ns)
        if row["ip_id"] is not None:
            side.ip_ids.append(row["ip_id"])
        if not row["from_client"] and other_ns is not None and other_ns >= 0 and (own_ns is None or own_ns > other_ns):
            echoes.append(other_ns)
    found: dict[int, dict[str, Any]] = {}
    for flow, echoes in echoes_ns.items():
        found[flow] = {
            "echo_samples": len(echoes),
            "echo_min_ns": min(echoes, default=None),
            "echo_p50_ns": nearest_rank(echoes, 0.50),
            "echo_p95_ns": nearest_rank(echoes, 0.95),
            "echo_max_ns": max(echoes, default=None),
        }
        for prefix, from_client in (("client", True), ("server", False)):
            found[flow] |= {f"{prefix}_{name}": value for name, value in sides[flow, from_client].figures().items()}
    return found


def nearest_rank(values: list[int], share: float) -> int | None:
    """Return the quantile `share` of `values` (nearest rank)."""
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else None


def told_by(ip_ids: list[int]) -> tuple[int | None, int | None]:
    """Return the numbers of missing and of late datagrams. They are derived from the IP IDs."""
    ip_ids = without_copies(ip_ids)
    steps = [(later - earlier + 32_768) % 65_536 - 32_768 for earlier, later in pairwise(ip_ids)]
    if len(steps) < 10 or sum(1 <= step <= 1_000 for step in steps) < 0.95 * len(steps):
        return None, None
    places = [0]
    for step in steps:
        places.append(places[-1] + step)
    late = sum(places[at] < max(places[:at]) for at in range(1, len(places)))
    if sum(step == 1 for step in steps) < 0.90 * len(steps):
        return None, late
    return max(max(places) - min(places) + 1 - (len(places) - steps.count(0)), 0), late


def without_copies(ip_ids: list[int]) -> list[int]:
    """Return the IP IDs without duplicates.

    An ID is a duplicate if it was among the 64 numbers up to the highest so far.
    """
    kept: list[int] = []
    place, seen = 0, set[int]()
    for ip_id in ip_ids:
        here = place + (ip_id - kept[-1] + 32_768) % 65_536 - 32_768 if kept else 0
        if here in seen and max(seen) - here < 64:
            continue
        kept.append(ip_id)
        place = here
        seen.add(here)
    return kept


def near(name: str, value: Any) -> Any:  # noqa: ANN401  (any cell)
    """Return the exact value, or a `pytest.approx` with the engine's tolerance for this figure."""
    if value is None:
        return None
    if "_p50_" in name or "_p95_" in name:
        return pytest.approx(value, rel=BUCKET, abs=1)
    if name.endswith("mean_payload_bytes"):
        return pytest.approx(value, abs=0.5)
    if name.endswith("variation"):
        return pytest.approx(value, rel=1e-5, abs=1e-5)
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
