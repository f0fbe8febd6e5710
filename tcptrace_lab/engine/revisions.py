"""Applies revisions to segment rows. A revision changes the kind of a segment after later segments disproved its first kind.

The engine classifies a segment by the segments before it, and returns its row. Later evidence can disprove the classification. Such
evidence is a D-SACK, a timestamp echo, an ACK that arrives too soon after the retransmission, or an original that is captured after its
retransmission.

The engine records a limited number of revisions, and reports whether there were more. Sources of segment rows apply the revisions if a
query needs one of the columns `REVISED`. Watchers of the first pass receive the rows without revisions. The counters of `connections`
always include the revisions.
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
    """The final values of all revised segments, by frame."""

    def __init__(self, revisions: pl.DataFrame) -> None:
        """Store the revisions: rows with `frame` and the columns of `REVISED`. If a frame has several revisions, the last one applies."""
        self._last = revisions if revisions.is_empty() else revisions.unique("frame", keep="last").sort("frame")

    def touched(self, columns: Iterable[str]) -> set[str]:
        """Return the names in `columns` that `of` changes, together with `frame`, because `of` needs it. Empty if `of` changes none."""
        changed = set(REVISED).intersection(columns)
        return {"frame", *changed} if changed and not self._last.is_empty() else set()

    def of(self, segments: pl.DataFrame) -> pl.DataFrame:
        """Return segment rows with revisions applied.

        A source of rows calls `of` for each batch. A step in the lazy query would do as well, but Polars would then buffer about thirty
        batches for a consumer that takes one at a time.
        """
        changed = self.touched(segments.columns) - {"frame"}
        return segments.with_columns(self._replaced(name, segments["frame"], segments[name]) for name in changed)

    def lazily(self, segments: pl.LazyFrame) -> pl.LazyFrame:
        """Return lazy segment rows. Revisions are applied when the rows are collected."""
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
        """Return the column `name` for the rows of these frames, with revised values."""
        revised, values = self._last["frame"], self._last[name]
        if not frames.is_between(revised[0], revised[-1]).any():
            return column
        places = revised.search_sorted(frames).clip(0, len(revised) - 1)
        return values.gather(places).zip_with(revised.gather(places) == frames, column)


NONE = Revisions(pl.DataFrame(schema={"frame": pl.UInt64, **{name: schema.SEGMENTS[name].polars_type() for name in REVISED}}))
