"""What the `{…}` in an advice become: this capture's numbers, in words (`rules.rule.Advice`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab import numbers, rates
from tcptrace_lab.errors import RuleUnusable
from tcptrace_lab.rules import at_once

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab import path_mtu

SMALLER_SHARE = 0.8
"""A window of less than this part of the largest is told beside it (a heuristic)."""

UNTOLD = "unknown"


class Words(dict[str, str]):
    """Name → words."""

    def __missing__(self, name: str) -> str:
        """Asked for others, it says that the rule cannot be used."""
        raise RuleUnusable(f"a finding has no placeholder {{{name}}}: use one of {', '.join(self)}", remedy="fix the rule")


def of(
    cost_ns: int,
    share: float,
    *,
    kind: Mapping[str, Any],
    direction: Mapping[str, Any],
    windows: Sequence[int],
    large: path_mtu.TooLarge | None,
) -> Words:
    """All words about one cause of one direction.

    Args:
        cost_ns: time that it holds.
        share: of the direction's life.
        kind: `waits` and `median_ns` of its waits.
        direction: the facts of the direction (`directions`), its rates (`rates.table`), and what its connection tells of it.
        windows: of the receiver, in bytes, as the sender knew them in the longest waits.
        large: segments that are too large for the path, if these are to blame.
    """
    waits: int = kind["waits"]
    resent: int = direction["retransmitted_segments"] or 0
    words = {
        "cost": numbers.duration(cost_ns),
        "share": f"{share:.0%}",
        "waits": f"{waits:,} wait{'' if waits == 1 else 's'}",
        "times": numbers.times(waits),
        "median": numbers.duration(round(kind["median_ns"])),
        "rtt": numbers.duration(direction["rtt_whole_ns"]) if direction["rtt_whole_ns"] else UNTOLD,
        "resent": f"{resent:,} segment{'' if resent == 1 else 's'}",
        "round_trips": _round_trips(direction),
        "window": _window(windows, direction["max_window_bytes"]),
        "read": numbers.rate(direction["read_bps"]),
        "plateau": numbers.size(direction["level_flight_bytes"] or direction["max_in_flight_bytes"]),
        "at_once": at_once.words(direction["receiver_stack"]),
        "reached": f", at {reached}" if (reached := rates.reached(direction)) else "",
    }
    return Words(words | _of_handshake(cost_ns, direction) | _of_size(large))


def _window(windows: Sequence[int], most_bytes: int | None) -> str:
    """How large the receiver's window was: at most, and in the longest waits, if that is less: a receiver may open it step by step."""
    ordered = sorted(windows)
    then_bytes = round((ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2) if ordered else None  # the median
    if most_bytes is None:
        return "unknown size" if then_bytes is None else numbers.size(then_bytes)
    most = f"at most {numbers.size(most_bytes)}"
    return (
        most
        if then_bytes is None or then_bytes > SMALLER_SHARE * most_bytes
        else f"{numbers.size(then_bytes)} during the waits, {most} overall"
    )


def _round_trips(direction: Mapping[str, Any]) -> str:
    """The shortest and the longest round trip: `2.1 ms to 106 ms`."""
    least_ns, seen_ns = direction["rtt_whole_ns"], direction["rtt_max_ns"]
    if not least_ns:
        return UNTOLD
    # A sample is the way from the capture point to the receiver and back; the sender's own part is known by its quickest answer alone.
    most_ns = None if seen_ns is None else seen_ns + (0 if direction["near_sender"] else direction["to_sender_ns"])
    least = f"at least {numbers.duration(least_ns)}"
    return least if most_ns is None or most_ns <= least_ns else f"{numbers.duration(least_ns)} to {numbers.duration(most_ns)}"


def _of_handshake(cost_ns: int, direction: Mapping[str, Any]) -> dict[str, str]:
    answer_ns = direction["syn_to_synack_ns"]
    return {
        "syns": numbers.times(direction["client_syn_segments"]),
        "answers": numbers.times(direction["server_syn_segments"]),
        "acked": numbers.duration(direction["synack_to_ack_ns"]),
        "answer": "an unknown time" if answer_ns is None else numbers.duration(answer_ns),
        "unanswered": "the whole time" if answer_ns is None else numbers.duration(max(cost_ns - answer_ns, 0)),
    }


def _of_size(large: path_mtu.TooLarge | None) -> dict[str, str]:
    if large is None:
        return {}
    return {
        "lost_bytes": numbers.size(large.lost_bytes),
        "passed_bytes": numbers.size(large.passed_bytes),
        "sent": numbers.times(large.sent),
    }
