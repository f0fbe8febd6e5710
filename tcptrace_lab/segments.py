"""A capture, or several as one → its tables `segments` and `connections`.

The engine is called here, and in `reread` for captures that are too large to keep. Segments stay in memory up to a bound.
Beyond it, a plain file is simply read again when a query wants its segments; what cannot be read twice (a pipe) or only
slowly (a compressed or converted file) is kept in temporary files instead. `datagrams` does the same for UDP.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tcptrace_lab import schema
from tcptrace_lab._core import Engine
from tcptrace_lab.convert import Source, read_through
from tcptrace_lab.errors import CaptureUnreadable, ReadInPart, UsageError, place
from tcptrace_lab.reread import Files, frame, pulled_both
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
    """Sees the rows of a table go by while a capture is read, so that no second pass is needed."""

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
        udp_flows: who the UDP flows are between: the first columns of `schema.FLOWS`. None unless datagrams were watched.
    """

    segments: pl.LazyFrame
    connections: pl.DataFrame
    info: CaptureInfo
    problems: tuple[Problem, ...]
    udp_flows: pl.DataFrame | None = None

    @property
    def complete(self) -> bool:
        """True if nothing of the capture was lost on the way into the tables."""
        return self.loss is None

    @property
    def loss(self) -> ReadInPart | None:
        """What was lost, for a caller who cannot live with a part and raises it; None if `complete`."""
        return loss_of(self.info, self.problems)


def loss_of(info: CaptureInfo, problems: Sequence[Problem]) -> ReadInPart | None:
    """What of a capture did not come into its tables; None if nothing was lost."""
    lost = [problem for problem in problems if problem["loses_data"]]
    if not lost:
        return None if info["complete"] else ReadInPart("the capture was not read to its end", remedy=_PARTIAL)
    first, more = lost[0], len(lost) - 1
    what = first["what"] + (f" (first of {more + 1} kinds of loss)" if more else "")
    return ReadInPart(what, where=place(first["path"], first["frame"], first["offset"]), remedy=_PARTIAL)


def read(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    spill_rows: int = SPILL_ROWS,
    reread_bytes: int = REREAD_BYTES,
    watchers: Sequence[Watcher] = (),
    datagram_watchers: Sequence[Watcher] = (),
    progress: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Tables:
    """Read a capture into tables.

    Args:
        paths: a file, or several that are merged by time; `-` is standard input.
        spill_rows: segment rows kept in memory; a capture with more is kept in temporary files (`TMPDIR` says where).
        reread_bytes: size from which uncompressed captures are read again by every query instead.
        watchers: see all segments go by, rows of `schema.SEGMENTS`.
        datagram_watchers: see all UDP datagrams go by, rows of `schema.DATAGRAMS`.
        progress: called now and then with the number of segments read so far.
        say: is told in a line of a file that is read through another program, because of its format.

    Raises:
        CaptureUnreadable: nothing could be read (NotACapture where there is nothing to read).
        MissingTool: a file has a format that Wireshark reads, and it is not installed.
        UsageError: no path at all.
        OutputUnwritable: the temporary files have no room.
    """

    def tables(source: Source) -> Tables:
        files = rereadable(source.names, reread_bytes)
        if files is None:
            return _keep(source, spill_rows, watchers, datagram_watchers, progress)
        return _pass_by(source, files, watchers, datagram_watchers, progress)

    return read_through(names_of(paths), say, tables)


def names_of(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """One path or several as names. Raises UsageError without any, CaptureUnreadable where the engine cannot take one (not UTF-8)."""
    names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    if not names:
        raise UsageError("no capture given", remedy="name at least one file")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            remedy = "rename it, or give it as standard input"
            raise CaptureUnreadable("the name of the file is not UTF-8", where=name, remedy=remedy) from error
    return names


def rereadable(names: list[str], reread_bytes: int) -> Files | None:
    """The files, if they are better read again than kept."""
    try:
        files = Files(names)
        return files if files.regular and files.size_bytes >= reread_bytes and not files.compressed() else None
    except OSError:
        return None  # standard input, or what the engine will complain of


def _keep(
    source: Source,
    spill_rows: int,
    watchers: Sequence[Watcher],
    datagram_watchers: Sequence[Watcher],
    progress: Callable[[int], None] | None,
) -> Tables:
    engine = Engine(source.names, datagrams=bool(datagram_watchers))
    spill = Spill(schema.SEGMENTS.polars_schema(), spill_rows)
    _run(engine, [_Keeper(spill), *watchers], datagram_watchers, progress)
    return _tables(source, engine, lambda _: spill.finish(), with_flows=bool(datagram_watchers))


def _pass_by(
    source: Source,
    files: Files,
    watchers: Sequence[Watcher],
    datagram_watchers: Sequence[Watcher],
    progress: Callable[[int], None] | None,
) -> Tables:
    columns = {"frame", *(name for watcher in watchers for name in watcher.columns)}
    engine = Engine(source.names, columns=sorted(columns), datagrams=bool(datagram_watchers))
    _run(engine, watchers, datagram_watchers, progress)
    last_frame = engine.info()["packets"]
    return _tables(source, engine, lambda connections: files.segments(last_frame, connections), with_flows=bool(datagram_watchers))


def _run(engine: Engine, watchers: Sequence[Watcher], datagram_watchers: Sequence[Watcher], progress: Callable[[int], None] | None) -> None:
    segments = 0
    for rows, datagrams in pulled_both(engine):
        for watched, those in ((rows, watchers), (datagrams, datagram_watchers)):
            if not watched.is_empty():
                for watcher in those:
                    watcher.add(watched)
        segments += rows.height
        if progress is not None:
            progress(segments)


def _tables(source: Source, engine: Engine, segments: Callable[[pl.DataFrame], pl.LazyFrame], *, with_flows: bool) -> Tables:
    connections = frame(engine.connections(), schema.CONNECTIONS)
    flows = frame(engine.flows(), schema.FLOWS) if with_flows else None
    return Tables(segments(connections), connections, source.info(engine), source.problems(engine), flows)


@dataclass(frozen=True, slots=True)
class _Keeper:
    """Keeps all rows."""

    spill: Spill
    columns: tuple[str, ...] = schema.SEGMENTS.names

    def add(self, rows: pl.DataFrame) -> None:
        self.spill.add(rows)
