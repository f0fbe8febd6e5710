"""Findings on the capture itself: what is missing, duplicated or out of order, and whether its clock is reliable.

These findings describe the faults that `capture_quality` found, and how to capture better. Faults of a capture cost the transfer no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tcptrace_lab.causes import Confidence
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.findings.finding import Finding, Severity
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Sequence

EVIDENCE_FRAMES = 20
MOST = 20
"""Maximum number of connections that are searched for evidence frames. The fault affects these connections most."""


_CONCLUDED = frozenset({"drops_suspected", "duplicates", "super_segments"})
"""Faults that are inferred from segments and therefore need evidence frames. The capture file itself shows all other faults."""


class Fault(NamedTuple):
    """One kind of fault of a capture.

    Attributes:
        finding: one of `finding.FINDING_IDS`.
        reasons: names of the `capture_quality.Reason`s that the fault covers.
        title: one line, before the descriptions of the reasons.
        mechanism: effect on the verdicts.
        refuted_by: what would show that the capture is not at fault.
        remedy: how to capture better, best first.
        source: source of the rule.
        counted: column of each endpoint that counts the fault; None if no column does.
        shown_by: condition that is true for rows of `schema.SEGMENTS` that show the fault.
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
        reasons=("kernel_drops", capture_quality.IN_PART, "drops_suspected"),
        title="The capture is incomplete",
        mechanism="Missing packets cannot be analyzed: a gap in the capture looks like silence.",
        refuted_by="a second capture of the same traffic, made at another point, that lacks the same segments",
        remedy=(
            "analyze the original file, if a filter or an editor left packets out",
            "capture again with a smaller snaplen (128) and a larger buffer (dumpcap -B 64), on a host with no other load",
            "write to a fast disk, and capture with dumpcap only",
        ),
        source="RFC 9293, 3.8 (what is acknowledged was sent); pcapng, isb_ifdrop",
        counted="not_captured_bytes",
        shown_by=pl.col("acked_unseen_bytes") > 0,
    ),
    Fault(
        finding="capture-incomplete",
        reasons=("one_direction", "start_missing", "acks_missing"),
        title="Some connections are captured only in part",
        mechanism=(
            "If the handshake is missing, the window scale, the TCP options and the client are unknown. Without one direction, or without "
            "its ACKs, the capture does not show what arrived."
        ),
        refuted_by="a second capture of these connections, made at another point, that lacks the same packets",
        remedy=(
            "start the capture before the connection opens, in both directions: both links of a bond, both directions of a SPAN port",
            "capture without a filter on flags or sizes, which drops ACKs",
        ),
        source="RFC 7323, 2.2 (only SYNs carry the scale)",
    ),
    Fault(
        finding="capture-duplicates",
        reasons=("duplicates",),
        title="The capture contains duplicate packets",
        mechanism="Duplicates have the same values in header fields that would change in a retransmit. They are not counted as segments.",
        refuted_by="two copies of a packet that differ in IP ID, TTL or TCP timestamps; a receiver that answers both copies",
        remedy=("capture on one interface, not on “any”, and mirror only one direction of a port", "remove the duplicates: editcap -d"),
        source="docs/how-it-decides.md, 2.6 (duplicates from SPAN ports and “any”)",
        counted="capture_duplicates",
        shown_by=pl.col("kind").cast(pl.String) == "capture_duplicate",
    ),
    Fault(
        finding="offload",
        reasons=("super_segments",),
        title="The capture shows segments that were never on the wire",
        mechanism=(
            "The network card splits or merges segments. A captured segment that is longer than the MSS counts as several segments. The "
            "capture does not show when these several segments were sent, or which of them were lost."
        ),
        refuted_by="a path whose MTU is large enough for the longest segments of this capture",
        remedy=(
            "for an exact capture, switch offload off while capturing: ethtool -K eth0 tso off gso off gro off lro off",
            "capture on another machine: a tap or mirror port",
        ),
        source="Linux Documentation/networking/segmentation-offloads.rst",
        counted="super_segments",
        shown_by=pl.col("payload_bytes") > pl.col("smss_bytes"),
    ),
    Fault(
        finding="clock",
        reasons=("no_times", "coarse_clock", capture_quality.BACKWARD, capture_quality.CLOCK_JUMP),
        title="The timestamps of the capture are unreliable",
        mechanism="Events that are shorter than the resolution of the clock, or happen while the clock is being set, have no "
        "reliable order or duration.",
        refuted_by="RTTs and TCP timestamps that agree with the timestamps of the capture",
        remedy=(
            "let the kernel or the network card timestamp packets (dumpcap --time-stamp-type), and do not set the clock while capturing",
            "merge captures of several interfaces only if the same clock timestamped them",
            "sort the packets by time (reordercap), if they are only out of order in the file",
        ),
        source="docs/how-it-decides.md, 2.6 (clock steps, resolution)",
    ),
)


def findings(verdict: capture_quality.CaptureQuality, segments: pl.LazyFrame, connections: pl.LazyFrame) -> tuple[Finding, ...]:
    """Return one finding per kind of fault, most severe first.

    Args:
        verdict: quality of the capture.
        segments: rows of `schema.SEGMENTS`; read once, for a few connections, if a fault needs evidence frames.
        connections: rows of `schema.CONNECTIONS`.
    """
    found = [(fault, reasons) for fault in FAULTS if (reasons := [one for one in verdict.reasons if one.name in fault.reasons])]
    frames = _frames([fault for fault, _ in found], segments, connections)
    made = [_finding(fault, reasons, verdict, frames.get(fault.title, ())) for fault, reasons in found]
    return tuple(sorted(made, key=lambda one: -one.severity))


def _finding(
    fault: Fault, reasons: Sequence[capture_quality.Reason], verdict: capture_quality.CaptureQuality, frames: tuple[int, ...]
) -> Finding:
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
        limits=f"Would be disproved by: {fault.refuted_by}.",
        remedy=fault.remedy,
        predicted_gain=None,
        source=fault.source,
    )


def _severity(reasons: Sequence[capture_quality.Reason], verdict: capture_quality.CaptureQuality) -> Severity:
    """Return the severity of a fault. The severity depends on the share of a verdict's confidence that remains."""
    left = min(reason.factor for reason in reasons)
    if any(reason.factor == 1.0 for reason in reasons):  # 1.0: a fault of single connections, whose effect is in `factor_of_connections`
        left = min(left, verdict.factor_of_connections)
    return Severity.INFO if left >= capture_quality.GOOD else Severity.LOW if left >= capture_quality.LIMITED else Severity.MEDIUM


def _frames(faults: Sequence[Fault], segments: pl.LazyFrame, connections: pl.LazyFrame) -> dict[str, tuple[int, ...]]:
    """Return the first frames that show each fault, from the connections that the fault affects most."""
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
