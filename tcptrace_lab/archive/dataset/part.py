"""A *part* is a file with the results of one capture: one row for the table `captures`, and the rows for all other tables.

A part is a ZIP archive of `capture.json` and Arrow IPC streams. Polars writes and reads IPC streams several times as fast as IPC files.
Each stream has a limited number of rows, so that tables larger than memory can be written and read. A part is a single file, which one
fsync and one rename store safely. A part does not contain the path of its capture.
"""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from tcptrace_lab.schema import PART_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tcptrace_lab.schema import Table

CAPTURE = "capture.json"

LEVEL = 1
"""zlib level. One connection's row of 386 columns takes 84 kB uncompressed, 13 kB at level 1, and 11 kB at level 6."""

SLICE_BYTES = 32_000_000
"""Approximate size in bytes of the rows in one IPC stream."""

_CELL_BYTES = 8

_WHEN = (1980, 1, 1, 0, 0, 0)
"""ZIP requires a time for each member. This time is constant, so that equal results give identical parts."""


def slice_rows(table: Table) -> int:
    """Return the number of rows of this table that one IPC stream contains."""
    return SLICE_BYTES // (_CELL_BYTES * len(table.columns))


def write(path: Path, capture: Mapping[str, Any], tables: Mapping[str, Iterable[pl.DataFrame]]) -> None:
    """Write a part.

    Args:
        path: the new file.
        capture: the columns of `schema.CAPTURES` that depend only on the capture's contents.
        tables: rows of each table of `schema.PART_TABLES`, in order, as Polars frames of any size, with all columns except `capture`.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for table in PART_TABLES:
            for number, frame in enumerate(_slices(table, tables.get(table.name, ()))):
                data = io.BytesIO()
                frame.write_ipc_stream(data, compression="uncompressed")
                _add(archive, f"{table.name}.{number}", data.getbuffer())
        _add(archive, CAPTURE, json.dumps(dict(capture), sort_keys=True).encode())


def _add(archive: zipfile.ZipFile, name: str, data: bytes | memoryview) -> None:
    archive.writestr(zipfile.ZipInfo(name, _WHEN), bytes(data), compress_type=zipfile.ZIP_DEFLATED, compresslevel=LEVEL)


def _slices(table: Table, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    most = slice_rows(table)
    pending: list[pl.DataFrame] = []
    rows = 0
    for frame in frames:
        own = _stored(table, frame)
        pending.append(own)
        rows += frame.height
        while rows >= most:
            whole = pl.concat(pending)
            yield whole.head(most).rechunk()
            pending, rows = [whole.slice(most)], rows - most
    if rows:
        yield pl.concat(pending).rechunk()


def _stored(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    names, strings = _columns(table)
    own = frame[names]
    for place in strings:
        own.replace_column(place, own.to_series(place).cast(pl.String))
    return own


@cache
def _columns(table: Table) -> tuple[list[str], list[int]]:
    """Return the names of a table's columns except `capture`, and the indices of the string columns."""
    own = [column for column in table if column.name != "capture"]
    return [column.name for column in own], [place for place, column in enumerate(own) if column.dtype == "String"]


class Part:
    """A part that is open for reading. As a context manager, it closes its file when the `with` block ends."""

    def __init__(self, path: Path) -> None:
        """Open a part. Raises zipfile.BadZipFile if the file is damaged, OSError if it cannot be read."""
        self._archive = zipfile.ZipFile(path)
        self._members = set(self._archive.namelist())

    def __enter__(self) -> Self:
        """Return this part."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the part."""
        self._archive.close()

    @property
    def capture(self) -> dict[str, Any]:
        """The columns of `schema.CAPTURES` that depend only on the capture's contents."""
        row: dict[str, Any] = json.loads(self._archive.read(CAPTURE))
        return row

    def frames(self, table: str) -> Iterator[pl.DataFrame]:
        """Yield the rows of one table, with one Polars frame per IPC stream. An empty table yields nothing."""
        number = 0
        while (name := f"{table}.{number}") in self._members:
            yield pl.read_ipc_stream(io.BytesIO(self._archive.read(name)))
            number += 1
