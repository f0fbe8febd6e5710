"""A capture, or several as one → its tables `segments` and `connections`.

The engine is called here, and in `reread` for captures that are too large to keep. Segments stay in memory up to a bound.
Beyond it, a plain file is simply read again when a query wants its segments; what cannot be read twice (a pipe) or only
slowly (a compressed or converted file) is kept in temporary files instead. `datagrams` does the same for UDP. Connections are kept
likewise as they end, in memory up to a bound and beyond it in temporary files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Protocol

from tcptrace_lab import schema
from tcptrace_lab._core import Engine
from tcptrace_lab.convert import Source, read_through
from tcptrace_lab.errors import ReadInPart, UsageError, place
from tcptrace_lab.ordered import Ordered
from tcptrace_lab.reread import BATCH_ROWS, Files, Judged, frame, judged, nothing_judged, pulled_all
from tcptrace_lab.revisions import Revisions
from tcptrace_lab.spill import Spill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl

    from tcptrace_lab._core import CaptureInfo, Problem
    from tcptrace_lab.reread import Progress, Together, Worth

SPILL_ROWS = 262_144
"""Segment rows kept in memory, about 40 MB. The promise behind both bounds: 300 MB in all for a capture of 100 MB, 1.5 GB for any."""

ROWS_PER_CONNECTION = 32
"""A row of `schema.CONNECTIONS` or `schema.FLOWS` is kept in place of so many of segments. One of a connection takes some 2 KB, about as
much as 14 of a segment, and twice that while some are sorted and written."""

REREAD_BYTES = 32_000_000
"""Size from which plain captures are read again rather than kept: about as many segments as `SPILL_ROWS`."""

MOST_COSTS = 50
"""Costs worth a finding of which all is kept that a finding is made of, where all connections are looked at."""

_PARTIAL = "the results cover what could be read"


class Watcher(Protocol):
    """Sees the rows of a table go by while a capture is read, so that no second pass is needed.

    Segments have the kind that they had at first sight: what later segments prove of them (`revisions`) is not known yet.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs."""

    def add(self, rows: pl.DataFrame) -> None:
        """The next rows, in capture order, with at least these columns."""


class FlowWatcher(Watcher, Protocol):
    """Sees UDP datagrams go by, and says what it made of a flow when that is over."""

    def take(self, flows: pl.DataFrame) -> pl.DataFrame:
        """Rows of `schema.FLOWS` for some flows, given its first columns (who they are between); these flows do not come again."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What the engine makes of a capture. The tables are lazy, because each may be larger than memory.

    Attributes:
        segments: rows of `schema.SEGMENTS` in capture order. Each query on a large capture is a pass over its files: select columns,
            and collect once what belongs together.
        connections: rows of `schema.CONNECTIONS` by `conn`, each once. A capture may hold millions of them at 2 KB each: collect few rows
            or few columns, or go through `connections.collect_batches(maintain_order=True)`; their number is `info["connections"]`.
        info: what was captured, as the files and the engine say.
        problems: what the engine survived, each kind once, with its count and the place of the first.
        flows: rows of `schema.FLOWS` by `flow`; None unless UDP was watched.
        accounts: rows of `schema.ACCOUNTS` by `conn`, one for each connection. It and the next three have no rows unless the capture was
            read with `worth`.
        ledger: every interval of every direction: rows of `schema.WAITS`, or of `schema.LEDGER` where it was read without `proofs`. Those
            of a connection stand together, in the order in which connections end; the client's before the server's, those of a direction
            in the order of time. On a large capture each query is a pass over its files, as one on `segments` is.
        together: gives rows of `segments` and `ledger` in one pass over a large capture; None where the two are kept.
        notes: rows of `schema.NOTES`, those of a connection together.
        judged: what findings are made of: of the connections with most time worth a finding.
        again: the same of other connections, by their numbers, for which the files are read again; None where they cannot be.
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
        """The rows of some connections, for which an expression over `conn` is true."""
        names = ("segments", "connections", "accounts", "ledger", "notes")
        return replace(self, **{name: getattr(self, name).filter(wanted) for name in names})

    def details(self, conns: Iterable[int]) -> Judged:
        """What findings on these connections are made of, with what is at hand of others.

        Nothing of those that had too little time to be among `judged`, where the files cannot be read again.
        """
        missing = sorted(set(conns).difference(self.judged.places["conn"].to_list()))
        return self.judged.with_more(self.again(missing)) if missing and self.again is not None else self.judged

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
    udp: Callable[[], FlowWatcher] | None = None,
    worth: Sequence[Worth] | None = None,
    most: int = MOST_COSTS,
    proofs: bool = True,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Tables:
    """Read a capture into tables.

    Args:
        paths: a file, or several that are merged by time; `-` is standard input.
        spill_rows: segment rows kept in memory; a capture with more is kept in temporary files (`TMPDIR` says where). So are
            connections and flows beyond a thirty-second of it.
        reread_bytes: size from which uncompressed captures are read again by every query instead.
        watchers: see all segments go by, rows of `schema.SEGMENTS`.
        udp: makes the one that sees all UDP datagrams go by, rows of `schema.DATAGRAMS`; called if there are any.
        worth: what time is worth a finding (`rules.worth`); may be empty. None: nobody asks why senders waited, and that is not judged.
        most: so many costs worth a finding are kept with all that findings are made of, the largest.
        proofs: whether each interval of the ledger is kept with what proves it (`schema.WAITS`), which takes five times the memory.
        progress: told now and then how many segments were read, and what share of the files (None where their size is not known).
        say: is told in a line of a file that is read through another program, because of its format.

    Raises:
        CaptureUnreadable: nothing could be read (NotACapture where there is nothing to read).
        MissingTool: a file has a format that Wireshark reads, and it is not installed.
        UsageError: no path at all.
        OutputUnwritable: the temporary files have no room.
    """

    def tables(source: Source) -> Tables:
        sorting = _Sorting(spill_rows, watchers, udp, worth, most, schema.WAITS if proofs else schema.LEDGER, progress)
        files = rereadable(source.names, reread_bytes)
        return _keep(source, spill_rows, sorting) if files is None else _pass_by(source, files, sorting)

    return read_through(names_of(paths), say, tables)


def names_of(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """One path or several as names. Raises UsageError without any."""
    names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    if not names:
        raise UsageError("no capture given", remedy="give at least one file")
    return names


def rereadable(names: list[str], reread_bytes: int, *, compressed: bool = False) -> Files | None:
    """The files, if they can be read again and are that large; compressed ones only if that does not matter."""
    try:
        files = Files(names)
        return files if files.regular and files.size_bytes >= reread_bytes and (compressed or not files.compressed()) else None
    except OSError:
        return None  # standard input, or what the engine will complain of


class _Sorting:
    """Hands the engine's rows to those who watch, and keeps connections and flows as they end."""

    def __init__(
        self,
        spill_rows: int,
        watchers: Sequence[Watcher],
        udp: Callable[[], FlowWatcher] | None,
        worth: Sequence[Worth] | None,
        most: int,
        intervals: schema.Table,
        progress: Progress | None,
    ) -> None:
        self._watchers = watchers
        self._udp = None if udp is None else cache(udp)
        self._worth = worth
        self._most = most
        self._progress = progress
        part_rows = spill_rows // ROWS_PER_CONNECTION
        self._connections = Ordered(schema.CONNECTIONS.polars_schema(), "conn", part_rows)
        self._flows = None if udp is None else Ordered(schema.FLOWS.polars_schema(), "flow", part_rows, self._flow_figures)
        self._accounts = Ordered(schema.ACCOUNTS.polars_schema(), "conn", part_rows)
        self._notes = Spill(schema.NOTES.polars_schema(), spill_rows)
        self._intervals = intervals
        self._ledger = Spill(intervals.polars_schema(), spill_rows)

    @property
    def columns(self) -> list[str]:
        """The columns of segments that are wanted, of those that are not kept."""
        return sorted({name for watcher in self._watchers for name in ("frame", *watcher.columns)})

    def engine(self, names: list[str], columns: Sequence[str], *, with_ledger: bool) -> Engine:
        """One that gives what is wanted, with these columns of segments, and with the ledger, if anybody asks why senders waited."""
        ledger = self._intervals.names if with_ledger and self._worth is not None else None
        datagrams = self._udp is not None
        return Engine(names, BATCH_ROWS, columns=columns, datagrams=datagrams, ledger=ledger, worth=self._worth, most=self._most)

    def read(self, source: Source, engine: Engine, keep: Callable[[pl.DataFrame], None] | None = None) -> Tables:
        """Read all; the rows of segments that the engine gives go to `keep`, too, if it is there. Gives all tables but segments."""
        for rows in pulled_all(engine):
            if not rows.segments.is_empty():
                if keep is not None:
                    keep(rows.segments)
                for watcher in self._watchers:
                    watcher.add(rows.segments)
            if self._udp is not None and not rows.datagrams.is_empty():
                self._udp().add(rows.datagrams)
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
        """Judges chosen connections again."""
        worth, files = self._worth, rereadable(source.names, 0, compressed=True)
        return None if worth is None or files is None else lambda conns: files.judged(connections, conns, worth)

    def _flow_figures(self, flows: pl.DataFrame) -> pl.DataFrame:
        assert self._udp is not None  # noqa: S101  (there are no flows unless UDP is watched)
        return self._udp().take(flows)


def _keep(source: Source, spill_rows: int, sorting: _Sorting) -> Tables:
    """Read a capture and keep all of it."""
    engine = sorting.engine(source.names, schema.SEGMENTS.names, with_ledger=True)
    spill = Spill(schema.SEGMENTS.polars_schema(), spill_rows)
    tables = sorting.read(source, engine, spill.add)
    return replace(tables, segments=spill.finish(_revisions(engine)))


def _pass_by(source: Source, files: Files, sorting: _Sorting) -> Tables:
    """Read a capture that can be read again: its segments and its ledger are not kept, and nobody but watchers needs them now."""
    engine = sorting.engine(source.names, sorting.columns, with_ledger=False)
    tables = sorting.read(source, engine)
    all_rows = (engine.info()["packets"], tables.connections, _revisions(engine))
    return replace(tables, segments=files.segments(*all_rows), ledger=files.ledger(tables.connections), together=files.together(*all_rows))


def _revisions(engine: Engine) -> Revisions:
    """What later segments showed of earlier ones; `engine` has read all."""
    return Revisions(frame(engine.revisions(), schema.SEGMENTS))
