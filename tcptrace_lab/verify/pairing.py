"""Two tables of one capture as one: the engine's segments and tshark's, joined by frame, some at a time.

Both come in capture order, in batches that end anywhere. Whoever is behind is asked next, so that little more than a batch of each is held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

THEIRS = "their_"
"""Stands before tshark's columns in the joined table."""

_FOREVER = 1 << 63
"""Past every frame: its side has ended."""


class _Side:
    """Batches of one side that are not joined yet."""

    def __init__(self, batches: Iterator[pl.DataFrame]) -> None:
        self._batches = batches
        self._held: list[pl.DataFrame] = []
        self.empty: pl.DataFrame | None = None
        self.through = -1

    def pull(self) -> None:
        """The next batch, if there is one."""
        batch = next(self._batches, None)
        if batch is None:
            self.through = _FOREVER
            return
        self.empty = batch.clear()
        if batch.height:
            self._held.append(batch)
            self.through = int(batch.item(-1, "frame"))

    def take(self, through: int) -> pl.DataFrame | None:
        """What is held up to the frame `through`; None if nothing was ever given."""
        if not self._held:
            return self.empty
        held = pl.concat(self._held)
        taken = held.filter(pl.col("frame") <= through)
        rest = held.slice(taken.height)
        self._held = [rest] if rest.height else []
        return taken


def paired(ours: Iterator[pl.DataFrame], theirs: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Rows of both by `frame`, in its order: the engine's columns as they are, tshark's with `their_` before them.

    A frame that only one side has is a row with nulls for the other: `frame` is always there, `ours` and `theirs` tell who has it.
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
    """Segments of the engine and of tshark side by side."""
    others = theirs.select(pl.col("frame"), pl.lit(value=True).alias("theirs"), pl.exclude("frame").name.prefix(THEIRS))
    mine = ours.with_columns(pl.lit(value=True).alias("ours"))
    both = mine.join(others, on="frame", how="full", coalesce=True).sort("frame", maintain_order=True)
    return both.with_columns(pl.col("ours", "theirs").fill_null(value=False))
