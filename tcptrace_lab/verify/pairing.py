"""Joins the engine's segments and tshark's segments by frame number, in batches.

Both tables are in capture order. Their batches can have any size. The next batch is read from the table that is behind, so memory holds
little more than one batch of each table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

THEIRS = "their_"
"""Prefix of tshark's columns in the joined table."""

_FOREVER = 1 << 63
"""Frame number at the end of a table. It is larger than any real frame number."""


class _Side:
    """Batches of one table that are not yet joined."""

    def __init__(self, batches: Iterator[pl.DataFrame]) -> None:
        self._batches = batches
        self._held: list[pl.DataFrame] = []
        self.empty: pl.DataFrame | None = None
        self.through = -1

    def pull(self) -> None:
        """Read the next batch, if there is one."""
        batch = next(self._batches, None)
        if batch is None:
            self.through = _FOREVER
            return
        self.empty = batch.clear()
        if batch.height:
            self._held.append(batch)
            self.through = int(batch.item(-1, "frame"))

    def take(self, through: int) -> pl.DataFrame | None:
        """Remove and return the rows up to frame `through`; None if no batch was ever read."""
        if not self._held:
            return self.empty
        held = pl.concat(self._held)
        taken = held.filter(pl.col("frame") <= through)
        rest = held.slice(taken.height)
        self._held = [rest] if rest.height else []
        return taken


def paired(ours: Iterator[pl.DataFrame], theirs: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the rows of both tables, joined by `frame` and in frame order. tshark's columns have the prefix `their_`.

    If a frame is in only one table, the columns of the other table are null. `frame` is never null. The columns `ours` and `theirs` say
    which tables contain the frame.
    """
    left, right = _Side(ours), _Side(theirs.__iter__())
    left.pull()
    right.pull()
    while True:
        through = min(left.through, right.through)
        mine, others = left.take(through), right.take(through)
        if mine is not None and others is not None and (mine.height or others.height):
            yield joined(mine, others)
        if through == _FOREVER:
            return
        (left if left.through <= right.through else right).pull()


def joined(ours: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Join two batches of the engine's and tshark's segments by frame."""
    others = theirs.select(pl.col("frame"), pl.lit(value=True).alias("theirs"), pl.exclude("frame").name.prefix(THEIRS))
    mine = ours.with_columns(pl.lit(value=True).alias("ours"))
    both = mine.join(others, on="frame", how="full", coalesce=True).sort("frame", maintain_order=True)
    return both.with_columns(pl.col("ours", "theirs").fill_null(value=False))
