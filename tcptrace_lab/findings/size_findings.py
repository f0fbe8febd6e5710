"""Makes findings from slow ranges of message sizes: which sizes stall, why, what this costs, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.causes import Confidence
from tcptrace_lab.causes.texts import immediate_ack
from tcptrace_lab.findings.finding import Finding, severity_of
from tcptrace_lab.messages.sizes import NORMAL_SHARE
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcptrace_lab.messages.size_groups import GroupSizes
    from tcptrace_lab.messages.sizes import SlowRange

FINDING = "anomalous-message-sizes"

NAMED_RANGES = 4
"""Maximum number of ranges in the title of a finding."""

HELD_CAUSES = frozenset({"nagle", "nagle-delayed-ack", "delayed-ack"})
"""Causes of waits in which the last piece of a message waits for the ACK of the previous piece."""

SOURCE = "Liu, Cheng, Bhargava, Zhao 1995; Moldeklev & Gunningberg 1995; RFC 896; RFC 1122, 4.2.3.2 and 4.2.3.4; Linux tcp_nagle_check"


def findings(groups: Iterable[GroupSizes]) -> tuple[Finding, ...]:
    """Return one finding per direction of a group with slow sizes."""
    return tuple(_finding(group) for group in groups if group.measured)


def _finding(group: GroupSizes) -> Finding:
    cost = sum(one.cost_ns for one in group.measured)
    share = min(cost / group.active_ns, 1.0) if group.active_ns > 0 else 0.0
    excess = max(group.measured, key=lambda one: one.cost_ns)
    direction = "client → server" if group.from_client else "server → client"
    return Finding(
        id=FINDING,
        severity=severity_of(share),
        confidence=_confidence(group),
        conn=group.conn,
        from_client=group.from_client,
        cost_ns=cost,
        cost_share=share,
        title=f"Messages of {_listed(group.measured)} stall for {numbers.duration(excess.stalled_median_ns - excess.normal_median_ns)}; "
        "other sizes do not",
        mechanism=f"{group.name}, {direction}: {_mechanism(group)}",
        evidence_frames=group.frames,
        limits=_limits(group),
        remedy=_remedy(group),
        predicted_gain=(
            f"at most {numbers.duration(cost)} of {numbers.duration(group.active_ns)} (active time of all connections with these messages)"
        ),
        source=SOURCE,
    )


def _confidence(group: GroupSizes) -> Confidence:
    """Return the confidence. If all messages of a range were sent in one period, the period explains the stalls as well as the size."""
    if min(group.visits) == 1:
        return Confidence.POSSIBLE
    return Confidence.PROVED if all(map(_is_proved, group.measured)) else Confidence.CONSISTENT


def _is_proved(one: SlowRange) -> bool:
    return one.has_ends and one.stalled_share_interval[0] > NORMAL_SHARE


def _listed(ranges: tuple[SlowRange, ...]) -> str:
    named = [f"{one.from_bytes:,} to {one.to_bytes:,}" for one in ranges[:NAMED_RANGES]]
    more = len(ranges) - len(named)
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named) + (
        f" bytes (and {more} more ranges)" if more else " bytes"
    )


def _mechanism(group: GroupSizes) -> str:
    range_words = [
        f"{numbers.share(one.stalled_share)} of the {one.messages:,} messages of {one.from_bytes:,} to {one.to_bytes:,} bytes stalled "
        f"({cause}; median {numbers.duration(one.stalled_median_ns)}, normally {numbers.duration(one.normal_median_ns)})"
        for one, cause in zip(group.measured[:NAMED_RANGES], group.causes, strict=False)
    ]
    words = "; ".join(range_words) + "."
    if HELD_CAUSES & set(group.causes):
        words += (
            " A message stalls if its last segment is too small to be sent before the previous segment is ACKed, and the previous "
            "segment is too small to be ACKed at once."
        )
    if group.predicted:
        fits = sum(
            any(one.from_bytes <= slow.to_bytes and slow.from_bytes <= one.to_bytes for one in group.predicted) for slow in group.measured
        )
        words += f" The model of the stack predicts {fits} of {len(group.measured)} ranges."
    return words


def _limits(group: GroupSizes) -> str:
    sentences = ["Only the sizes that were sent are known: each slow range may extend to the nearest size that was sent and did not stall."]
    if not all(one.has_ends for one in group.measured):
        sentences.append("If a range includes the smallest or largest size sent, its outer limit is unknown.")
    if min(group.visits) == 1:
        sentences.append(
            "All sizes of a range were sent in one period, so the stall may depend on the time instead of the size. A "
            "second pass, or sizes "
            "in random order, would show which."
        )
    sentences.append("Would be disproved by: messages of these sizes that do not stall; equally long stalls of messages of all sizes.")
    return " ".join(sentences)


def _remedy(group: GroupSizes) -> tuple[str, ...]:
    if not HELD_CAUSES & set(group.causes):
        return (
            "raise the buffers (SO_SNDBUF, SO_RCVBUF) to hold a whole message and the amount that triggers an ACK",
            immediate_ack.words(group.receiver),
        )
    return (
        "write each message with one call (one buffer, writev, MSG_MORE or TCP_CORK), so that only its last segment is small",
        "set TCP_NODELAY at the sender",
        immediate_ack.words(group.receiver),
        "raise the send buffer to at least three full segments",
        "send other sizes",
    )
