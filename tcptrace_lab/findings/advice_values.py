"""Formats the numbers of a capture for the `{…}` placeholders in the texts of findings (`causes.rule.Advice`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.causes.texts import immediate_ack
from tcptrace_lab.connections import host_names, rates
from tcptrace_lab.errors import RuleUnusable
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.findings import path_mtu

SMALLER_SHARE = 0.8
"""If the median window was at most this share of the maximum window, the text states both windows (a heuristic)."""

UNKNOWN = "unknown"


class Words(dict[str, str]):
    """Placeholder → its text."""

    def __missing__(self, name: str) -> str:
        """Raise RuleUnusable for a placeholder that does not exist."""
        raise RuleUnusable(f"a finding has no placeholder {{{name}}}: use one of {', '.join(self)}", remedy="fix the rule")


def of(
    cost_ns: int,
    share: float,
    *,
    kind: Mapping[str, Any],
    direction: Mapping[str, Any],
    longest_ns: int | None,
    windows: Sequence[int],
    large: path_mtu.TooLarge | None,
) -> Words:
    """Return all placeholder values for one cause in one direction.

    Args:
        cost_ns: time that the cause takes.
        share: share of the direction's active time, 0 to 1.
        kind: `waits` and `median_ns` of the cause's waits.
        longest_ns: length of the longest of these waits, if known.
        direction: facts about the direction (`directions`), its rates (`rates.table`), and values of its connection.
        windows: receive windows in bytes, as the sender knew them during the longest waits.
        large: segments that are too large for the path, if they caused the losses.
    """
    waits: int = kind["waits"]
    words = {
        "cost": numbers.duration(cost_ns),
        "share": f"{share:.0%}",
        "waits": numbers.counted(waits, "wait"),
        "waits_longest": _counted(waits, "wait", longest_ns),
        "pauses_longest": _counted(waits, "pause", longest_ns),
        "times": numbers.times(waits),
        "median": numbers.duration(round(kind["median_ns"])),
        "rtt": numbers.duration(direction["base_rtt_ns"]) if direction["base_rtt_ns"] else UNKNOWN,
        "resent": _resent(direction),
        "round_trips": _round_trips(direction),
        "window": _window(windows, direction["max_window_bytes"]),
        "read": numbers.rate(direction["read_bps"]),
        "plateau": numbers.size(direction["level_flight_bytes"] or direction["max_in_flight_bytes"]),
        "at_once": immediate_ack.words(direction["receiver_stack"]),
        "reached": f", at {reached}" if (reached := rates.reached(direction)) else "",
    }
    return Words(words | {role: direction[role] for role in host_names.ROLES} | _of_handshake(cost_ns, direction) | _of_size(large))


def _counted(waits: int, name: str, longest_ns: int | None) -> str:
    """Return the number of waits, and the longest if there are several: `1 wait`, or `12 waits, the longest 1.3 s`."""
    counted = numbers.counted(waits, name)
    return counted if waits <= 1 or longest_ns is None else f"{counted}, the longest {numbers.duration(longest_ns)}"


def _resent(direction: Mapping[str, Any]) -> str:
    """Return the number of retransmitted segments.

    If nothing was retransmitted, return the number of segments that were lost before the capture point, according to the IP IDs.
    """
    if direction["retransmitted_segments"]:
        return numbers.counted(direction["retransmitted_segments"], "segment")
    lost = numbers.counted(direction["missing_segments"] or 0, "segment")
    return f"segments whose originals were lost before the capture point (its IP IDs skip {lost})"


def _window(windows: Sequence[int], max_bytes: int | None) -> str:
    """Return the maximum receive window. If the median during the longest waits is smaller, return both."""
    ordered = sorted(windows)
    then_bytes = round((ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2) if ordered else None  # the median
    if max_bytes is None:
        return "unknown size" if then_bytes is None else numbers.size(then_bytes)
    most = f"at most {numbers.size(max_bytes)}"
    return (
        most
        if then_bytes is None or then_bytes > SMALLER_SHARE * max_bytes
        else f"{numbers.size(then_bytes)} during the waits, {most} overall"
    )


def _round_trips(direction: Mapping[str, Any]) -> str:
    """Return the range of the RTT, such as `2.1 ms to 106 ms`."""
    min_ns, seen_ns = direction["base_rtt_ns"], direction["rtt_max_ns"]
    if not min_ns:
        return UNKNOWN
    # RTT samples show the half of the path from the capture point to the receiver. For the other half, only the minimum is known.
    max_ns = None if seen_ns is None else seen_ns + (0 if direction["near_sender"] else direction["to_sender_ns"])
    least = f"at least {numbers.duration(min_ns)}"
    return least if max_ns is None or max_ns <= min_ns else f"{numbers.duration(min_ns)} to {numbers.duration(max_ns)}"


def _of_handshake(cost_ns: int, direction: Mapping[str, Any]) -> dict[str, str]:
    answer_ns = direction["syn_to_synack_ns"]
    after_ns = (answer_ns or 0) + (direction["synack_to_ack_ns"] or 0)  # time since the last SYN
    return {
        "syns": numbers.times(direction["client_syn_segments"]),
        "answers": numbers.times(direction["server_syn_segments"]),
        "acked": numbers.duration(direction["synack_to_ack_ns"]),
        "answer": "an unknown time" if answer_ns is None else numbers.duration(answer_ns),
        "unanswered": "the whole time" if answer_ns is None else numbers.duration(max(cost_ns - after_ns, 0)),
    }


def _of_size(large: path_mtu.TooLarge | None) -> dict[str, str]:
    if large is None:
        return {}
    return {
        "lost_bytes": numbers.size(large.lost_bytes),
        "passed_bytes": numbers.size(large.passed_bytes),
        "sent": numbers.times(large.sent),
    }
