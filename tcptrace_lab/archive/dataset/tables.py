"""Builds the Parquet dataset from the parts: each table is partitioned by month, and large months also by the capture names' first digit.

The contents of a file depend only on the captures in it, sorted by name: rows are split into files and row groups at fixed counts, and each
file is written from one contiguous frame. A partition is rewritten only if its inputs have changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import polars as pl

from tcptrace_lab.archive.dataset import part as parts
from tcptrace_lab.archive.storage import at, part_name
from tcptrace_lab.errors import OutputUnwritable, as_os_error
from tcptrace_lab.schema import ARCHIVE_TABLES, PART_TABLES, STORE_VERSION
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tcptrace_lab.archive.registry import Known, Registry
    from tcptrace_lab.archive.storage import Place
    from tcptrace_lab.schema import Table

BUILT = "state/built.json"

FEW = 100
"""Up to this many captures, a month is one partition. Larger months have one partition per first digit of the capture names."""

FILE_SLICES = 8
"""Slices (`part.SLICE_BYTES`) per file: about 256 MB of memory."""

THREADS = 2
"""Partitions written at a time, because one thread leaves a processor idle. Each needs the memory of one file."""

ROW_GROUP_ROWS = 65_536

UNKNOWN_MONTH = "unknown"

_CAPTURES, _FILES, _PROBLEMS = "captures", "files", "problems"


@dataclass(slots=True)
class Built:
    """The inputs of the last build of the dataset.

    Attributes:
        partitions: partition → (hash of its inputs, its files).
        rows: part name → the capture's row in that part, so that the part need not be opened again.
    """

    partitions: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def at(cls, place: Place) -> Built:
        """Load the state saved in an archive; empty if another format version saved it."""
        saved: dict[str, Any] = json.loads(place.read(BUILT) or b"{}")
        if saved.get("store_version") != STORE_VERSION:
            return cls()
        return cls({name: (fields[0], fields[1]) for name, fields in saved["partitions"].items()}, saved["rows"])

    def save(self, place: Place) -> None:
        """Save the state. Raises OutputUnwritable."""
        document = {"store_version": STORE_VERSION, "partitions": self.partitions, "rows": self.rows}
        place.write(BUILT, json.dumps(document, sort_keys=True).encode())


def build(
    place: Place, registry: Registry, settings: str, lost: Mapping[str, str], progress: Callable[[float], None] | None = None
) -> pl.DataFrame:
    """Bring the dataset up to date.

    Args:
        place: the archive.
        registry: its captures.
        settings: settings of the parts to use. A capture without such a part uses its last one.
        lost: name → reason of captures that could not be analyzed this time.
        progress: called with the completed share (0 to 1).

    Returns:
        Rows of `schema.CAPTURES`, sorted by name.

    Raises:
        OutputUnwritable: the disk is full, permission is denied, or a part is damaged.
    """
    built = Built.at(place)
    part_sizes = place.names("parts")
    captures = {name: _row(place, built, part_sizes, settings, name, known, lost) for name, known in sorted(registry.captures.items())}
    wanted = _partitions(captures)

    def built_anew(partition: str) -> tuple[str, tuple[str, list[str]]]:
        """The partition, what it is made of, and its files, which are written if that has changed."""
        names = wanted[partition]
        made_of = _hashed([[captures[name].row, captures[name].part, registry.captures[name].places[0]] for name in names])
        before = built.partitions.get(partition)
        if before is not None and before[0] == made_of:
            return partition, before
        mine = at(place.root)  # its own client: clients are not thread-safe
        return partition, (made_of, _partition(mine, partition, [captures[name] for name in names], registry))

    kept: set[str] = set()
    with ThreadPoolExecutor(THREADS) as executor:
        for number, (partition, built_from) in enumerate(executor.map(built_anew, wanted)):
            if built.partitions.get(partition) != built_from:
                built.partitions[partition] = built_from
                built.save(place)
            kept.update(built_from[1])
            if progress is not None:
                progress((number + 1) / len(wanted))
    kept |= _of_files(place, built, registry, captures)
    built.partitions = {name: built_from for name, built_from in built.partitions.items() if name in wanted or name.startswith(".")}
    built.rows = {each.part: built.rows[each.part] for each in captures.values() if each.part in built.rows}
    for name in place.names("tables"):
        if name not in kept:
            place.remove(name)
    built.save(place)
    return _frame(ARCHIVE_TABLES[_CAPTURES], [each.row for each in captures.values()])


@dataclass(frozen=True, slots=True)
class _Capture:
    """A capture's row in `captures`, and the name of its part (empty if it has none)."""

    row: dict[str, Any]
    part: str


def _row(
    place: Place, built: Built, part_sizes: Mapping[str, int], settings: str, name: str, known: Known, lost: Mapping[str, str]
) -> _Capture:
    """The row of a capture in `captures`."""
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
    """Partition (`month=2026-11/all` or `month=2026-11/7`) → names of its captures."""
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


def _partition(place: Place, partition: str, captures: list[_Capture], registry: Registry) -> list[str]:
    """Write the files of one partition, and return their names."""
    files = _write(place, _CAPTURES, partition, [_frame(ARCHIVE_TABLES[_CAPTURES], [each.row for each in captures])])
    for table in PART_TABLES:
        files += _write(place, table.name, partition, _rows(place, table, captures, registry))
    return files


def _rows(place: Place, table: Table, captures: Iterable[_Capture], registry: Registry) -> Iterator[pl.DataFrame]:
    """The rows of one table, capture by capture."""
    for each in captures:
        name = each.row["capture"]
        if table.name == _PROBLEMS and each.row["state"] in {"failed", "lost"}:
            yield _problem(name, each.row["path"], each.row["reason"])
        if not each.part:
            continue
        with _opened(place, each.part) as opened:
            for frame in opened.frames(table.name):
                whole = frame.insert_column(0, pl.Series("capture", [name]).new_from_index(0, frame.height))
                yield _with_paths(whole, registry.captures[name].places[0]) if table.name == _PROBLEMS else whole


def _with_paths(problems: pl.DataFrame, paths: list[str]) -> pl.DataFrame:
    """Replace file indices in the `path` column of problems by the paths; parts contain no paths."""
    return problems.with_columns(path=pl.col("path").replace_strict({str(place): path for place, path in enumerate(paths)}, default=None))


def _problem(capture: str | None, path: str, what: str) -> pl.DataFrame:
    row = {"capture": capture, "path": path, "what": what, "frame": None, "offset": None, "count": 1, "loses_data": True}
    return _frame(ARCHIVE_TABLES[_PROBLEMS], [row])


def _frame(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in table.names} for row in rows], schema=table_types(table), orient="row")


def table_types(table: Table) -> dict[str, pl.DataType]:
    """Column types of a stored table. Categories are stored as strings."""
    return {column.name: pl.String() if column.values else column.polars_type() for column in table}


def _write(place: Place, table: str, partition: str, frames: Iterable[pl.DataFrame]) -> list[str]:
    """Write one table of one partition, and return the files' names. A table without rows is one file, so that readers find its columns."""
    most = FILE_SLICES * parts.slice_rows(ARCHIVE_TABLES[table])
    pending: list[pl.DataFrame] = []
    rows = 0
    names: list[str] = []
    for frame in frames:
        pending.append(frame)
        rows += frame.height
        while rows >= most:
            whole = pl.concat(pending)
            names.append(_file(place, f"tables/{table}/{partition}", len(names), whole.head(most)))
            pending, rows = [whole.slice(most)], rows - most
    if rows or not names:
        names.append(_file(place, f"tables/{table}/{partition}", len(names), pl.concat([_no_rows(table), *pending])))
    return names


@cache
def _no_rows(table: str) -> pl.DataFrame:
    """An empty frame with the stored columns of a table. It is cached, so it must not be changed."""
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


def _of_files(place: Place, built: Built, registry: Registry, captures: Mapping[str, _Capture]) -> set[str]:
    """Write `files`, and the problems of unreadable files, if they have changed. Returns the names of the Parquet files."""
    rows = sorted(_file_rows(registry), key=lambda row: (row["path"], row.get("capture", ""), row.get("place", 0)))
    unreadable = sorted(registry.unreadable.items())
    made_of = _hashed([rows, unreadable, len(captures)])
    before = built.partitions.get(".files")
    if before is None or before[0] != made_of:
        files = _write(place, _FILES, "files", [_frame(ARCHIVE_TABLES[_FILES], rows)])
        files += _write(place, _PROBLEMS, f"month={UNKNOWN_MONTH}/files", [_problem(None, path, what) for path, what in unreadable])
        built.partitions[".files"] = (made_of, files)
    return set(built.partitions[".files"][1])


def _file_rows(registry: Registry) -> Iterator[dict[str, Any]]:
    """Rows of the table `files`."""
    for name, known in registry.captures.items():
        for number, paths in enumerate(known.places):
            for place, (path, (digest, size_bytes)) in enumerate(zip(paths, known.files, strict=True)):
                state = "duplicate" if number else "capture"
                yield {"path": path, "capture": name, "place": place, "file_bytes": size_bytes, "sha256": digest, "state": state}
    for path in registry.others:
        yield {"path": path, "state": "other"}
    for path in registry.unreadable:
        yield {"path": path, "state": "unreadable"}
