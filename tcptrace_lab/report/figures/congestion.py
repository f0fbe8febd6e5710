"""Estimates the congestion window and the slow-start threshold from what a capture shows: bytes in flight, ACKs and retransmits.

No packet contains the congestion window. But a sender with data and an open receive window keeps as many bytes in flight as the congestion
window allows. So the largest flight in a round trip is a lower bound of the congestion window, and equals the window if nothing else limits
the sender.

After a recovery, the congestion window equals the slow-start threshold (RFC 5681, 3.2, step 6; RFC 6937). So the largest flight in the
first round trip after a recovery estimates the threshold, for any congestion control. After a timeout, the sender starts with one segment,
and the capture does not show the threshold.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tcptrace_lab.schema import RESENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.engine.figures import Direction

MEANING = (
    "The estimate of the congestion window is the largest number of bytes in flight in each round trip. The estimate of the slow-start "
    "threshold is this number in the first round trip after a recovery. The window is unknown during recoveries, and the threshold is "
    "unknown after timeouts."
)
"""Note on the lines of congestion window and slow-start threshold, below a figure with these lines."""

_TIMEOUT, _NOT_A_LOSS = "rto_retransmit", ("syn_retransmit",)


class Estimate(NamedTuple):
    """The two estimates as step lines with columns `t_ns y frame`; y is null while the value is unknown."""

    window: pl.DataFrame
    threshold: pl.DataFrame


def estimate(direction: Direction) -> Estimate:
    """Return the estimates for one direction, from its lines and marks.

    If the series has too many points, some were left out, and the times at which round trips end are approximate. The largest flight is
    still exact.
    """
    steps = direction.lines["flight"].join(direction.lines["acked"].select("frame", acked="y"), on="frame", how="left", coalesce=True)
    steps = steps.with_columns(pl.col("acked").forward_fill()).drop_nulls()
    if steps.is_empty():
        return Estimate(_line([]), _line([]))
    path = _Path(*(steps[name].to_list() for name in ("t_ns", "y", "frame", "acked")))
    recoveries = _recoveries(direction, path)
    window, threshold = list[_Point](), list[_Point]()
    begin = 0
    for place in range(len(recoveries) + 1):
        end = recoveries[place].begin if place < len(recoveries) else path.last_sent() + 1
        rounds = path.rounds(begin, end)
        if place and begin < len(path.t_ns):
            is_shown = len(rounds) > 1 and not recoveries[place - 1].by_timeout  # the end of the data can cut off the last round trip
            threshold.append(path.point(begin, _known(rounds[0][1]) if is_shown else None))
        window += [path.point(row, _known(most)) for row, most in rounds]
        if place < len(recoveries):
            window += [path.point(end, window[-1][1])] * bool(rounds)  # the value of a step holds until the next point
            window.append(path.point(end, None))
            begin = recoveries[place].end
    for line in (window, threshold):
        if line:
            line.append(path.point(len(path.t_ns) - 1, line[-1][1]))
    return Estimate(_line(window), _line(threshold))


_Point = tuple[int, int | None, int]


class _Path(NamedTuple):
    """The bytes in flight of a direction as steps: time, bytes in flight, frame, and highest ACK."""

    t_ns: list[int]
    in_flight: list[int]
    frames: list[int]
    acked: list[int]

    def point(self, row: int, y: int | None) -> _Point:
        return self.t_ns[row], y, self.frames[row]

    def sent(self, row: int) -> int:
        """Return the end of the data that was sent up to this row."""
        return self.acked[row] + self.in_flight[row]

    def last_sent(self) -> int:
        """Return the first row after which no new data is sent."""
        end = self.sent(len(self.t_ns) - 1)
        return next(row for row in range(len(self.t_ns)) if self.sent(row) >= end)

    def rounds(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the first row and the largest flight of each round trip.

        A round trip ends when the receiver has ACKed all data that was sent up to the first row of the round trip.
        """
        found: list[tuple[int, int]] = []
        while begin < end:
            stop = min(max(bisect_left(self.acked, self.sent(begin), begin), begin + 1), end)
            found.append((begin, max(self.in_flight[begin:stop])))
            begin = stop
        return found


class _Recovery(NamedTuple):
    """The rows of a recovery: from the first retransmit until all data sent before this retransmit is ACKed (RFC 6582)."""

    begin: int
    end: int
    by_timeout: bool


def _recoveries(direction: Direction, path: _Path) -> list[_Recovery]:
    """Return the recoveries in order of time."""
    names = [name for name in RESENT if name in direction.marks and name not in _NOT_A_LOSS]
    found: list[_Recovery] = []
    for frame, by_timeout in sorted((frame, name == _TIMEOUT) for name in names for frame in direction.marks[name]["frame"].to_list()):
        row = bisect_left(path.frames, frame)
        if found and row < found[-1].end:
            found[-1] = found[-1]._replace(by_timeout=found[-1].by_timeout or by_timeout)
        elif 0 < row < len(path.frames):
            found.append(_Recovery(row, bisect_left(path.acked, path.sent(row - 1), row), by_timeout))
    return found


def _known(most: int) -> int | None:
    """Return the largest flight of a round trip with data; None if the round trip had no data, or only a SYN or FIN."""
    return most if most > 1 else None


def _line(points: Sequence[_Point]) -> pl.DataFrame:
    return pl.DataFrame(points, {"t_ns": pl.Int64, "y": pl.Int64, "frame": pl.UInt64}, orient="row")
