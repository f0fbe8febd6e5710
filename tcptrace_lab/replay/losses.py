"""Finds the packets that the path lost. Packets are numbered from 0 in each direction, as in the relay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.schema.categories import RESENT

if TYPE_CHECKING:
    from tcptrace_lab.replay.evidence import Evidence

NEEDED = tuple(kind for kind in RESENT if kind != "spurious")
"""Kinds of retransmissions in `schema.SEGMENTS` that show a loss. A spurious retransmission shows none."""


def lost_packets(evidence: Evidence, *, from_client: bool) -> tuple[int, ...]:
    """Return the indices of the lost packets.

    Each necessary retransmission repeats a lost packet: the last earlier packet that starts with the retransmitted byte. The capture must
    contain the lost packets, as a capture at the sender does. Otherwise, the result is incomplete.
    """
    own = evidence.segments.filter(pl.col("from_client") == from_client)
    lost: set[int] = set()
    carriers: dict[int, int] = {}
    for index, (kind, seq, payload, flags) in enumerate(own.select("kind", "seq", "payload_bytes", "flags").iter_rows()):
        if seq is None:
            continue
        occupied = (payload or 0) + bool(flags & 2) + bool(flags & 1)
        before = carriers.get(seq)
        if kind in NEEDED and occupied and before is not None:
            lost.add(before)
        if occupied:
            carriers[seq] = index
    return tuple(sorted(lost))


def loss_share(evidence: Evidence, *, from_client: bool) -> float:
    """Return the share of data segments that had to be retransmitted. The share estimates the loss rate if the lost packets are unknown."""
    side = "client" if from_client else "server"
    row = evidence.row
    sent = row[f"{side}_data_segments"] or 0
    resent = (row[f"{side}_retransmitted_segments"] or 0) - (row[f"{side}_spurious_retransmissions"] or 0)
    return max(0.0, resent / sent) if sent else 0.0
