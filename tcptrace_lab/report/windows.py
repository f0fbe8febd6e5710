"""Where a finding is looked at closely: which frames, and every segment around them, kept while the capture goes by.

A finding names the frames that prove it. One place of them is shown: the longest wait that it is about, or, where the ledger has none, the
first frames. From there so many segments each way are kept, whatever the size of the capture.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tcptrace_lab.report import tracked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.findings import Finding

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
    """The rows of a place, with what `tracked.Tracker` says of them.

    Attributes:
        rows: in frame order; one more at either end than the times below hold, so that lines go through.
        from_ns, to_ns: the times that are shown, since the connection's first segment.
        omitted: segments in the middle that had no room.
    """

    rows: pl.DataFrame
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
    _tracked: pl.DataFrame = field(default_factory=pl.DataFrame)

    def pick(self, rows: pl.DataFrame) -> None:
        """Keep what belongs here of the next rows of the capture, in frame order, with all columns that are wanted of them."""
        if self._after.height >= AROUND_SEGMENTS:
            return
        is_own = pl.col("conn") == self.place.conn
        own, frames = rows.select(pl.arg_where(is_own).alias("place"), pl.col("frame").filter(is_own)).get_columns()
        begin, end = bisect_left(frames, self.place.first_frame), bisect_right(frames, self.place.last_frame)
        half = BETWEEN_SEGMENTS // 2
        between = own[begin:end]
        room = half - self._first.height
        beyond = between[room:]
        self._omitted += max(self._last.height + beyond.len() - half, 0)
        self._before = _with(self._before, rows, own[:begin].tail(AROUND_SEGMENTS)).tail(AROUND_SEGMENTS)
        self._first = _with(self._first, rows, between[:room])
        self._last = _with(self._last, rows, beyond.tail(half)).tail(half)
        self._after = _with(self._after, rows, own[end : end + AROUND_SEGMENTS - self._after.height])

    def follow(self, tracked_rows: pl.DataFrame) -> None:
        """The next rows of the connection, as `tracked.Tracker` gives them, behind those picked: what it says of these is kept."""
        parts = self._parts()
        frames = pl.concat([part["frame"] for part in parts]) if parts else pl.Series([], dtype=pl.UInt64)
        if frames.len() and tracked_rows.item(-1, "frame") >= frames[0] and tracked_rows.item(0, "frame") <= frames[-1]:
            told = [self._tracked, tracked_rows[["frame", *tracked.MADE]]]
            self._tracked = pl.concat([part for part in told if part.height]).filter(pl.col("frame").is_in(pl.lit(frames).implode()))

    def finish(self) -> Kept | None:
        """What was kept, cut to the times that are shown; None where the place was not met."""
        if self._first.is_empty():
            return None
        rows = pl.concat(self._parts()).join(self._tracked, on="frame", how="left", maintain_order="left")
        begin, end = self._before.height, rows.height - self._after.height - 1
        from_ns, to_ns = self._times(rows["t_ns"], rows.item(begin, "t_ns"), rows.item(end, "t_ns"))
        seen = pl.col("t_ns").is_between(from_ns, to_ns)
        near = seen | seen.shift(1, fill_value=False) | seen.shift(-1, fill_value=False)
        return Kept(rows.filter(near), from_ns, to_ns, self._omitted)

    def _parts(self) -> list[pl.DataFrame]:
        return [part for part in (self._before, self._first, self._last, self._after) if part.height]

    def _times(self, kept: pl.Series, start_ns: int, end_ns: int) -> tuple[int, int]:
        """What is shown: the time between the place's two ends, and margins as far as segments were kept."""
        least, most = (round(margin * (end_ns - start_ns)) for margin in self.place.margins)
        before, after = kept.filter(kept < start_ns).sort().tail(LEAST_AROUND), kept.filter(kept > end_ns).sort().head(LEAST_AROUND)
        wanted_from: list[Any] = [before.min() if before.len() else start_ns, kept.min()]
        wanted_to: list[Any] = [after.max() if after.len() else end_ns, kept.max()]
        if most == 0:
            return int(wanted_from[0]), int(wanted_to[0])
        from_ns = max(start_ns - most, min(start_ns - least, wanted_from[0]), wanted_from[1])
        to_ns = min(end_ns + most, max(end_ns + least, wanted_to[0]), wanted_to[1])
        return from_ns, to_ns


def _with(kept: pl.DataFrame, rows: pl.DataFrame, places: pl.Series) -> pl.DataFrame:
    """What was kept, and the rows at these places."""
    if places.is_empty():
        return kept
    return rows[places] if kept.is_empty() else pl.concat([kept, rows[places]])
