"""A capture, or several as one → its tables `segments` and `connections`.

The engine is called here, and in `reread` for captures that are too large to keep. Segments stay in memory up to a bound.
Beyond it, a plain file is simply read again when a query wants its segments; what cannot be read twice (a pipe) or only
slowly (a compressed or converted file) is kept in temporary files instead. `datagrams` does the same for UDP. Connections are kept
likewise as they end, in memory up to a bound and beyond it in temporary files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab._core import Engine
from tcptrace_lab.convert import Source, read_through
from tcptrace_lab.errors import ReadInPart, UsageError, place
from tcptrace_lab.ordered import Ordered
from tcptrace_lab.passing import Passing
from tcptrace_lab.reread import BATCH_ROWS, Files, frame, pulled_all
from tcptrace_lab.revisions import Revisions
from tcptrace_lab.rtt import QUANTILES, Samples
from tcptrace_lab.spill import Spill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tcptrace_lab._core import CaptureInfo, Problem
    from tcptrace_lab.reread import Progress

SPILL_ROWS = 262_144
"""Segment rows kept in memory, about 40 MB. The promise behind both bounds: 300 MB in all for a capture of 100 MB, 1.5 GB for any."""

ROWS_PER_CONNECTION = 32
"""A row of `schema.CONNECTIONS` or `schema.FLOWS` is kept in place of so many of segments. One of a connection takes some 2 KB, about as
much as 14 of a segment, and twice that while some are sorted and written."""

REREAD_BYTES = 32_000_000
"""Size from which plain captures are read again rather than kept: about as many segments as `SPILL_ROWS`."""

_PARTIAL = "the results hold what could be read"


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
        departures: those of them that ended a wait of their sender (`held_ns` is known), with the columns that were asked for; they were
            kept in the pass that read the capture, so a query needs no other.
        connections: rows of `schema.CONNECTIONS` by `conn`, each once. A capture may hold millions of them at 2 KB each: collect few rows
            or few columns, or go through `connections.collect_batches(maintain_order=True)`; their number is `info["connections"]`.
        info: what was captured, as the files and the engine say.
        problems: what the engine survived, each kind once, with its count and the place of the first.
        flows: rows of `schema.FLOWS` by `flow`; None unless UDP was watched.
    """

    segments: pl.LazyFrame
    connections: pl.LazyFrame
    info: CaptureInfo
    problems: tuple[Problem, ...]
    flows: pl.LazyFrame | None = None
    departures: pl.LazyFrame | None = None

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
    udp: FlowWatcher | None = None,
    departures: Sequence[str] = (),
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
        udp: sees all UDP datagrams go by, rows of `schema.DATAGRAMS`.
        departures: columns of `schema.SEGMENTS` that the departures are wanted with; `frame` comes with them.
        progress: told now and then how many segments were read, and what share of the files (None where their size is not known).
        say: is told in a line of a file that is read through another program, because of its format.

    Raises:
        CaptureUnreadable: nothing could be read (NotACapture where there is nothing to read).
        MissingTool: a file has a format that Wireshark reads, and it is not installed.
        UsageError: no path at all.
        OutputUnwritable: the temporary files have no room.
    """

    def tables(source: Source) -> Tables:
        files = rereadable(source.names, reread_bytes)
        sorting = _Sorting(spill_rows, watchers, udp, progress)
        wanted = tuple(dict.fromkeys((*departures, "frame"))) if departures else ()
        if files is None:
            return _keep(source, spill_rows, sorting, wanted)
        return _pass_by(source, files, sorting, _Departures(wanted, spill_rows) if wanted else None)

    return read_through(names_of(paths), say, tables)


def names_of(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """One path or several as names. Raises UsageError without any."""
    names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    if not names:
        raise UsageError("no capture given", remedy="name at least one file")
    return names


def rereadable(names: list[str], reread_bytes: int) -> Files | None:
    """The files, if they are better read again than kept."""
    try:
        files = Files(names)
        return files if files.regular and files.size_bytes >= reread_bytes and not files.compressed() else None
    except OSError:
        return None  # standard input, or what the engine will complain of


_DEPARTED = pl.col("held_ns").is_not_null()


_DEPARTURES_PART = 8
"""Departures are kept in memory up to this part of the rows that may be: more cost 130 MB at a capture of 100 MB, and no less time."""


class _Departures:
    """Keeps the departures of a capture that is not kept itself (a `Watcher`)."""

    def __init__(self, columns: Sequence[str], spill_rows: int) -> None:
        """Keep these columns, of up to a part of `spill_rows` rows in memory."""
        self._kept = columns
        self.columns = (*columns, "held_ns")
        types = schema.SEGMENTS.polars_schema()
        self._rows = Passing({name: types[name] for name in columns}, spill_rows // _DEPARTURES_PART)

    def add(self, rows: pl.DataFrame) -> None:
        """Keep those of some rows. Raises OutputUnwritable where temporary files have no room."""
        departed = rows.filter(_DEPARTED) if rows["held_ns"].null_count() else rows  # mostly the engine gives no others
        self._rows.add(departed.select(self._kept))

    def finish(self, revisions: Revisions) -> pl.LazyFrame:
        """All of them. Raises OutputUnwritable as `add` does."""
        return self._rows.finish(revisions)


class _Sorting:
    """Hands the engine's rows to those who watch, and keeps connections and flows as they end."""

    def __init__(self, spill_rows: int, watchers: Sequence[Watcher], udp: FlowWatcher | None, progress: Progress | None) -> None:
        self._round_trips, self._ack_lags = Samples(), Samples()
        self._watchers = watchers
        self._udp = udp
        self._progress = progress
        part_rows = spill_rows // ROWS_PER_CONNECTION
        self._connections = Ordered(schema.CONNECTIONS.polars_schema(), "conn", part_rows, self._with_quantiles)
        self._flows = None if udp is None else Ordered(schema.FLOWS.polars_schema(), "flow", part_rows, udp.take)

    @property
    def datagrams(self) -> bool:
        """Whether datagrams are wanted."""
        return self._udp is not None

    @property
    def columns(self) -> list[str]:
        """The columns of segments that are wanted."""
        return sorted({"frame", *(name for watcher in self._watchers for name in watcher.columns)})

    @property
    def watched(self) -> bool:
        """Whether somebody sees all segments go by."""
        return bool(self._watchers)

    def run(self, engine: Engine, keep: Callable[[pl.DataFrame], None] | None = None) -> tuple[pl.LazyFrame, pl.LazyFrame | None]:
        """Read all; the rows of segments that the engine gives go to `keep`, too, if it is there. Gives the connections and the flows."""
        for rows in pulled_all(engine):
            if not rows.segments.is_empty():
                if keep is not None:
                    keep(rows.segments)
                for watcher in self._watchers:
                    watcher.add(rows.segments)
            self._count(rows.samples)
            if self._udp is not None and not rows.datagrams.is_empty():
                self._udp.add(rows.datagrams)
            self._connections.add(rows.connections)
            if self._flows is not None:
                self._flows.add(rows.flows)
            if self._progress is not None:
                self._progress(rows.seen, rows.share)
        return self._connections.finish(), None if self._flows is None else self._flows.finish()

    def _count(self, samples: pl.DataFrame) -> None:
        for is_lag, counted in ((False, self._round_trips), (True, self._ack_lags)):
            own = samples.filter(pl.col("ack_lag") == is_lag)
            counted.count(own["conn"], own["from_client"], own["ns"])

    def _with_quantiles(self, connections: pl.DataFrame) -> pl.DataFrame:
        """Connections as the engine gives them, with the quantiles of their round trips and of the lags of their ACKs."""
        for what, samples in (("rtt", self._round_trips), ("ack_lag", self._ack_lags)):
            found = samples.take(connections["conn"]).with_columns(pl.col("conn").cast(pl.UInt32))
            for side, from_client in schema.SIDES.items():
                named = {f"{side}_{what}_{name}": pl.col(name) for name in QUANTILES}
                own = found.filter(pl.col("from_client") == from_client).select("conn", **named)
                connections = connections.join(own, on="conn", how="left", maintain_order="left")
        return connections.select(schema.CONNECTIONS.names)


def _keep(source: Source, spill_rows: int, sorting: _Sorting, departures: Sequence[str]) -> Tables:
    engine = Engine(source.names, BATCH_ROWS, datagrams=sorting.datagrams, samples=True)
    spill = Spill(schema.SEGMENTS.polars_schema(), spill_rows)
    connections, flows = sorting.run(engine, spill.add)
    segments = spill.finish(_revisions(engine))
    departed = segments.filter(_DEPARTED).select(departures) if departures else None
    return Tables(segments, connections, source.info(engine), source.problems(engine), flows, departed)


def _pass_by(source: Source, files: Files, sorting: _Sorting, departures: _Departures | None) -> Tables:
    """Read a capture that can be read again: of its segments, only departures are kept, and nobody but watchers needs others now."""
    columns = {*sorting.columns, *(() if departures is None else departures.columns)}
    engine = Engine(
        source.names, BATCH_ROWS, columns=sorted(columns), datagrams=sorting.datagrams, departures=not sorting.watched, samples=True
    )
    connections, flows = sorting.run(engine, None if departures is None else departures.add)
    revisions = _revisions(engine)
    segments = files.segments(engine.info()["packets"], connections, revisions)
    departed = None if departures is None else departures.finish(revisions)
    return Tables(segments, connections, source.info(engine), source.problems(engine), flows, departed)


def _revisions(engine: Engine) -> Revisions:
    """What later segments showed of earlier ones; `engine` has read all."""
    return Revisions(frame(engine.revisions(), schema.SEGMENTS))
