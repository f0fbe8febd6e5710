"""Sorts rows by connection, and writes them to files of bounded size. The rows arrive in capture order.

A query about one connection reads only the files with its rows. Neighbouring connections share a file; a connection with more than
`FILE_ROWS` rows has files of its own. Rows wait in temporary files until all rows of their connection have arrived, so memory is bounded.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from tcptrace_lab.engine import memory
from tcptrace_lab.engine.spill import COMPRESSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

FILE_ROWS = 524_288
"""Maximum number of rows of a file. That many segments take about 110 MB, and twice as much while they are sorted."""

GROUP_ROWS = 16_384
"""Number of rows that are decoded together when a file is read. A query about a small connection decodes one or two such groups."""

_HELD_ROWS = 262_144
"""If a table has this many rows in memory, the rows are written to temporary files."""


class Shares(NamedTuple):
    """The division of connections into groups that share a file.

    Attributes:
        of: number of a connection → number of its group. The group numbers never decrease.
        large: numbers of groups that consist of one connection with more than `FILE_ROWS` rows.
    """

    of: NDArray[np.int64]
    large: frozenset[int]

    @classmethod
    def by_rows(cls, rows: NDArray[np.int64], file_rows: int = FILE_ROWS) -> Shares:
        """Divide the connections by their numbers of rows."""
        is_large = rows > file_rows
        starts = np.zeros(len(rows), np.int64)
        held = 0
        for conn, (count, large) in enumerate(zip(rows.tolist(), is_large.tolist(), strict=True)):
            after_large = conn > 0 and bool(is_large[conn - 1])
            if conn > 0 and (large or after_large or held + count > file_rows):
                starts[conn], held = 1, 0
            held += count
        groups = np.cumsum(starts)
        return cls(groups, frozenset(groups[is_large].tolist()))


class Files:
    """Writes a table into a folder: files named `NAME-00000.parquet`, and `NAME.json` with the connections of each file."""

    def __init__(self, folder: Path, name: str, schema: Mapping[str, pl.DataType]) -> None:
        """Start without rows. The columns of `schema` are written; `conn` must be one of them."""
        self.columns = list(schema)
        self._place = str(folder / name)
        self._index: list[tuple[int, int, str]] = []
        pl.DataFrame(schema=dict(schema)).write_parquet(f"{self._place}-none.parquet")

    def write(self, rows: pl.LazyFrame, low: int, high: int) -> None:
        """Write a file with these rows, which are sorted by connection. All connections are from `low` to `high`."""
        path = f"{self._place}-{len(self._index):05}.parquet"
        rows.select(self.columns).sink_parquet(path, compression=COMPRESSION, row_group_size=GROUP_ROWS)
        self._index.append((low, high, Path(path).name))
        memory.give_back()

    def finish(self) -> None:
        """Write `NAME.json`."""
        Path(f"{self._place}.json").write_text(json.dumps(sorted(self._index)))


class Writer:
    """Sorts the rows of a table by connection, and writes them to `Files`."""

    def __init__(self, folder: Path, name: str, schema: Mapping[str, pl.DataType], shares: Shares) -> None:
        """Start without rows. `Files` describes the arguments."""
        self._files = Files(folder, name, schema)
        self._place = folder / name
        self._shares = shares
        self._held: list[pl.DataFrame] = []
        self._held_rows = 0
        self._waiting: dict[int, list[Path]] = defaultdict(list)
        self._waiting_rows: dict[int, int] = defaultdict(int)

    def add(self, rows: pl.DataFrame) -> None:
        """Add rows. The rows of a connection stay in this order."""
        if rows.is_empty():
            return
        self._held.append(rows.select(self._files.columns))
        self._held_rows += rows.height
        if self._held_rows >= _HELD_ROWS:
            self._set_down()

    def finish(self) -> None:
        """Write all files."""
        self._set_down()
        for group in sorted(self._waiting):
            self._write(group)
        self._files.finish()

    def _set_down(self) -> None:
        """Write the rows in memory to the temporary files of their groups."""
        if not self._held:
            return
        rows = pl.concat(self._held)
        self._held, self._held_rows = [], 0
        group = pl.Series("group", self._shares.of)[rows["conn"].cast(pl.Int64)]
        if group.n_unique() == 1:
            self._wait(int(group[0]), rows)
            return
        for (number,), part in rows.with_columns(group).partition_by("group", as_dict=True, include_key=False, maintain_order=True).items():
            self._wait(int(number), part)

    def _wait(self, group: int, rows: pl.DataFrame) -> None:
        place = self._place.with_name(f"{self._place.name}-{group}-{len(self._waiting[group])}.waiting")
        rows.write_ipc(place, compression="lz4")
        self._waiting[group].append(place)
        self._waiting_rows[group] += rows.height
        if group in self._shares.large and self._waiting_rows[group] >= FILE_ROWS:
            self._write(group)

    def _write(self, group: int) -> None:
        places = self._waiting.pop(group)
        del self._waiting_rows[group]
        low, after = np.searchsorted(self._shares.of, [group, group + 1]).tolist()
        rows = pl.concat([pl.scan_ipc(place) for place in places])
        self._files.write(rows.sort("conn", maintain_order=True) if low + 1 < after else rows, low, after - 1)
        for place in places:
            place.unlink()


class Reader:
    """Reads a table that `Files` has written."""

    def __init__(self, folder: Path, name: str) -> None:
        """Read the list of files."""
        self._none = folder / f"{name}-none.parquet"
        self._files = [(low, high, folder / file) for low, high, file in json.loads((folder / f"{name}.json").read_text())]

    def of(self, conn: int) -> pl.LazyFrame:
        """Return the rows of one connection, in order."""
        paths = [path for low, high, path in self._files if low <= conn <= high]
        return pl.scan_parquet(paths or [self._none]).filter(pl.col("conn") == conn)

    def all(self) -> pl.LazyFrame:
        """Return all rows, sorted by connection."""
        return pl.scan_parquet([path for *_, path in self._files] or [self._none])
