"""Reads capture files into the tables `segments` and `connections`.

This module runs the Rust engine once. Segments of a small capture are kept in memory. A larger capture is not kept: each query reads its
files again (`reread`). Segments go to temporary files instead if the input cannot be read twice (a pipe) or is slow to read (a compressed
or converted file). Connections are stored when they end: in memory up to a limit, then in temporary files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from tcptrace_lab import schema
from tcptrace_lab._core import Engine
from tcptrace_lab.capture.convert import Source, read_through
from tcptrace_lab.engine.reread import BATCH_ROWS, Files, Judged, frame, judged, nothing_judged, pulled_all
from tcptrace_lab.engine.revisions import Revisions
from tcptrace_lab.engine.sorting import Ordered
from tcptrace_lab.engine.spill import Spill
from tcptrace_lab.errors import ReadInPart, UsageError, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl

    from tcptrace_lab._core import CaptureInfo, Problem
    from tcptrace_lab.engine.reread import Progress, Together, Worth

SPILL_ROWS = 262_144
"""Number of segment rows kept in memory, which take about 40 MB. This limit and `REREAD_BYTES` keep total memory below 300 MB for a capture
of 100 MB, and below 1.5 GB for any capture."""

ROWS_PER_CONNECTION = 64
"""Number of segment rows that count as much as one row of `schema.CONNECTIONS` or `schema.FLOWS`. A connection row takes 3.3 KB, as much as
21 segment rows, and three times as much while rows are sorted and written."""

REREAD_BYTES = 32_000_000
"""Plain captures of at least this size are read again and not kept. About `SPILL_ROWS` segments fit in this many bytes."""

MAX_COSTS = 50
"""Maximum number of costs whose evidence is kept when all connections are analyzed. The largest costs are kept."""

_PARTIAL = "the results cover what could be read"


class Watcher(Protocol):
    """Receives the rows of a table while the capture is read, so that no second pass is needed.

    Each segment has the kind that the engine assigned first. Later segments can change the kind (`revisions`).
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The segment columns that the watcher needs."""

    def add(self, rows: pl.DataFrame) -> None:
        """Receive the next rows, in capture order. They have at least `columns`."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that the engine computes from a capture. The tables are lazy, because each can be larger than memory.

    Attributes:
        segments: rows of `schema.SEGMENTS` in capture order. On a large capture, each query reads all its files: select few columns, and
            compute several results in one query.
        connections: rows of `schema.CONNECTIONS` by `conn`, one per connection. A capture can hold millions of connections at 3 KB each:
            collect few rows or few columns, or use `connections.collect_batches(maintain_order=True)`. `info["connections"]` is their
            number.
        info: facts about the capture, from the files and the engine.
        problems: each kind of problem that did not stop the engine, with its count and the place where it first occurred.
        flows: rows of `schema.FLOWS` by `flow`; None unless they were requested.
        accounts: rows of `schema.ACCOUNTS` by `conn`, one per connection. This table, `ledger`, `notes` and `judged` are empty unless the
            capture was read with `worth`.
        ledger: every interval of every direction: rows of `schema.WAITS`, or of `schema.LEDGER` if the capture was read without `proofs`.
            Connections are in the order in which they end. Within a connection the client's direction comes first; a direction is in time
            order. On a large capture each query reads all its files.
        together: yields rows of `segments` and `ledger` in one pass over a large capture; None where both tables are kept.
        notes: rows of `schema.NOTES`, grouped by connection.
        judged: the evidence for findings on the connections that lose most time.
        again: takes numbers of other connections, reads the files again, and returns the evidence for findings on them; None if the files
            cannot be read again.
    """

    segments: pl.LazyFrame
    connections: pl.LazyFrame
    info: CaptureInfo
    problems: tuple[Problem, ...]
    flows: pl.LazyFrame | None = None
    accounts: pl.LazyFrame = field(default_factory=lambda: schema.ACCOUNTS.no_rows().lazy())
    ledger: pl.LazyFrame = field(default_factory=lambda: schema.WAITS.no_rows().lazy())
    together: Together | None = None
    notes: pl.LazyFrame = field(default_factory=lambda: schema.NOTES.no_rows().lazy())
    judged: Judged = field(default_factory=nothing_judged)
    again: Callable[[Sequence[int]], Judged] | None = None

    def of(self, wanted: pl.Expr) -> Tables:
        """Return the tables with only those connections for which an expression over `conn` is true."""
        names = ("segments", "connections", "accounts", "ledger", "notes")
        return replace(self, **{name: getattr(self, name).filter(wanted) for name in names})

    def details(self, conns: Iterable[int]) -> Judged:
        """Return the evidence for findings on these connections. The returned tables can also contain evidence on other connections.

        If the files cannot be read again, only connections in `judged` have evidence.
        """
        missing = sorted(set(conns).difference(self.judged.places["conn"].to_list()))
        return self.judged.with_more(self.again(missing)) if missing and self.again is not None else self.judged

    @property
    def complete(self) -> bool:
        """Whether the tables contain the whole capture."""
        return self.loss is None

    @property
    def loss(self) -> ReadInPart | None:
        """An exception that describes the missing part, for a caller that needs the whole capture; None if `complete`."""
        return loss_of(self.info, self.problems)


def loss_of(info: CaptureInfo, problems: Sequence[Problem]) -> ReadInPart | None:
    """Return an exception that says which part of a capture is missing from its tables; None if nothing is missing."""
    lost = [problem for problem in problems if problem["loses_data"]]
    if not lost:
        return None if info["complete"] else ReadInPart("the capture could not be read completely", remedy=_PARTIAL)
    first, more = lost[0], len(lost) - 1
    what = first["what"] + (f" (first of {more + 1} kinds of loss)" if more else "")
    return ReadInPart(what, where=place(first["path"], first["frame"], first["offset"]), remedy=_PARTIAL)


def read(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    spill_rows: int = SPILL_ROWS,
    reread_bytes: int = REREAD_BYTES,
    watchers: Sequence[Watcher] = (),
    udp: bool = False,
    worth: Sequence[Worth] | None = None,
    most: int = MAX_COSTS,
    proofs: bool = True,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Tables:
    """Read a capture into tables.

    Args:
        paths: a file, or several files that are merged by time; `-` is standard input.
        spill_rows: segment rows kept in memory. Segments of a larger capture go to temporary files (in `TMPDIR`). One connection or flow is
            kept in memory for every 64 of these rows.
        reread_bytes: uncompressed captures of at least this size are not kept: each query reads them again.
        watchers: receive all segments, as rows of `schema.SEGMENTS`.
        udp: whether UDP flows are wanted.
        worth: which times are worth a finding (`causes.worth`); can be empty. With None the engine does not classify waits.
        most: maximum number of costs whose evidence is kept. The largest costs are kept.
        proofs: whether each interval of the ledger keeps its proof (`schema.WAITS`). Intervals with proofs take five times the memory.
        progress: called at intervals with the number of segments read and the share of the files (None where their size is unknown).
        say: called with one line for each file that an external converter reads, because of its format.

    Raises:
        CaptureUnreadable: nothing could be read (NotACapture where there is nothing to read).
        MissingTool: a file has a format that needs Wireshark, and Wireshark is not installed.
        UsageError: no path was given.
        OutputUnwritable: no room for the temporary files.
    """

    def tables(source: Source) -> Tables:
        sorting = _Sorting(spill_rows, watchers, worth, most, schema.WAITS if proofs else schema.LEDGER, progress, udp=udp)
        files = rereadable(source.names, reread_bytes)
        return _keep(source, spill_rows, sorting) if files is None else _pass_by(source, files, sorting)

    return read_through(names_of(paths), say, tables)


def names_of(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return one or more paths as a list of names. Raises UsageError if there is no path."""
    names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    if not names:
        raise UsageError("no capture given", remedy="give at least one file")
    return names


def rereadable(names: list[str], reread_bytes: int, *, compressed: bool = False) -> Files | None:
    """Return the files if they can be read again and have at least `reread_bytes`, else None. Compressed files need `compressed=True`."""
    try:
        files = Files(names)
        return files if files.regular and files.size_bytes >= reread_bytes and (compressed or not files.compressed()) else None
    except OSError:
        return None  # the path is standard input, or a file that the engine will report as unreadable


class _Sorting:
    """Passes the engine's rows to the watchers, and stores connections and flows when they end."""

    def __init__(
        self,
        spill_rows: int,
        watchers: Sequence[Watcher],
        worth: Sequence[Worth] | None,
        most: int,
        intervals: schema.Table,
        progress: Progress | None,
        *,
        udp: bool,
    ) -> None:
        self._watchers = watchers
        self._worth = worth
        self._most = most
        self._progress = progress
        part_rows = spill_rows // ROWS_PER_CONNECTION
        self._connections = Ordered(schema.CONNECTIONS.polars_schema(), "conn", part_rows)
        self._flows = Ordered(schema.FLOWS.polars_schema(), "flow", part_rows) if udp else None
        self._accounts = Ordered(schema.ACCOUNTS.polars_schema(), "conn", part_rows)
        self._notes = Spill(schema.NOTES.polars_schema(), spill_rows)
        self._intervals = intervals
        self._ledger = Spill(intervals.polars_schema(), spill_rows)

    @property
    def columns(self) -> list[str]:
        """The segment columns that all watchers together need."""
        return sorted({name for watcher in self._watchers for name in ("frame", *watcher.columns)})

    def engine(self, names: list[str], columns: Sequence[str], *, with_ledger: bool) -> Engine:
        """Return an engine that computes these segment columns and, if requested and `worth` is not None, the ledger."""
        ledger = self._intervals.names if with_ledger and self._worth is not None else None
        flows = self._flows is not None
        return Engine(names, BATCH_ROWS, columns=columns, flows=flows, ledger=ledger, worth=self._worth, most=self._most)

    def read(self, source: Source, engine: Engine, keep: Callable[[pl.DataFrame], None] | None = None) -> Tables:
        """Read the whole capture and return all tables except `segments`. `keep`, if given, receives the engine's segment rows."""
        for rows in pulled_all(engine):
            if not rows.segments.is_empty():
                if keep is not None:
                    keep(rows.segments)
                for watcher in self._watchers:
                    watcher.add(rows.segments)
            self._connections.add(rows.connections)
            self._accounts.add(rows.accounts)
            if not rows.ledger.is_empty():
                self._ledger.add(rows.ledger)
            self._notes.add(rows.notes)
            if self._flows is not None:
                self._flows.add(rows.flows)
            if self._progress is not None:
                self._progress(rows.seen, rows.share)
        connections = self._connections.finish()
        return Tables(
            segments=schema.SEGMENTS.no_rows().lazy(),
            connections=connections,
            info=source.info(engine),
            problems=source.problems(engine),
            flows=None if self._flows is None else self._flows.finish(),
            accounts=self._accounts.finish(),
            ledger=self._ledger.finish(),
            notes=self._notes.finish(),
            judged=nothing_judged() if self._worth is None else judged(engine),
            again=self._again(source, connections),
        )

    def _again(self, source: Source, connections: pl.LazyFrame) -> Callable[[Sequence[int]], Judged] | None:
        """Return a function that judges chosen connections in another pass; None if the files cannot be read again."""
        worth, files = self._worth, rereadable(source.names, 0, compressed=True)
        return None if worth is None or files is None else lambda conns: files.judged(connections, conns, worth)


def _keep(source: Source, spill_rows: int, sorting: _Sorting) -> Tables:
    engine = sorting.engine(source.names, schema.SEGMENTS.names, with_ledger=True)
    spill = Spill(schema.SEGMENTS.polars_schema(), spill_rows)
    tables = sorting.read(source, engine, spill.add)
    return replace(tables, segments=spill.finish(_revisions(engine)))


def _pass_by(source: Source, files: Files, sorting: _Sorting) -> Tables:
    """Read a capture without storing its segments and its ledger. A query on these two tables reads the files again."""
    engine = sorting.engine(source.names, sorting.columns, with_ledger=False)
    tables = sorting.read(source, engine)
    all_rows = (engine.info()["packets"], tables.connections, _revisions(engine))
    return replace(tables, segments=files.segments(*all_rows), ledger=files.ledger(tables.connections), together=files.together(*all_rows))


def _revisions(engine: Engine) -> Revisions:
    """Return the revisions that the engine found: changes of a segment's kind. `engine` must have read the whole capture."""
    return Revisions(frame(engine.revisions(), schema.SEGMENTS))
