"""What later segments show of earlier ones, put into the rows of the earlier ones.

The engine judges a segment by what came before it. A D-SACK, a timestamp echo, an ACK that comes too soon, or the original behind its
resend may prove a verdict wrong when its row has left already. The engine remembers such revisions (up to a bound that it tells of), and
the lazy frame of segments applies them: to the columns of `REVISED`, morsel by morsel, and only where a query asks for one of these.
Watchers of the first pass see the rows unrevised; the counters of `connections` are right either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import schema

if TYPE_CHECKING:
    from collections.abc import Callable

REVISED = ("kind", "evidence", "evidence_frame", "confidence")
"""Columns of `schema.SEGMENTS` that a revision replaces."""


def revised(segments: pl.LazyFrame, revisions: pl.DataFrame) -> pl.LazyFrame:
    """`segments` with the last word on every frame.

    Args:
        segments: rows of `schema.SEGMENTS`, at least `frame`.
        revisions: `frame` and the columns of `REVISED`; of several for one frame the last counts.
    """
    if revisions.is_empty():
        return segments
    last = revisions.unique("frame", keep="last").sort("frame")
    return segments.with_columns(
        pl.struct("frame", name)
        .map_batches(_replacing(last["frame"], last[name]), return_dtype=schema.SEGMENTS[name].polars_type(), is_elementwise=True)
        .alias(name)
        for name in segments.collect_schema().names()
        if name in REVISED
    )


def _replacing(frames: pl.Series, values: pl.Series) -> Callable[[pl.Series], pl.Series]:
    """A function of a struct of `frame` and one column: that column, with `values` where `frames` says. `frames` are sorted."""
    first, last = frames[0], frames[-1]

    def replace(rows: pl.Series) -> pl.Series:
        own, column = (rows.struct.field(name) for name in rows.struct.fields)
        if not own.is_between(first, last).any():
            return column
        places = frames.search_sorted(own).clip(0, len(frames) - 1)
        return values.gather(places).zip_with(frames.gather(places) == own, column)

    return replace
