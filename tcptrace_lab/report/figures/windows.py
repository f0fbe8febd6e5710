"""Where a finding is looked at closely: which frames, and every segment and wait around them, kept while the capture goes by.

A finding names the frames that prove it. One place of them is shown: the longest wait that it is about, or, where the ledger has none, the
first frames. From there so many segments each way are kept, whatever the size of the capture.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.findings.finding import Finding

AROUND_SEGMENTS = 150
"""Segments of the connection, both directions, that are kept before the place and behind it."""

BETWEEN_SEGMENTS = 500
"""Segments kept from the first frame of the place to the last: where there are more, the first half and the last half of so many."""

FIRST_FRAMES = 6
"""Frames that make a place where no wait does: the first (a heuristic: what repeats is seen in a few)."""

LEAST_AROUND = 20
"""Segments shown on either side, if time allows."""

LEAST_MARGIN, MOST_MARGIN = 2.0, 6.0
"""Time shown on either side of a wait, as multiples of it: at least, and at most for the sake of `LEAST_AROUND` segments. (Heuristics: the
wait takes from a thirteenth to a fifth of the width.)"""

FRAMES_MARGIN = 0.25
"""The same where the place is no wait, but some frames."""


class Place(NamedTuple):
    """What is shown of one finding.

    Attributes:
        conn, from_client: the connection, and the direction whose data is drawn.
        first_ts_ns: the connection's first segment.
        causes: what the ledger calls the waits that the finding is about.
        first_frame, last_frame: all between them is shown, as far as there is room.
        margins: time shown on either side, as a multiple of the time between them: at least, and at most.
        frames: those that prove the finding, here and elsewhere.
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
    """What goes by at a place.

    Attributes:
        rows: as `tracked.Tracker` gives them, in frame order; one more at either end than the times below hold, so that lines go through.
        waits: begin, end and cause of the intervals of the direction in these times, in order of time.
        from_ns, to_ns: the times that are shown, since the connection's first segment.
        omitted: segments in the middle that had no room.
    """

    rows: pl.DataFrame
    waits: list[tuple[int, int, str]]
    from_ns: int
    to_ns: int
    omitted: int


def place(finding: Finding, longest: pl.DataFrame, begins_ns: Mapping[int, int | None]) -> Place | None:
    """Where to look at a finding; None where it names no frames, or no direction, or the capture has no times.

    Args:
        finding: with its frames in order.
        longest: rows of `schema.LEDGER`, the longest waits.
        begins_ns: the first segment of each connection.
    """
    begin_ns = None if finding.conn is None else begins_ns.get(finding.conn)
    if finding.conn is None or finding.from_client is None or begin_ns is None or not finding.evidence_frames:
        return None
    frames = finding.evidence_frames
    wait = _longest_wait(finding, longest)
    ends = wait or (frames[0], frames[:FIRST_FRAMES][-1])
    margins = (LEAST_MARGIN, MOST_MARGIN) if wait else (FRAMES_MARGIN, FRAMES_MARGIN)
    return Place(finding.conn, finding.from_client, begin_ns, finding.causes, *ends, margins, frames)


def _longest_wait(finding: Finding, longest: pl.DataFrame) -> tuple[int, int] | None:
    """The frames around the longest wait that the finding names."""
    own = longest.filter((pl.col("conn") == finding.conn) & (pl.col("from_client") == finding.from_client))
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
    """Keeps the rows of a place as they go by, never more than a bounded number."""

    place: Place
    _before: pl.DataFrame = field(default_factory=pl.DataFrame)
    _first: pl.DataFrame = field(default_factory=pl.DataFrame)
    _last: pl.DataFrame = field(default_factory=pl.DataFrame)
    _after: pl.DataFrame = field(default_factory=pl.DataFrame)
    _omitted: int = 0
    _waits: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """True if no later segment belongs here."""
        return self._after.height >= AROUND_SEGMENTS

    def pick(self, rows: pl.DataFrame) -> None:
        """Keep what belongs here of the next rows of the connection, as `tracked.Tracker` gives them for this direction."""
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
        """Keep what belongs here of the next rows of the connection's ledger; all its segments have gone by."""
        if self._first.height:
            from_ns, to_ns = (self.place.first_ts_ns + time_ns for time_ns in self._times())
            shown = (pl.col("end_ns") > from_ns) & (pl.col("start_ns") < to_ns)
            own = waits.filter(shown & (pl.col("from_client") == self.place.from_client))
            self._waits += own[["start_ns", "end_ns", "cause"]].iter_rows()

    def finish(self) -> Kept | None:
        """What was kept, cut to the times that are shown; None where the place was not met."""
        if self._first.is_empty():
            return None
        from_ns, to_ns = self._times()
        seen = pl.col("t_ns").is_between(from_ns, to_ns)
        near = seen | seen.shift(1, fill_value=False) | seen.shift(-1, fill_value=False)
        return Kept(pl.concat(self._parts()).filter(near), self._waits, from_ns, to_ns, self._omitted)

    def _parts(self) -> list[pl.DataFrame]:
        return [part for part in (self._before, self._first, self._last, self._after) if part.height]

    def _times(self) -> tuple[int, int]:
        """What is shown: the time between the place's two ends, and margins as far as segments were kept."""
        kept = pl.concat([part["t_ns"] for part in self._parts()])
        start_ns, end_ns = kept[self._before.height], kept[-1 - self._after.height]
        least, most = (round(margin * (end_ns - start_ns)) for margin in self.place.margins)
        before, after = kept.filter(kept < start_ns).sort().tail(LEAST_AROUND), kept.filter(kept > end_ns).sort().head(LEAST_AROUND)
        wanted_from: list[Any] = [before.min() if before.len() else start_ns, kept.min()]
        wanted_to: list[Any] = [after.max() if after.len() else end_ns, kept.max()]
        if most == 0:
            return int(wanted_from[0]), int(wanted_to[0])
        from_ns = max(start_ns - most, min(start_ns - least, wanted_from[0]), wanted_from[1])
        to_ns = min(end_ns + most, max(end_ns + least, wanted_to[0]), wanted_to[1])
        return from_ns, to_ns


def _with(kept: pl.DataFrame, rows: pl.DataFrame, begin: int, end: int) -> pl.DataFrame:
    """What was kept, and copies of the rows from one place to another: a slice would keep all others, too."""
    if begin == end:
        return kept
    more = rows[pl.int_range(begin, end, eager=True)]
    return more if kept.is_empty() else pl.concat([kept, more])
