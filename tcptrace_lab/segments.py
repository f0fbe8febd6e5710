"""A capture, or several as one → its tables `segments` and `connections`.

The engine is called here, and in `reread` for captures that are too large to keep. Segments stay in memory up to a bound.
Beyond it, a plain file is simply read again when a query wants its segments; what cannot be read twice (a pipe) or only
slowly (a compressed file) is kept in temporary files instead.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tcptrace_lab import schema
from tcptrace_lab._core import Engine, EngineError
from tcptrace_lab.errors import CaptureUnreadable, ReadInPart, UsageError, from_engine, place
from tcptrace_lab.reread import Files, frame, pulled
from tcptrace_lab.spill import Spill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl

    from tcptrace_lab._core import CaptureInfo, Problem

SPILL_ROWS = 262_144
"""Segment rows kept in memory, about 40 MB. The promise behind both bounds: 300 MB in all for a capture of 100 MB, 1.5 GB for any."""

REREAD_BYTES = 32_000_000
"""Size from which plain captures are read again rather than kept: about as many segments as `SPILL_ROWS`."""

_PARTIAL = "the results hold what could be read"


class Watcher(Protocol):
    """Sees the rows of `schema.SEGMENTS` go by while a capture is read, so that no second pass is needed."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs."""

    def add(self, rows: pl.DataFrame) -> None:
        """The next rows, in capture order, with at least these columns."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What the engine makes of a capture.

    Attributes:
        segments: rows of `schema.SEGMENTS` in capture order; lazy, because they may be larger than memory. Each query on a large
            capture is a pass over its files: select columns, and collect once what belongs together.
        connections: rows of `schema.CONNECTIONS` by `conn`; in a capture with more than 131,072 connections at a time, those that were
            closed to make room come first.
        info: what was captured, as the files and the engine say.
        problems: what the engine survived, each kind once, with its count and the place of the first.
    """

    segments: pl.LazyFrame
    connections: pl.DataFrame
    info: CaptureInfo
    problems: tuple[Problem, ...]

    @property
    def complete(self) -> bool:
        """True if nothing of the capture was lost on the way into the tables."""
        return self.info["complete"] and not any(problem["loses_data"] for problem in self.problems)

    @property
    def loss(self) -> ReadInPart | None:
        """What was lost, for a caller who cannot live with a part and raises it; None if `complete`."""
        if self.complete:
            return None
        lost = [problem for problem in self.problems if problem["loses_data"]]
        if not lost:
            return ReadInPart("the capture was not read to its end", remedy=_PARTIAL)
        first, more = lost[0], len(lost) - 1
        what = first["what"] + (f" (first of {more + 1} kinds of loss)" if more else "")
        return ReadInPart(what, where=place(first["path"], first["frame"], first["offset"]), remedy=_PARTIAL)


def read(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    spill_rows: int = SPILL_ROWS,
    reread_bytes: int = REREAD_BYTES,
    watchers: Sequence[Watcher] = (),
    progress: Callable[[int], None] | None = None,
) -> Tables:
    """Read a capture into tables.

    Args:
        paths: a file, or several that are merged by time; `-` is standard input.
        spill_rows: segment rows kept in memory; a capture with more is kept in temporary files (`TMPDIR` says where).
        reread_bytes: size from which uncompressed captures are read again by every query instead.
        watchers: see all segments go by.
        progress: called now and then with the number of segments read so far.

    Raises:
        CaptureUnreadable: nothing could be read (NotACapture where there is nothing to read).
        UsageError: no path at all.
        OutputUnwritable: the temporary files have no room.
    """
    names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    if not names:
        raise UsageError("no capture given", remedy="name at least one file")
    for name in names:
        _check_name(name)
    try:
        files = _rereadable(names, reread_bytes)
        if files is None:
            return _keep(names, spill_rows, watchers, progress)
        return _pass_by(names, files, watchers, progress)
    except EngineError as error:
        raise from_engine(error) from error


def _check_name(name: str) -> None:
    """The engine takes names as UTF-8 only."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        remedy = "rename it, or give it as standard input"
        raise CaptureUnreadable("the name of the file is not UTF-8", where=name, remedy=remedy) from error


def _rereadable(names: list[str], reread_bytes: int) -> Files | None:
    """The files, if they are better read again than kept."""
    try:
        files = Files(names)
        return files if files.regular and files.size_bytes >= reread_bytes and not files.compressed() else None
    except OSError:
        return None  # standard input, or what the engine will complain of


def _keep(names: list[str], spill_rows: int, watchers: Sequence[Watcher], progress: Callable[[int], None] | None) -> Tables:
    engine = Engine(names)
    spill = Spill(schema.SEGMENTS.polars_schema(), spill_rows)
    _run(engine, [_Keeper(spill), *watchers], progress)
    return _tables(names, engine, spill.finish())


def _pass_by(names: list[str], files: Files, watchers: Sequence[Watcher], progress: Callable[[int], None] | None) -> Tables:
    columns = {"frame", *(name for watcher in watchers for name in watcher.columns)}
    engine = Engine(names, columns=sorted(columns))
    _run(engine, watchers, progress)
    info = engine.info()
    return _tables(names, engine, files.segments(info["packets"], info["connections"]))


def _run(engine: Engine, watchers: Sequence[Watcher], progress: Callable[[int], None] | None) -> None:
    segments = 0
    for rows in pulled(engine):
        for watcher in watchers:
            watcher.add(rows)
        segments += rows.height
        if progress is not None:
            progress(segments)


def _tables(names: list[str], engine: Engine, segments: pl.LazyFrame) -> Tables:
    connections = frame(engine.connections(), schema.CONNECTIONS)
    problems = engine.problems()
    for problem in problems:
        problem["path"] = problem["path"] or ", ".join(names)  # what is found in packets is not told by file
    return Tables(segments, connections, engine.info(), tuple(problems))


@dataclass(frozen=True, slots=True)
class _Keeper:
    """Keeps all rows."""

    spill: Spill
    columns: tuple[str, ...] = schema.SEGMENTS.names

    def add(self, rows: pl.DataFrame) -> None:
        self.spill.add(rows)
