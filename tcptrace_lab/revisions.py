"""What later segments show of earlier ones, put into the rows of the earlier ones.

The engine judges a segment by what came before it. A D-SACK, a timestamp echo, an ACK that comes too soon, or the original behind its
resend may prove a verdict wrong when its row has left already. The engine remembers such revisions (up to a bound that it tells of), and
whoever gives out the rows of segments applies them: to the columns of `REVISED`, and only where a query asks for one of these.
Watchers of the first pass see the rows unrevised; the counters of `connections` are right either way.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import schema

if TYPE_CHECKING:
    from collections.abc import Iterable

REVISED = ("kind", "evidence", "evidence_frame", "confidence")
"""Columns of `schema.SEGMENTS` that a revision replaces."""


class Revisions:
    """The last word on each frame that there is one on."""

    def __init__(self, revisions: pl.DataFrame) -> None:
        """Of `frame` and the columns of `REVISED`; of several for one frame the last counts."""
        self._last = revisions if revisions.is_empty() else revisions.unique("frame", keep="last").sort("frame")

    def touched(self, columns: Iterable[str]) -> set[str]:
        """Those of these columns of segments that `of` changes, and what it needs for that."""
        changed = set(REVISED).intersection(columns)
        return {"frame", *changed} if changed and not self._last.is_empty() else set()

    def of(self, segments: pl.DataFrame) -> pl.DataFrame:
        """Some rows of segments, revised.

        Whoever makes the rows of a query applies it to them: as a step of the query, it would have Polars hold some thirty batches on
        their way to one who takes them one by one.
        """
        changed = self.touched(segments.columns) - {"frame"}
        return segments.with_columns(self._replaced(name, segments["frame"], segments[name]) for name in changed)

    def lazily(self, segments: pl.LazyFrame) -> pl.LazyFrame:
        """All rows of segments, revised as they are asked for."""
        changed = self.touched(segments.collect_schema().names()) - {"frame"}
        return segments.with_columns(
            pl.struct("frame", name)
            .map_batches(partial(self._replaced_in, name), return_dtype=schema.SEGMENTS[name].polars_type(), is_elementwise=True)
            .alias(name)
            for name in changed
        )

    def _replaced_in(self, name: str, rows: pl.Series) -> pl.Series:
        return self._replaced(name, *(rows.struct.field(field) for field in rows.struct.fields))

    def _replaced(self, name: str, frames: pl.Series, column: pl.Series) -> pl.Series:
        """The column of this name of the rows of these frames, with the last word on each."""
        revised, values = self._last["frame"], self._last[name]
        if not frames.is_between(revised[0], revised[-1]).any():
            return column
        places = revised.search_sorted(frames).clip(0, len(revised) - 1)
        return values.gather(places).zip_with(revised.gather(places) == frames, column)


NONE = Revisions(pl.DataFrame(schema={"frame": pl.UInt64, **{name: schema.SEGMENTS[name].polars_type() for name in REVISED}}))
