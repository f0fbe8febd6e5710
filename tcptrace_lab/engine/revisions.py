"""Revisions: what later segments prove about earlier ones, applied to the rows of the earlier ones.

The engine classifies a segment by what came before it. Later evidence may disprove the classification after the row was returned: a D-SACK,
a timestamp echo, an ACK that comes too soon for the retransmit, or the original captured after its retransmit. The engine records such
revisions up to a bound (reaching it is reported). The sources of segment rows apply them to the columns of `REVISED`, if a query asks for
one of these. Watchers of the first pass see the rows unrevised; the counters of `connections` are correct in any case.
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
    """The final values for each frame that was revised."""

    def __init__(self, revisions: pl.DataFrame) -> None:
        """Take `frame` and the columns of `REVISED`. If a frame has several revisions, the last counts."""
        self._last = revisions if revisions.is_empty() else revisions.unique("frame", keep="last").sort("frame")

    def touched(self, columns: Iterable[str]) -> set[str]:
        """Return which of these segment columns `of` changes, and the columns that it needs for that."""
        changed = set(REVISED).intersection(columns)
        return {"frame", *changed} if changed and not self._last.is_empty() else set()

    def of(self, segments: pl.DataFrame) -> pl.DataFrame:
        """Return some segment rows, revised.

        A source applies it to its rows. As a step of the query, it would make Polars buffer some thirty batches before a consumer that
        takes them one by one.
        """
        changed = self.touched(segments.columns) - {"frame"}
        return segments.with_columns(self._replaced(name, segments["frame"], segments[name]) for name in changed)

    def lazily(self, segments: pl.LazyFrame) -> pl.LazyFrame:
        """Return all segment rows, revised when they are collected."""
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
        """Return the column `name` for the rows of these frames, with the revised values."""
        revised, values = self._last["frame"], self._last[name]
        if not frames.is_between(revised[0], revised[-1]).any():
            return column
        places = revised.search_sorted(frames).clip(0, len(revised) - 1)
        return values.gather(places).zip_with(revised.gather(places) == frames, column)


NONE = Revisions(pl.DataFrame(schema={"frame": pl.UInt64, **{name: schema.SEGMENTS[name].polars_type() for name in REVISED}}))
