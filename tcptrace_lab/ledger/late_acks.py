"""Computes how much earlier a direction would have sent its last segment if no ACK had been late.

A late ACK delays the segments that it releases. But it does not always delay all later segments, because ACKs of other segments in the
flight release some of them. The departures are therefore computed again, in order, without the delays of late ACKs:

- a segment that waited for an ACK departs earlier by as much as the ACKed segment, and by the delay of the ACK if the ACK was late;
- no segment departs before its predecessor;
- all other waits keep their length.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

CAUSE: Final = "delayed-ack"

NEARLY_ALL: Final = 0.9
"""If the gain is at least this share of the waits' time, all of this time counts as gain (a heuristic)."""

_BY_ACKS: Final = frozenset({"network", "slow-start", "congestion-window", "receiver-window", "send-buffer", "nagle", "nagle-delayed-ack"})
"""Causes of waits that an ACK ends. An ACK possibly ended an `unknown` wait, too, but the gain is an upper bound."""


def frames(waits: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the frames of the ACKs whose times `gain_ns` needs."""
    return [wait["ack_frame"] for wait in waits if wait["ack_frame"] is not None and wait["cause"] in {CAUSE, *_BY_ACKS}]


def gain_ns(waits: Collection[Mapping[str, Any]], acks_ns: Mapping[int, int], all_ns: int) -> int:
    """Return how much earlier the last segment would have departed; `all_ns` if that is nearly the time of all waits (`NEARLY_ALL`).

    Args:
        waits: the direction's rows of `schema.LONGEST`. A segment without a wait in these rows departs earlier by as much as the segment
            before it.
        acks_ns: times of the ACKs in `frames(waits)`.
        all_ns: length of all waits for late ACKs, of which `waits` contains the longest.
    """
    last = {wait["frame_after"]: wait["end_ns"] for wait in sorted(waits, key=lambda wait: wait["end_ns"])}
    ends_ns, earlier_ns, now_ns, late_ns = [-1], [0], 0, 0
    for wait in sorted(waits, key=lambda wait: wait["start_ns"]):
        length_ns, is_late = wait["end_ns"] - wait["start_ns"], wait["cause"] == CAUSE
        ack_ns, lag_ns = acks_ns.get(wait["ack_frame"]), wait["ack_lag_ns"]
        decides = is_late or (wait["cause"] in _BY_ACKS and wait["end_ns"] == last[wait["frame_after"]])
        if decides and ack_ns is not None and lag_ns is not None:
            delay_ns = (wait["ack_late_ns"] or 0) if is_late else 0
            now_ns = min(now_ns + length_ns, earlier_ns[bisect_right(ends_ns, ack_ns - lag_ns) - 1] + delay_ns)
        elif is_late:
            now_ns += length_ns
        late_ns += length_ns if is_late else 0
        ends_ns.append(wait["end_ns"])
        earlier_ns.append(now_ns)
    return all_ns if now_ns >= NEARLY_ALL * late_ns else now_ns * all_ns // late_ns
