"""Stores packets that do not fit into memory, and numbers them in the order in which they are added."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.engine.spill import Spill
from tcptrace_lab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT_PACKETS = 262_144
"""Maximum number of packets in memory, about 20 MB. Further packets go to temporary files."""

MAX_PIECES = 4_000_000
"""Maximum number of packets per store, counted as on the wire. Without a limit, a crafted capture could take very long."""


class Writer:
    """Collects packets in batches."""

    def __init__(self) -> None:
        """Start with no packets."""
        self._spill: Spill | None = None
        self._rows = 0

    def add(self, packets: pl.DataFrame) -> None:
        """Add a batch. All batches must have the same columns.

        Raises:
            UsageError: more than `MAX_PIECES` packets.
            OutputUnwritable: no space for temporary files.
        """
        if self._spill is None:
            self._spill = Spill({"row": pl.Int32(), **packets.schema}, KEPT_PACKETS)
        self._spill.add(packets.with_row_index("row", offset=self._rows).with_columns(pl.col("row").cast(pl.Int32)))
        self._rows += packets.height
        if self._rows > MAX_PIECES:
            raise UsageError(f"more than {MAX_PIECES:,} packets to compare", remedy="name one connection of the first with --connection")

    def finish(self) -> Packets:
        """Return all packets that were added."""
        return Packets(pl.LazyFrame() if self._spill is None else self._spill.finish(), self._rows)


class Packets:
    """Stored packets: the columns of the added batches, and `row` (0, 1, …)."""

    def __init__(self, rows: pl.LazyFrame, height: int) -> None:
        """`rows` has `height` rows, sorted by `row`."""
        self.rows = rows
        self.height = height

    def column(self, name: str) -> pl.Series:
        """Return one column, sorted by `row`."""
        return self.rows.select(name).collect().to_series()

    def of_keys(self, keys: Sequence[str], part: int, parts: int) -> pl.DataFrame:
        """Divide the packets into `parts` parts, and return `keys` and `row` of one part.

        Packets with equal values of the first two keys are in the part with the same number, in both captures.
        """
        wanted = self.rows if parts == 1 else self.rows.filter(pl.struct(keys[:2]).hash(seed=0) % parts == part)
        return wanted.select(*keys, "row").collect()
