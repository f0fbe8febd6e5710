"""What is wrong with a capture itself, as findings: what it lacks, holds twice or out of order, and how its clock ran.

They say in words what `trust` found, and what to do better next time. None costs the transfer any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tcptrace_lab import trust
from tcptrace_lab.findings import Finding, Severity
from tcptrace_lab.rules import Confidence
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Sequence

EVIDENCE_FRAMES = 20
MOST = 20
"""Connections in which frames are looked for, those with most of a fault."""


_CONCLUDED = frozenset({"drops_suspected", "duplicates", "super_segments"})
"""Reasons that are concluded from segments, and so want frames; the others are told by the capture's own form."""


class Fault(NamedTuple):
    """One kind of fault of a capture.

    Attributes:
        finding: one of `findings.FINDING_IDS`.
        reasons: names of `trust.Reason`s that it puts into words.
        title: one line, before the reasons' own words.
        mechanism: what it does to the verdicts.
        refuted_by: what would show that the capture is not at fault.
        remedy: how to capture better, best first.
        source: where that comes from.
        counted: the column of each side that counts it; None where none does.
        shown_by: true for segments that show it, over rows of `schema.SEGMENTS`.
    """

    finding: str
    reasons: tuple[str, ...]
    title: str
    mechanism: str
    refuted_by: str
    remedy: tuple[str, ...]
    source: str
    counted: str | None = None
    shown_by: pl.Expr | None = None


FAULTS = (
    Fault(
        finding="capture-incomplete",
        reasons=("kernel_drops", trust.IN_PART, "drops_suspected"),
        title="The capture does not hold all that was sent",
        mechanism="What is not there cannot be judged: a hole in the capture looks like silence.",
        refuted_by="the same segments in a capture from elsewhere",
        remedy=(
            "capture less of each packet (snaplen 128) and with a larger buffer (dumpcap -B 64), on a host that is not busy otherwise",
            "write to a disk that keeps pace, and let dumpcap alone write",
        ),
        source="RFC 9293, 3.8 (what is acknowledged was sent); pcapng, isb_ifdrop",
        counted="not_captured_bytes",
        shown_by=pl.col("acked_unseen_bytes") > 0,
    ),
    Fault(
        finding="capture-incomplete",
        reasons=("one_direction", "start_missing"),
        title="The capture holds only a part of some connections",
        mechanism=(
            "Without the handshake the window's scale, the options and who opened the connection are not known; without one direction "
            "nothing tells what arrived."
        ),
        refuted_by="the rest of these connections in a capture from elsewhere",
        remedy=("start before the connection does, and take both directions: both links of a bond, both ways of a SPAN port",),
        source="RFC 7323, 2.2 (only SYNs carry the scale)",
    ),
    Fault(
        finding="capture-duplicates",
        reasons=("duplicates",),
        title="The capture holds packets twice",
        mechanism="The copies were told from retransmissions by what they have in common, and left out of all figures but their own.",
        refuted_by="copies that differ in IP ID, TTL or timestamps, or answers of the receiver to both",
        remedy=("capture on one interface, not on “any”, and mirror one direction of a port only", "or take copies out: editcap -d"),
        source="rule book C (copies of SPAN ports and “any”)",
        counted="capture_duplicates",
        shown_by=pl.col("kind").cast(pl.String) == "capture_duplicate",
    ),
    Fault(
        finding="offload",
        reasons=("super_segments",),
        title="The capture shows segments that never were on the wire: the network card splits or joins them (offload)",
        mechanism="They were counted as the segments that they stand for; when each of those left, and which was lost, is not known.",
        refuted_by="a path whose MTU carries such segments",
        remedy=(
            "for a capture that must be exact, switch it off for its time: ethtool -K eth0 tso off gso off gro off lro off",
            "or capture on another machine: a tap or mirror port",
        ),
        source="Linux Documentation/networking/segmentation-offloads.rst",
        counted="super_segments",
        shown_by=pl.col("payload_bytes") > pl.col("full_bytes"),
    ),
    Fault(
        finding="clock",
        reasons=("no_times", "coarse_clock", "clock_steps"),
        title="The capture's times cannot be relied on",
        mechanism="What happens faster than its clock ticks, or while it is set, has no order and no length.",
        refuted_by="round trips and timestamps of TCP that agree with its clock",
        remedy=(
            "let the kernel or the card stamp packets (dumpcap with --time-stamp-type), and no clock be set meanwhile",
            "merge captures of several interfaces only if one clock stamped them",
        ),
        source="rule book C (clock steps, resolution)",
    ),
)


def findings(verdict: trust.Trust, segments: pl.LazyFrame, connections: pl.LazyFrame) -> tuple[Finding, ...]:
    """One finding for each kind of fault, those first that leave least to believe.

    Args:
        verdict: on the capture.
        segments: rows of `schema.SEGMENTS`; read once, of a few connections, if any show such a fault.
        connections: rows of `schema.CONNECTIONS`.
    """
    found = [(fault, reasons) for fault in FAULTS if (reasons := [one for one in verdict.reasons if one.name in fault.reasons])]
    frames = _frames([fault for fault, _ in found], segments, connections)
    made = [_finding(fault, reasons, verdict, frames.get(fault.title, ())) for fault, reasons in found]
    return tuple(sorted(made, key=lambda one: -one.severity))


def _finding(fault: Fault, reasons: Sequence[trust.Reason], verdict: trust.Trust, frames: tuple[int, ...]) -> Finding:
    return Finding(
        id=fault.finding,
        severity=_severity(reasons, verdict),
        confidence=Confidence.CONSISTENT if not frames and _CONCLUDED & {reason.name for reason in reasons} else Confidence.PROVED,
        conn=None,
        from_client=None,
        cost_ns=None,
        cost_share=None,
        title=f"{fault.title}: {'; '.join(reason.words for reason in reasons)}",
        mechanism=fault.mechanism,
        evidence_frames=frames,
        limits=f"Refuted by: {fault.refuted_by}.",
        remedy=fault.remedy,
        predicted_gain=None,
        source=fault.source,
    )


def _severity(reasons: Sequence[trust.Reason], verdict: trust.Trust) -> Severity:
    """By what is left of the verdicts' confidence, as far as this fault is to blame."""
    left = min(reason.factor for reason in reasons)
    if any(reason.factor == 1.0 for reason in reasons):  # a fault of connections: weighed by their bytes
        left = min(left, verdict.factor_of_connections)
    return Severity.INFO if left >= trust.GOOD else Severity.LOW if left >= trust.FAIR else Severity.MEDIUM


def _frames(faults: Sequence[Fault], segments: pl.LazyFrame, connections: pl.LazyFrame) -> dict[str, tuple[int, ...]]:
    """The first frames that show each fault, in the connections that have most of it."""
    shown = [(fault.title, fault.shown_by, fault.counted) for fault in faults if fault.shown_by is not None and fault.counted]
    if not shown:
        return {}
    count = {name: pl.sum_horizontal(*(pl.col(f"{side}_{counted}") for side in SIDES)) for name, _, counted in shown}
    most = [
        connections.filter(each > 0).select("conn", by=each).top_k(MOST, by=["by", "conn"], reverse=[False, True]).select("conn")
        for each in count.values()
    ]
    conns = pl.concat(pl.collect_all(most)).to_series().unique()
    if conns.is_empty():
        return {}
    listed = segments.filter(pl.col("conn").is_in(conns.implode()) & pl.any_horizontal(*(shows for _, shows, _ in shown))).select(
        **{name: pl.when(shows).then("frame").bottom_k(EVIDENCE_FRAMES) for name, shows, _ in shown}
    )
    first = listed.select(pl.all().implode()).collect()
    return {name: tuple(sorted(frame for frame in first[name][0] if frame is not None)) for name, _, _ in shown}
