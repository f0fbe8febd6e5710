"""What is kept of one capture: its row of `captures`, and its rows of the other tables, in one file.

A part is a ZIP archive of `capture.json` and of Arrow IPC files, some rows each, so that tables larger than memory can be written and read.
One file a capture is one thing to bring to the disk, to rename, and to find again. It says nothing of where the capture was found.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from tcptrace_lab.schema import PART_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tcptrace_lab.schema import Table

CAPTURE = "capture.json"

LEVEL = 1
"""Of zlib: the 320 column names of one connection's row take 94 KB as they are, 16 KB at level 1, 14 KB at level 6."""

SLICE_BYTES = 32_000_000
"""Rows of about so many bytes are written, and read, together."""

_CELL_BYTES = 8

_WHEN = (1980, 1, 1, 0, 0, 0)
"""ZIP wants a time of each member; a part is to be the same whenever it is made."""


def slice_rows(table: Table) -> int:
    """Rows of a table that go together."""
    return SLICE_BYTES // (_CELL_BYTES * len(table.columns))


def write(path: Path, capture: Mapping[str, Any], tables: Mapping[str, Iterable[pl.DataFrame]]) -> None:
    """Write a part.

    Args:
        path: of the new file.
        capture: columns of `schema.CAPTURES` that are told by the capture itself.
        tables: frames of tables of `schema.PART_TABLES`, with their columns but `capture`, in the order of the table's rows.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for table in PART_TABLES:
            for number, frame in enumerate(_slices(table, tables.get(table.name, ()))):
                data = io.BytesIO()
                frame.write_ipc(data, compression="uncompressed")
                _add(archive, f"{table.name}.{number}", data.getbuffer())
        _add(archive, CAPTURE, json.dumps(dict(capture), sort_keys=True).encode())


def _add(archive: zipfile.ZipFile, name: str, data: bytes | memoryview) -> None:
    archive.writestr(zipfile.ZipInfo(name, _WHEN), bytes(data), compress_type=zipfile.ZIP_DEFLATED, compresslevel=LEVEL)


def _slices(table: Table, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The frames' rows in the table's columns, so many at a time, whatever the frames' sizes."""
    types = {name: dtype for name, dtype in table.polars_schema().items() if name != "capture"}
    names, dtypes = list(types), list(types.values())
    most = slice_rows(table)
    held: list[pl.DataFrame] = []
    rows = 0
    for frame in frames:
        own = frame[names]
        if own.dtypes != dtypes:
            own = own.with_columns(column.cast(types[column.name]) for column in own if column.dtype != types[column.name])
        held.append(own)
        rows += frame.height
        while rows >= most:
            whole = pl.concat(held)
            yield whole.head(most).rechunk()
            held, rows = [whole.slice(most)], rows - most
    if rows:
        yield pl.concat(held).rechunk()


class Part:
    """A part that is read."""

    def __init__(self, path: Path) -> None:
        """Open it. Raises zipfile.BadZipFile or OSError where that is not one."""
        self._archive = zipfile.ZipFile(path)
        self._members = set(self._archive.namelist())

    def __enter__(self) -> Self:
        """Itself; closed when the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._archive.close()

    @property
    def capture(self) -> dict[str, Any]:
        """What the capture itself tells of its row of `schema.CAPTURES`."""
        row: dict[str, Any] = json.loads(self._archive.read(CAPTURE))
        return row

    def frames(self, table: str) -> Iterator[pl.DataFrame]:
        """The rows of one table, some at a time; none if there are none."""
        number = 0
        while (name := f"{table}.{number}") in self._members:
            yield pl.read_ipc(io.BytesIO(self._archive.read(name)))
            number += 1
