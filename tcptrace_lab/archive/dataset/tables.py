"""Builds the Parquet dataset from the parts.

Each table is partitioned by month. A month with many captures is also partitioned by the first digit of the capture names.

The bytes of a Parquet file depend only on its captures. To achieve this, captures are sorted by name, and files and row groups have fixed
numbers of rows. Each file is written from one contiguous Polars frame. A partition is rewritten only if its inputs have changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

import polars as pl

from tcptrace_lab.archive.dataset import part as parts
from tcptrace_lab.archive.storage import SAVE_S, part_name
from tcptrace_lab.errors import OutputUnwritable, as_os_error
from tcptrace_lab.schema import ARCHIVE_TABLES, PART_TABLES, STORE_VERSION
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tcptrace_lab.archive.registry import Known, Registry
    from tcptrace_lab.archive.storage import Place
    from tcptrace_lab.schema import Table

BUILT = "state/built.json"

FEW = 256
"""Maximum number of captures of a month that is a single partition.

A month with more captures has one partition for each first digit of the captures' names.
"""

FILE_SLICES = 8
"""Number of slices (`part.SLICE_BYTES`) per file. The slices of one file take about 256 MB of memory."""

ROW_GROUP_ROWS = 65_536

UNKNOWN_MONTH = "unknown"

_CAPTURES, _FILES, _PROBLEMS = "captures", "files", "problems"


class Source(NamedTuple):
    """A capture whose rows go into a table.

    Attributes:
        capture: name of the capture.
        part: the file with its results; empty if there is none.
        paths: paths of its files.
        failure: why the capture could not be analyzed; None if it was analyzed.
    """

    capture: str
    part: str
    paths: tuple[str, ...]
    failure: str | None


class TablePartition(NamedTuple):
    """One partition of one table, to be written from parts."""

    table: str
    partition: str
    sources: tuple[Source, ...]


@dataclass(slots=True)
class Built:
    """The files that the last build of the dataset wrote, and their inputs.

    Attributes:
        partitions: partition of a table → hash of its inputs, and its files.
        rows: part name → row of its capture, so that the part need not be opened again.
    """

    partitions: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    _saved_s: float = field(default_factory=time.monotonic)

    @classmethod
    def at(cls, place: Place) -> Built:
        """Load what the last build saved. If that build had another format version, nothing is loaded."""
        saved: dict[str, Any] = json.loads(place.read(BUILT) or b"{}")
        if saved.get("store_version") != STORE_VERSION:
            return cls()
        return cls({name: (fields[0], fields[1]) for name, fields in saved["partitions"].items()}, saved["rows"])

    def is_current(self, stem: str, made_of: str, there: Collection[str]) -> bool:
        """Return whether all files of a partition exist and were built from these inputs. `there` contains the existing files."""
        before = self.partitions.get(stem)
        return before is not None and before[0] == made_of and set(before[1]) <= set(there)

    def save(self, place: Place) -> None:
        """Save the files and their inputs in the archive. Raises OutputUnwritable."""
        document = {"store_version": STORE_VERSION, "partitions": self.partitions, "rows": self.rows}
        place.write(BUILT, json.dumps(document, sort_keys=True).encode())
        self._saved_s = time.monotonic()

    def save_sometimes(self, place: Place) -> None:
        """Save if the last save was more than `SAVE_S` seconds ago. If a build is killed, the next build continues from the last save."""
        if time.monotonic() - self._saved_s > SAVE_S:
            self.save(place)


def build(
    place: Place,
    registry: Registry,
    settings: str,
    lost: Mapping[str, str],
    write_all: Callable[[Sequence[TablePartition]], Iterable[tuple[str, list[str]]]] | None = None,
) -> pl.DataFrame:
    """Write the tables of the dataset whose inputs have changed since the last build.

    Args:
        place: the archive.
        registry: captures of the archive.
        settings: settings of the parts to use. If a capture has no such part, its last part is used.
        lost: name → reason, for each capture that could not be analyzed in this run.
        write_all: calls `write` for each partition, in any order and in any process, and returns the results. If None, this process writes
            all partitions.

    Returns:
        Rows of `schema.CAPTURES`, sorted by name.

    Raises:
        OutputUnwritable: the disk is full, permission is denied, or a part is damaged.
    """
    built = Built.at(place)
    part_sizes = place.names("parts")
    captures = {name: _row(place, built, part_sizes, settings, name, known, lost) for name, known in sorted(registry.captures.items())}
    there = place.names("tables")
    partitions = _partitions(captures)
    of_files, made_of_files = _stem(_FILES, _FILES), _hashed([_file_rows(registry), sorted(registry.unreadable.items()), len(captures)])
    inputs = {of_files: made_of_files}
    for partition, names in partitions.items():
        made_of = _hashed([[captures[name].row, captures[name].part, registry.captures[name].places[0]] for name in names])
        inputs |= {_stem(table, partition): made_of for table in (_CAPTURES, *(table.name for table in PART_TABLES))}
    missing = {stem for stem, made_of in inputs.items() if not built.is_current(stem, made_of, there)}

    of_parts: list[TablePartition] = []
    for partition, names in partitions.items():
        if (stem := _stem(_CAPTURES, partition)) in missing:
            rows = _frame(ARCHIVE_TABLES[_CAPTURES], [captures[name].row for name in names])
            built.partitions[stem] = inputs[stem], _write(place, _CAPTURES, partition, [rows])
        sources = tuple(_source(captures[name], registry.captures[name].places[0]) for name in names)
        of_parts += [TablePartition(table.name, partition, sources) for table in PART_TABLES if _stem(table.name, partition) in missing]
    for stem, files in (write_all or partial(_write_in_turn, place))(of_parts):
        built.partitions[stem] = inputs[stem], files
        built.save_sometimes(place)
    if of_files in missing:
        built.partitions[of_files] = made_of_files, _write_files(place, registry)

    built.partitions = {stem: built.partitions[stem] for stem in inputs}
    built.rows = {each.part: built.rows[each.part] for each in captures.values() if each.part in built.rows}
    kept = {name for _, files in built.partitions.values() for name in files}
    for name in place.names("tables"):
        if name not in kept:
            place.remove(name)
    built.save(place)
    return _frame(ARCHIVE_TABLES[_CAPTURES], [each.row for each in captures.values()])


def write(place: Place, wanted: TablePartition) -> tuple[str, list[str]]:
    """Write the files of one partition of a table. Return the partition's path without extension, and the names of its files.

    Raises:
        OutputUnwritable: the disk is full, permission is denied, or a part is damaged.
    """
    rows = _rows(place, ARCHIVE_TABLES[wanted.table], wanted.sources)
    return _stem(wanted.table, wanted.partition), _write(place, wanted.table, wanted.partition, rows)


def _write_in_turn(place: Place, wanted: Sequence[TablePartition]) -> Iterator[tuple[str, list[str]]]:
    return (write(place, each) for each in wanted)


def _stem(table: str, partition: str) -> str:
    """Return the path of a partition's first file, without extension."""
    return f"tables/{table}/{partition}"


def _source(capture: _Capture, paths: Sequence[str]) -> Source:
    row = capture.row
    return Source(row["capture"], capture.part, tuple(paths), row["reason"] if row["state"] in {"failed", "lost"} else None)


@dataclass(frozen=True, slots=True)
class _Capture:
    """Row of a capture in the table `captures`, and name of its part (empty if it has none)."""

    row: dict[str, Any]
    part: str


def _row(
    place: Place, built: Built, part_sizes: Mapping[str, int], settings: str, name: str, known: Known, lost: Mapping[str, str]
) -> _Capture:
    """Return a capture's row in the table `captures`, and the name of its part."""
    from tcptrace_lab.analysis import capture_name  # noqa: PLC0415

    paths = known.places[0]
    fields = {"capture": name, "name": capture_name(paths), "path": paths[0], "files": len(paths), "file_bytes": known.size_bytes}
    for by in (settings, known.made_by):
        part = part_name(by, name)
        if by and part in part_sizes:
            if part not in built.rows:
                with _opened(place, part) as opened:
                    built.rows[part] = opened.capture
            return _Capture(built.rows[part] | fields, part)
    return _Capture({"state": "lost", "reason": lost.get(name, "it was not analyzed yet"), **fields}, "")


@contextlib.contextmanager
def _opened(place: Place, part: str) -> Iterator[parts.Part]:
    with place.local(part) as path:
        try:
            opened = parts.Part(path)
        except BadZipFile as error:
            raise OutputUnwritable(
                "a part of the archive is damaged", where=f"{place.root}/{part}", remedy="remove that file, and run batch again"
            ) from error
        with opened:
            yield opened


def _partitions(captures: Mapping[str, _Capture]) -> dict[str, list[str]]:
    """Return the names of the captures in each partition, such as `month=2026-11/all` or `month=2026-11/7`."""
    months: dict[str, list[str]] = defaultdict(list)
    for name, each in captures.items():
        months[_month(each.row.get("first_ts_ns"))].append(name)
    found: dict[str, list[str]] = defaultdict(list)
    for month, names in sorted(months.items()):
        for name in names:
            found[f"month={month}/{'all' if len(names) <= FEW else name[0]}"].append(name)
    return dict(found)


def _month(time_ns: int | None) -> str:
    try:
        return UNKNOWN_MONTH if time_ns is None else f"{datetime.fromtimestamp(time_ns // NS_PER_S, UTC):%Y-%m}"
    except (OverflowError, ValueError, OSError):
        return UNKNOWN_MONTH


def _hashed(what: object) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _rows(place: Place, table: Table, sources: Iterable[Source]) -> Iterator[pl.DataFrame]:
    for name, part, paths, failure in sources:
        if table.name == _PROBLEMS and failure is not None:
            yield _problem(name, paths[0], failure)
        if not part:
            continue
        with _opened(place, part) as opened:
            for frame in opened.frames(table.name):
                whole = frame.insert_column(0, pl.Series("capture", [name]).new_from_index(0, frame.height))
                yield _with_paths(whole, paths) if table.name == _PROBLEMS else whole


def _with_paths(problems: pl.DataFrame, paths: Sequence[str]) -> pl.DataFrame:
    """Return the problems of a part with paths in the column `path`. The part itself contains only file indices."""
    return problems.with_columns(path=pl.col("path").replace_strict({str(place): path for place, path in enumerate(paths)}, default=None))


def _problem(capture: str | None, path: str, what: str) -> pl.DataFrame:
    row = {"capture": capture, "path": path, "what": what, "frame": None, "offset": None, "count": 1, "loses_data": True}
    return _frame(ARCHIVE_TABLES[_PROBLEMS], [row])


def _frame(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in table.names} for row in rows], schema=table_types(table), orient="row")


def table_types(table: Table) -> dict[str, pl.DataType]:
    """Return the column types of a stored table. Categories are stored as strings."""
    return {column.name: pl.String() if column.values else column.polars_type() for column in table}


def _write(place: Place, table: str, partition: str, frames: Iterable[pl.DataFrame]) -> list[str]:
    """Write one partition of one table, and return the names of its files.

    A table without rows becomes one empty file, so that readers find its columns.
    """
    most = FILE_SLICES * parts.slice_rows(ARCHIVE_TABLES[table])
    pending: list[pl.DataFrame] = []
    rows = 0
    names: list[str] = []
    for frame in frames:
        pending.append(frame)
        rows += frame.height
        while rows >= most:
            whole = pl.concat(pending)
            names.append(_file(place, _stem(table, partition), len(names), whole.head(most)))
            pending, rows = [whole.slice(most)], rows - most
    if rows or not names:
        names.append(_file(place, _stem(table, partition), len(names), pl.concat([_no_rows(table), *pending])))
    return names


@cache
def _no_rows(table: str) -> pl.DataFrame:
    """Return an empty Polars frame with the columns of a stored table. The frame is cached, so callers must not change it."""
    return pl.DataFrame(schema=table_types(ARCHIVE_TABLES[table]))


def _file(place: Place, stem: str, number: int, frame: pl.DataFrame) -> str:
    name = f"{stem}.parquet" if number == 0 else f"{stem}-{number}.parquet"
    with place.scratch() as path:
        try:
            frame.rechunk().write_parquet(path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
        except Exception as error:
            refusal = as_os_error(error)
            if refusal is None:
                raise
            raise OutputUnwritable.from_os(refusal, f"{place.root}/{name}", "free disk space, and run it again") from error
        place.take(name, path)
    return name


def _write_files(place: Place, registry: Registry) -> list[str]:
    """Write the table `files`, and the problems of unreadable files. Return the names of the Parquet files."""
    problems = [_problem(None, path, what) for path, what in sorted(registry.unreadable.items())]
    files = _write(place, _FILES, _FILES, [_frame(ARCHIVE_TABLES[_FILES], _file_rows(registry))])
    return files + _write(place, _PROBLEMS, f"month={UNKNOWN_MONTH}/files", problems)


def _file_rows(registry: Registry) -> list[dict[str, Any]]:
    """Return the rows of the table `files`, sorted by path, capture and place."""
    rows: list[dict[str, Any]] = [{"path": path, "state": "other"} for path in registry.others]
    rows += [{"path": path, "state": "unreadable"} for path in registry.unreadable]
    for name, known in registry.captures.items():
        for number, paths in enumerate(known.places):
            for place, (path, (digest, size_bytes)) in enumerate(zip(paths, known.files, strict=True)):
                state = "duplicate" if number else "capture"
                rows.append({"path": path, "capture": name, "place": place, "file_bytes": size_bytes, "sha256": digest, "state": state})
    return sorted(rows, key=lambda row: (row["path"], row.get("capture", ""), row.get("place", 0)))
