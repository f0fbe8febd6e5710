"""Where a finding is looked at closely: which frames, and every segment around them, kept while the capture goes by.

A finding names the frames that prove it. One place of them is shown: the longest wait that it is about, or, where the ledger has none, the
first frames. From there so many segments each way are kept, whatever the size of the capture.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


@dataclass(frozen=True, slots=True)
class Place:
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


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of a place, as `tracked.Tracker` gives them.

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
    col = pl.col
    frames = list(finding.evidence_frames)
    known = longest.with_columns(col("cause").cast(pl.String), before=col("frame_before").fill_null(col("frame_after"))).with_columns(
        after=col("frame_after").fill_null(col("before"))
    )
    own = (col("conn") == finding.conn) & (col("from_client") == finding.from_client) & col("cause").is_in(finding.causes)
    named = col("before").is_in(frames) & col("after").is_in(frames)
    waits = known.filter(own & named).top_k(1, by=[col("end_ns") - col("start_ns"), "start_ns"], reverse=[False, True])
    return None if waits.is_empty() else waits.select("before", "after").row(0)


@dataclass(slots=True)
class Window:
    """Keeps the rows of a place as they go by, never more than a bounded number."""

    place: Place
    _before: list[pl.DataFrame] = field(default_factory=list)
    _first: list[pl.DataFrame] = field(default_factory=list)
    _last: list[pl.DataFrame] = field(default_factory=list)
    _after: list[pl.DataFrame] = field(default_factory=list)
    _omitted: int = 0

    def add(self, rows: pl.DataFrame) -> None:
        """The next rows of the connection, both directions, in frame order."""
        frame = pl.col("frame")
        if _height(self._after) >= AROUND_SEGMENTS:
            return
        before = rows.filter(frame < self.place.first_frame).tail(AROUND_SEGMENTS)
        self._before = [pl.concat([*self._before, before]).tail(AROUND_SEGMENTS)]
        self._between(rows.filter(frame.is_between(self.place.first_frame, self.place.last_frame)))
        self._after.append(rows.filter(frame > self.place.last_frame).head(AROUND_SEGMENTS - _height(self._after)))

    def _between(self, rows: pl.DataFrame) -> None:
        half = BETWEEN_SEGMENTS // 2
        room = half - _height(self._first)
        self._first.append(rows.head(room))
        last = pl.concat([*self._last, rows.slice(room)])
        self._omitted += max(last.height - half, 0)
        self._last = [last.tail(half)]

    def finish(self) -> Kept | None:
        """What was kept, cut to the times that are shown; None where the place was not met."""
        middle = pl.concat([*self._first, *self._last]) if self._first else pl.DataFrame()
        if middle.is_empty():
            return None
        rows = pl.concat([*self._before, middle, *self._after])
        from_ns, to_ns = self._times(rows["t_ns"], int(middle[0, "t_ns"]), int(middle[-1, "t_ns"]))
        seen = pl.col("t_ns").is_between(from_ns, to_ns)
        near = seen | seen.shift(1, fill_value=False) | seen.shift(-1, fill_value=False)
        return Kept(rows.filter(near), from_ns, to_ns, self._omitted)

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


def _height(parts: Sequence[pl.DataFrame]) -> int:
    return sum(part.height for part in parts)
