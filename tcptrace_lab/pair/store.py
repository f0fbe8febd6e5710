"""Packets that may outgrow memory, numbered in the order of adding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.engine.spill import Spill
from tcptrace_lab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT_PACKETS = 262_144
"""Packets kept in memory, about 20 MB; beyond them they go to temporary files."""

MOST_PIECES = 4_000_000
"""Packets of both captures that are laid side by side, as on the wire. A capture made to be slow has more."""


class Writer:
    """Takes packets some at a time."""

    def __init__(self) -> None:
        """None yet."""
        self._spill: Spill | None = None
        self._rows = 0

    def add(self, packets: pl.DataFrame) -> None:
        """Some more, all with the same columns.

        Raises:
            UsageError: there are more than `MOST_PIECES`.
            OutputUnwritable: the temporary files have no room.
        """
        if self._spill is None:
            self._spill = Spill({"row": pl.Int32(), **packets.schema}, KEPT_PACKETS)
        self._spill.add(packets.with_row_index("row", offset=self._rows).with_columns(pl.col("row").cast(pl.Int32)))
        self._rows += packets.height
        if self._rows > MOST_PIECES:
            raise UsageError(
                f"more than {MOST_PIECES:,} packets to lay side by side", remedy="name one connection of the first with --connection"
            )

    def finish(self) -> Packets:
        """All of them."""
        return Packets(pl.LazyFrame() if self._spill is None else self._spill.finish(), self._rows)


class Packets:
    """Packets with the columns that they were added with, and `row`: 0, 1, and so on."""

    def __init__(self, rows: pl.LazyFrame, height: int) -> None:
        """`rows` are `height` rows in order."""
        self.rows = rows
        self.height = height

    def column(self, name: str) -> pl.Series:
        """One column, by row."""
        return self.rows.select(name).collect().to_series()

    def of_keys(self, keys: Sequence[str], part: int, parts: int) -> pl.DataFrame:
        """`keys` and `row` of one of so many parts; packets whose first two keys are the same are in one part, in whatever capture."""
        wanted = self.rows if parts == 1 else self.rows.filter(pl.struct(keys[:2]).hash(seed=0) % parts == part)
        return wanted.select(*keys, "row").collect()
