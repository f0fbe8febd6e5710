"""Collects the segments and waits around a finding, while the capture is read, for the finding's figure.

A finding names its evidence frames. The figure shows one place: the longest wait of the finding, or its first frames if the ledger has no
such wait. A bounded number of segments before and after the place is kept, so that memory does not grow with the capture.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.findings.finding import Finding

AROUND_SEGMENTS = 150
"""Maximum number of segments of both directions that are kept before the place, and maximum number after the place."""

BETWEEN_SEGMENTS = 500
"""Maximum number of segments kept between the first and last frame of the place. If there are more, the segments in the middle are left
out."""

FIRST_FRAMES = 6
"""Number of evidence frames that define the place of a finding without a wait. A few frames show a repeated pattern (a heuristic)."""

MIN_AROUND = 20
"""Number of segments to show before and after the place, if the maximum margin allows."""

MIN_MARGIN, MAX_MARGIN = 2.0, 6.0
"""Minimum and maximum margin on both sides of a wait, as multiples of its duration (heuristics). The wait then takes a thirteenth to a
fifth of the figure's width. The margin is larger than the minimum only if fewer than `MIN_AROUND` segments are within the minimum."""

FRAMES_MARGIN = 0.25
"""Margin on both sides of a place without a wait, as a multiple of the time between its frames."""


class Place(NamedTuple):
    """The part of the capture that a finding's figure shows.

    Attributes:
        conn, from_client: the connection, and the direction whose data is drawn.
        first_ts_ns: time of the connection's first segment.
        causes: causes of the waits that the finding is about.
        first_frame, last_frame: the figure shows all segments between these frames, up to `BETWEEN_SEGMENTS`.
        margins: minimum and maximum margin on both sides, as multiples of the time between these frames.
        frames: all evidence frames of the finding.
    """

    conn: int
    from_client: bool
    first_ts_ns: int
    causes: frozenset[str]
    first_frame: int
    last_frame: int
    margins: tuple[float, float]
    frames: tuple[int, ...]


class Kept(NamedTuple):
    """The rows that were collected for a place.

    Attributes:
        rows: rows of `engine.figures.Tracker` in frame order: those from `from_ns` to `to_ns`, and one more row at each end, so that lines
            reach the edges.
        waits: start, end and cause of the direction's ledger intervals from `from_ns` to `to_ns`, in order of time.
        from_ns, to_ns: the time range of the figure, since the connection's first segment.
        omitted: number of segments left out in the middle.
    """

    rows: pl.DataFrame
    waits: list[tuple[int, int, str]]
    from_ns: int
    to_ns: int
    omitted: int


def place(finding: Finding, longest: pl.DataFrame, begins_ns: Mapping[int, int | None]) -> Place | None:
    """Return the place of a finding; None if the finding has no frames or no direction, or the capture has no timestamps.

    Args:
        finding: the finding, with its evidence frames in order.
        longest: rows of `schema.LEDGER`: the longest waits.
        begins_ns: connection → time of its first segment.
    """
    begin_ns = None if finding.conn is None else begins_ns.get(finding.conn)
    if finding.conn is None or finding.from_client is None or begin_ns is None or not finding.evidence_frames:
        return None
    frames = finding.evidence_frames
    wait = _longest_wait(finding, longest)
    ends = wait or (frames[0], frames[:FIRST_FRAMES][-1])
    margins = (MIN_MARGIN, MAX_MARGIN) if wait else (FRAMES_MARGIN, FRAMES_MARGIN)
    return Place(finding.conn, finding.from_client, begin_ns, finding.causes, *ends, margins, frames)


def _longest_wait(finding: Finding, longest: pl.DataFrame) -> tuple[int, int] | None:
    """Return the two frames around the longest wait of the finding, if both are evidence; None if there is no such wait."""
    own = longest.filter((longest["conn"] == finding.conn) & (longest["from_client"] == finding.from_client))
    frames = {*finding.evidence_frames}
    waits = [
        (end_ns - start_ns, -start_ns, (after if before is None else before, before if after is None else after))
        for cause, start_ns, end_ns, before, after in own[["cause", "start_ns", "end_ns", "frame_before", "frame_after"]].iter_rows()
        if cause in finding.causes
    ]
    named = (wait for wait in waits if frames.issuperset(wait[2]))
    return max(named, key=lambda wait: wait[:2], default=(0, 0, None))[2]


@dataclass(slots=True)
class Window:
    """Collects a bounded number of rows around a place."""

    place: Place
    _before: pl.DataFrame = field(default_factory=pl.DataFrame)
    _first: pl.DataFrame = field(default_factory=pl.DataFrame)
    _last: pl.DataFrame = field(default_factory=pl.DataFrame)
    _after: pl.DataFrame = field(default_factory=pl.DataFrame)
    _omitted: int = 0
    _waits: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """True if no later segment is needed."""
        return self._after.height >= AROUND_SEGMENTS

    def pick(self, rows: pl.DataFrame) -> None:
        """Take the next rows of the connection from this direction's `Tracker`, and collect those that the figure needs."""
        if self.is_full:
            return
        frames = rows["frame"]
        begin, end = bisect_left(frames, self.place.first_frame), bisect_right(frames, self.place.last_frame)
        half = BETWEEN_SEGMENTS // 2
        split = min(begin + half - self._first.height, end)
        self._omitted += max(self._last.height + end - split - half, 0)
        self._before = _with(self._before, rows, max(begin - AROUND_SEGMENTS, 0), begin).tail(AROUND_SEGMENTS)
        self._first = _with(self._first, rows, begin, split)
        self._last = _with(self._last, rows, max(end - half, split), end).tail(half)
        self._after = _with(self._after, rows, end, min(end + AROUND_SEGMENTS - self._after.height, rows.height))

    def wait(self, waits: pl.DataFrame) -> None:
        """Take the next intervals of the direction (`start_ns end_ns cause`), and collect those that the figure needs.

        Call this method after `pick` has received all segments.
        """
        if self._first.height:
            from_ns, to_ns = (self.place.first_ts_ns + time_ns for time_ns in self._range())
            shown = (waits["end_ns"] > from_ns) & (waits["start_ns"] < to_ns)
            if shown.any():
                self._waits += waits.filter(shown).rows()

    def finish(self) -> Kept | None:
        """Return the collected rows within the shown time range; None if the capture has no segment of the place."""
        if self._first.is_empty():
            return None
        from_ns, to_ns = self._range()
        seen = [from_ns <= time_ns <= to_ns for time_ns in self._times()]
        near = map(any, zip(seen, [False, *seen], [*seen[1:], False], strict=False))
        return Kept(pl.concat(self._parts()).filter(pl.Series(near, dtype=pl.Boolean)), self._waits, from_ns, to_ns, self._omitted)

    def _parts(self) -> list[pl.DataFrame]:
        return [part for part in (self._before, self._first, self._last, self._after) if part.height]

    def _times(self) -> list[int]:
        """Return the times of the kept segments, in ns since the connection's first segment."""
        return [time_ns for part in self._parts() for time_ns in part["t_ns"].to_list()]

    def _range(self) -> tuple[int, int]:
        """Return the time range of the figure: from the first to the last frame of the place, plus margins.

        A margin ends at the last segment that was kept.
        """
        kept = self._times()
        start_ns, end_ns = kept[self._before.height], kept[-1 - self._after.height]
        least, most = (round(margin * (end_ns - start_ns)) for margin in self.place.margins)
        before, after = sorted(time_ns for time_ns in kept if time_ns < start_ns), sorted(time_ns for time_ns in kept if time_ns > end_ns)
        wanted_from, wanted_to = before[-MIN_AROUND:][:1] or [start_ns], after[:MIN_AROUND][-1:] or [end_ns]
        if most == 0:
            return wanted_from[0], wanted_to[0]
        from_ns = max(start_ns - most, min(start_ns - least, wanted_from[0]), min(kept))
        to_ns = min(end_ns + most, max(end_ns + least, wanted_to[0]), max(kept))
        return from_ns, to_ns


def _with(kept: pl.DataFrame, rows: pl.DataFrame, begin: int, end: int) -> pl.DataFrame:
    """Append copies of the rows from index `begin` to `end`. A slice would keep all rows in memory."""
    if begin == end:
        return kept
    more = rows[pl.int_range(begin, end, eager=True)]
    return more if kept.is_empty() else pl.concat([kept, more])
