"""Which packets of a direction the path lost, counted as a relay counts them: from 0, every packet of the direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.schema.words import RESENT

if TYPE_CHECKING:
    from tcptrace_lab.replay.evidence import Evidence

NEEDED = tuple(kind for kind in RESENT if kind != "spurious")
"""Kinds of `schema.SEGMENTS` that say: what went before was lost."""


def lost_packets(evidence: Evidence, *, from_client: bool) -> tuple[int, ...]:
    """Indexes of the packets that were sent and had to be sent again: of each resend, the last packet before it with its first byte.

    They are known where the capture was made before the path lost anything: at the sender, or where the loss shows no hole.
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
    """Share of the data segments that were sent again for a reason: what is known where the losses themselves are not."""
    side = "client" if from_client else "server"
    row = evidence.row
    sent = row[f"{side}_data_segments"] or 0
    resent = (row[f"{side}_retransmitted_segments"] or 0) - (row[f"{side}_spurious_retransmissions"] or 0)
    return max(0.0, resent / sent) if sent else 0.0
