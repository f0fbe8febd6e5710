"""Findings on the path, except loss: reordering, spurious retransmits, standing queues and congestion marks.

Columns of `schema.CONNECTIONS` show which connections have such problems. The segments of a few connections are read to find evidence
frames. The findings have no time cost of their own, because the ledger already counts the waits that such problems cause.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.causes import Confidence, send_buffer
from tcptrace_lab.causes.texts import spurious_retransmits
from tcptrace_lab.connections import late_originals
from tcptrace_lab.connections.rates import BITS_PER_BYTE, MIN_SAMPLES, NOISE_SHARE
from tcptrace_lab.engine import memory
from tcptrace_lab.findings.finding import Finding, Severity
from tcptrace_lab.schema import SIDES
from tcptrace_lab.schema.categories import CONFIDENCES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MOST = 20
"""Maximum number of directions that are reported per kind of finding."""

EVIDENCE_FRAMES = 20

MIN_TIMES = 3
"""Minimum number of reordered segments, spurious retransmits or congestion marks that is reported. Three of a kind are no coincidence
(docs/how-it-decides.md, 2.4)."""

NOTICED_SHARE = 0.01
"""Reordering and spurious retransmits of at least this share of the data segments have the severity low, else info (a heuristic)."""

QUEUE_NS, QUEUE_TIMES = 50_000_000, 2
"""Minimum queueing delay that is reported, and minimum ratio of the median RTT to the base RTT (heuristics)."""

HARMFUL_QUEUE_NS = 150_000_000
"""One-way delay that a conversation tolerates (ITU-T G.114). A queue that adds this delay is of medium severity."""

_QUEUE, _MARKED = "queue", "marked"

_REPORTED = ("out_of_order_segments", "spurious_retransmissions", "ce_segments", "cwr_segments")
_COUNTS = (*_REPORTED, "data_segments", "retransmitted_segments")
_TIMES = ("rtt_samples", "rtt_min_ns", "rtt_p50_ns", "rtt_p95_ns", "drained_acks", "drained_bytes", "drained_ns")
_DELIVERED = ("unique_bytes", "rtt_max_ns", "first_data_ts_ns", "last_data_ts_ns")


def findings(segments: pl.LazyFrame, connections: pl.LazyFrame, known_findings: Collection[Finding] = ()) -> tuple[Finding, ...]:
    """Return the findings on reordering, spurious retransmits, standing queues and congestion marks.

    Args:
        segments: rows of `schema.SEGMENTS`; read once, for the directions found.
        connections: rows of `schema.CONNECTIONS`; read once.
        known_findings: findings already reported. Spurious retransmits that cost time are not reported twice. The remedy for a queue does
            not ask for a smaller buffer if the send buffer is already the limit.

    Returns:
        Findings without a time cost, at most `MOST` of each kind.
    """
    rows = _suspects(connections)
    costly, small = (
        {(one.conn, one.from_client) for one in known_findings if one.id == name}
        for name in (spurious_retransmits.FINDING, send_buffer.FINDING)
    )
    late = _most(rows, "out_of_order_segments")
    again = [row for row in _most(rows, "spurious_retransmissions") if (row["conn"], row["from_client"]) not in costly]
    queued = [row for row in _most(rows, "queue_ns") if not _was_faster(row)]
    marked = _most([row | {"marks": max(row["ce_segments"], row["cwr_segments"])} for row in rows], "marks")
    frames = _frames(segments, [*late, *again, *queued, *marked])
    delays_ns = late_originals.delays_ns(segments, {(row["conn"], row["from_client"]) for row in again})

    def shown(row: Mapping[str, Any], what: str) -> Mapping[str, Any]:
        return frames.get((row["conn"], row["from_client"], what), {})

    return (
        *(_reordering(row, shown(row, "out_of_order")) for row in late),
        *(_needless(row, shown(row, "spurious"), delays_ns.get((row["conn"], row["from_client"]), 0)) for row in again),
        *(_queue(row, shown(row, _QUEUE), small_buffer=(row["conn"], row["from_client"]) in small) for row in queued),
        *(_marks(row, shown(row, _MARKED)) for row in marked),
    )


def _suspects(connections: pl.LazyFrame) -> list[dict[str, Any]]:
    """Return the directions with most reordering, spurious retransmits, marks or queueing delay, at most `MOST` of each kind.

    Each direction is a dictionary with `conn`, `from_client`, `_COUNTS`, `_TIMES`, `_DELIVERED` and `queue_ns`. A value in `_REPORTED` or
    `queue_ns` that is too small to report is 0.
    """
    (odd, needed), asked, kinds = _odd(), _asked(), (*_REPORTED, "queue_ns")
    found: list[dict[str, Any]] = []
    for batch in memory.batches(connections.filter(odd).select(needed)):
        for row in [] if batch.is_empty() else batch.select("conn", **asked).iter_rows(named=True):
            for side, from_client in SIDES.items():
                own = {name: row[f"{side}_{name}"] for name in (*_COUNTS, *_TIMES, *_DELIVERED, "queue_ns")}
                found.append({"conn": row["conn"], "from_client": from_client, **own})
        best = [_most(found, kind) for kind in kinds]
        found = list({(row["conn"], row["from_client"]): row for each in best for row in each}.values())
    return found


@cache
def _asked() -> Mapping[str, pl.Expr]:
    """Return the columns to read for both directions of a connection. Values too small to report are 0."""
    asked: dict[str, pl.Expr] = {}
    for side in SIDES:
        col = {name: pl.col(f"{side}_{name}") for name in (*_COUNTS, *_TIMES, *_DELIVERED)}
        added = col["rtt_p50_ns"] - col["rtt_min_ns"]
        col |= {name: pl.when(col[name] >= MIN_TIMES).then(col[name]).otherwise(0) for name in _REPORTED}
        col["queue_ns"] = pl.when(_stands(side).fill_null(value=False)).then(added).otherwise(0)
        asked |= {f"{side}_{name}": value for name, value in col.items()}
    return asked


@cache
def _odd() -> tuple[pl.Expr, list[str]]:
    """Return a filter for connections with reordering, spurious retransmits, marks or a standing queue, and the columns to read."""
    counted = (pl.col(f"{side}_{name}") >= MIN_TIMES for side in SIDES for name in _REPORTED)
    asked = {name for one in _asked().values() for name in one.meta.root_names()}
    return pl.any_horizontal(*counted, *map(_stands, SIDES)), ["conn", *sorted(asked)]


def _stands(side: str) -> pl.Expr:
    """Return whether the data of this endpoint met a standing queue, judged by the median RTT."""
    least, median = pl.col(f"{side}_rtt_min_ns"), pl.col(f"{side}_rtt_p50_ns")
    return (median - least >= QUEUE_NS) & (median >= QUEUE_TIMES * least) & (pl.col(f"{side}_drained_acks") >= MIN_SAMPLES)


def _was_faster(row: Mapping[str, Any]) -> bool:
    """Return whether data was delivered faster than a queue drained. In that case, a few long RTTs only looked like a queue."""
    delivering_ns = row["last_data_ts_ns"] - row["first_data_ts_ns"] + row["rtt_max_ns"] - row["rtt_min_ns"]
    return bool(row["drained_bytes"] * delivering_ns < (1 - NOISE_SHARE) * row["unique_bytes"] * row["drained_ns"])


def _most(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    found = [row for row in rows if row[name]]
    return sorted(found, key=lambda row: (-row[name], row["conn"], not row["from_client"]))[:MOST]


def _frames(segments: pl.LazyFrame, rows: list[dict[str, Any]]) -> dict[tuple[int, bool, str], dict[str, Any]]:
    """Return the first evidence frames of each direction and kind, and the lowest confidence of the verdicts on these frames.

    For a queue, the frames are the ACKs with the longest RTT.
    """
    if not rows:
        return {}
    col, conns = pl.col, sorted({row["conn"] for row in rows})
    kind = col("kind").cast(pl.String)
    odd = kind.is_in(["out_of_order", "spurious"])
    marked = ~odd & (col("ce") | col("ecn_signal").cast(pl.String).is_in(["reduced", "echo_reduced"]).fill_null(value=False))
    what = pl.when(odd).then(kind).when(marked).then(pl.lit(_MARKED)).otherwise(pl.lit(_QUEUE))
    sender = pl.when(odd | marked).then("from_client").otherwise(~col("from_client"))  # an ACK measures the RTT of the peer's segments
    found = (
        segments.filter(col("conn").is_in(conns) & (odd | marked | (col("rtt_ns") >= QUEUE_NS)))
        .group_by("conn", sender.alias("sender"), what.alias("what"))
        .agg(
            frames=col("frame").bottom_k(EVIDENCE_FRAMES // 2),
            others=col("evidence_frame").bottom_k_by("frame", EVIDENCE_FRAMES // 2),
            slowest=col("frame").top_k_by([col("rtt_ns").fill_null(0), "frame"], EVIDENCE_FRAMES // 2, reverse=[False, True]),
            sure=col("confidence").cast(pl.String).replace_strict({name: place for place, name in enumerate(CONFIDENCES)}).max(),
            by=col("retransmit_trigger").cast(pl.String).unique().drop_nulls(),
        )
        .collect()
    )
    return {(row["conn"], row["sender"], row["what"]): row for row in found.iter_rows(named=True)}


def _evidence(shown: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(sorted({frame for frame in (*shown.get("frames", ()), *shown.get("others", ())) if frame is not None}))


def _confidence(shown: Mapping[str, Any]) -> Confidence:
    return Confidence(CONFIDENCES[shown["sure"]]) if shown else Confidence.POSSIBLE


def _severity(count: int, of: int) -> Severity:
    return Severity.LOW if count >= NOTICED_SHARE * of else Severity.INFO


def _reordering(row: Mapping[str, Any], shown: Mapping[str, Any]) -> Finding:
    late, sent = row["out_of_order_segments"], row["data_segments"]
    return Finding(
        id="reordering",
        severity=_severity(late, sent),
        confidence=_confidence(shown),
        conn=row["conn"],
        from_client=row["from_client"],
        cost_ns=None,
        cost_share=None,
        title=f"{late:,} of {sent:,} segments arrived out of order: the path reorders them",
        mechanism=(
            "The receiver answers each out-of-order segment with a duplicate ACK. After three duplicate ACKs, or after SACK blocks, the "
            "sender takes the late segment for lost, retransmits it and slows down."
        ),
        evidence_frames=_evidence(shown),
        limits=(
            "The capture shows only reordering before the capture point. Would be disproved by: late segments that are retransmits, with a "
            "newer IP ID or TCP timestamp than the segments that arrived before them."
        ),
        remedy=(
            "find what spreads one connection over several paths: per-packet bonding or load balancing, parallel queues, wireless",
            *spurious_retransmits.REMEDY[1:],
        ),
        predicted_gain=None,
        source="RFC 4737; RFC 8985, 3.3; RFC 5681, 3.2",
    )


_WHY = {
    "fast": "duplicate ACKs or SACK blocks made them look lost: later segments had overtaken them",
    "recovery": "the sender assumed that they belonged to a loss from which it was recovering",
    "timeout": "their ACK arrived after the retransmission timer expired",
    "tail_probe": "their ACK arrived after the tail-loss probe timer expired",
    "handshake": "the answer to the SYN was late",
}
"""Trigger of a retransmit (`schema.RETRANSMIT_TRIGGERS`) → text."""


def _needless(row: Mapping[str, Any], shown: Mapping[str, Any], delay_ns: int) -> Finding:
    count, resent = row["spurious_retransmissions"], row["retransmitted_segments"]
    held = numbers.duration(delay_ns) if delay_ns >= QUEUE_NS else ""
    by_path = f" By their TCP timestamps, originals were up to {held} longer on the path to the capture point than their retransmits."
    why = "; or ".join(_WHY[by] for by in sorted(shown.get("by", ())) if by in _WHY)
    return Finding(
        id=spurious_retransmits.FINDING,
        severity=_severity(count, row["data_segments"]),
        confidence=_confidence(shown),
        conn=row["conn"],
        from_client=row["from_client"],
        cost_ns=None,
        cost_share=None,
        title=f"{count:,} of {resent:,} retransmit{'s were' if resent != 1 else ' was'} spurious: the original had arrived"
        f"{f', delayed on the path by up to {held}' if held else ''}",
        mechanism=f"The sender retransmitted the segments because {why or 'it took them for lost'}.{by_path if held else ''}",
        evidence_frames=_evidence(shown),
        limits=f"{spurious_retransmits.LIMITS} Would be disproved by: an ACK of the retransmitted data that "
        "came at least one RTT after the retransmit, without a D-SACK block and without an echo of the original's timestamp.",
        remedy=spurious_retransmits.REMEDY,
        predicted_gain=None,
        source="RFC 2883; RFC 3522; RFC 3708",
    )


def _queue(row: Mapping[str, Any], shown: Mapping[str, Any], *, small_buffer: bool) -> Finding:
    added, least, typical = row["queue_ns"], row["rtt_min_ns"], row["rtt_p50_ns"]
    drain = row["drained_bytes"] / row["drained_ns"]  # bytes per ns
    window = f"use a smaller socket buffer, or BBR: a window of about {numbers.size(round(drain * least))} fills the path without a queue"
    return Finding(
        id="bufferbloat",
        severity=Severity.MEDIUM if added >= HARMFUL_QUEUE_NS else Severity.LOW,
        confidence=Confidence.CONSISTENT,
        conn=row["conn"],
        from_client=row["from_client"],
        cost_ns=None,
        cost_share=None,
        title=f"Bufferbloat: median RTT {numbers.duration(typical)}, base RTT {numbers.duration(least)}",
        mechanism=(
            f"Half of {row['rtt_samples']:,} RTT samples are {numbers.duration(typical)} or more. At these times, about "
            f"{numbers.size(round(drain * added))} wait in a queue that drains at {numbers.rate(drain * BITS_PER_BYTE * 1e9)}. This "
            "transfer loses little time, but all other traffic waits equally long in the queue."
        ),
        evidence_frames=tuple(sorted(shown.get("slowest", ()))),
        limits="A receiving host that is slow to ACK looks the same. Would be disproved by: RTTs near the base RTT "
        "while as many bytes are in flight as during the long RTTs.",
        remedy=("manage the queue at the bottleneck (fq_codel, CAKE), or let it mark packets (ECN)", *([] if small_buffer else [window])),
        predicted_gain=None,
        source="Gettys & Nichols 2011; RFC 8289; RFC 8290; ITU-T G.114",
    )


def _marks(row: Mapping[str, Any], shown: Mapping[str, Any]) -> Finding:
    marked, reduced, sent = row["ce_segments"], row["cwr_segments"], row["data_segments"]
    parts = [
        *([f"the path marked {numbers.counted(marked, 'packet')}"] if marked else []),
        *([f"the sender reduced its congestion window {numbers.times(reduced)}"] if reduced else []),
    ]
    behind = "" if marked else " The marks themselves were set behind the capture point."
    return Finding(
        id="congestion-marks",
        severity=Severity.INFO,
        confidence=Confidence.PROVED,
        conn=row["conn"],
        from_client=row["from_client"],
        cost_ns=None,
        cost_share=None,
        title=f"ECN: {', and '.join(parts)}",
        mechanism=(
            "A router marked packets because its queue was long, instead of dropping them. The receiver reports the marks, and the sender "
            f"reduces its congestion window once per RTT, as after a loss, but nothing has to be retransmitted. The sender sent {sent:,} "
            f"segments with data.{behind}"
        ),
        evidence_frames=tuple(sorted(shown.get("frames", ()))),
        limits="Marks that are set behind the capture point are not in the capture. Would be disproved by: packets of "
        "the evidence frames that carry neither the CE mark nor the CWR flag.",
        remedy=("reduce other traffic at the bottleneck, or raise the bottleneck's rate: ECN itself works as intended",),
        predicted_gain=None,
        source="RFC 3168, 5 and 6.1",
    )
