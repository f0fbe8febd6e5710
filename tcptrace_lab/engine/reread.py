"""Provides lazy tables of a capture that is too large to keep: each query reads the files again.

For an uncompressed capture, reading again costs less than writing segments to disk and reading them back. For 10 million segments (1 GB of
capture, 1.6 GB of rows), reading a dozen columns again takes 1.6 s of CPU time; writing Parquet alone takes 4 s. The engine computes only
the columns that a query needs.
"""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import polars as pl
from polars.io.plugins import register_io_source

from tcptrace_lab import schema
from tcptrace_lab._core import MAX_NEIGHBOURS, Engine, EngineError, Messages
from tcptrace_lab.capture.streams import is_compressed
from tcptrace_lab.engine.predicates import conjuncts, limited
from tcptrace_lab.errors import CaptureUnreadable, from_engine
from tcptrace_lab.process import temporary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tcptrace_lab._core import ArrowStream
    from tcptrace_lab.engine.revisions import Revisions

    KnownConnection = tuple[int, tuple[str, int], tuple[str, int], tuple[int, int]]

Worth: TypeAlias = "tuple[int, int, float, bool, bool]"
"""Condition for a finding on the time of a cause in one direction. The fields are the index of the cause in `schema.CAUSES`, the minimum
time in nanoseconds, the minimum share of the direction's active time, whether only the client's direction counts, and whether only
directions with data count."""

PULL_ROWS = 65_536
"""Maximum number of rows taken from the engine at a time. The engine prepares the next rows meanwhile."""

PULL_VALUES = 1_048_576
"""Maximum number of values (rows × columns) taken from the engine at a time for a query. The values take about 8 MB. At least one batch is
taken, even if it is larger. If a consumer is slow (`collect_batches`), Polars buffers six times as much, or twelve times if the query
reorders columns."""

BATCH_ROWS = 16_384
"""Number of rows in each batch of the engine. With batches of a quarter of this size, Polars takes a third longer."""

TOGETHER_WAITS_BYTES = 16_000_000
"""Memory for waits in a pass that also reads segments. It is a quarter of the engine's default, because segments need memory too."""

MAX_ONLY = 10_000
"""If a query wants at most this many connections, the engine skips all others. For more connections, Polars does the filtering."""

Together: TypeAlias = "Callable[[Sequence[int], Sequence[str], Sequence[str]], Iterator[tuple[pl.DataFrame, pl.DataFrame]]]"
"""A function of three arguments: connections, columns of `schema.SEGMENTS`, and columns of `schema.WAITS`. It yields batches of both tables
in one pass: segments in frame order, and the waits of a connection after its segments."""

Progress: TypeAlias = "Callable[[int, float | None], None]"
"""A function that is called at intervals with the number of rows read and the share of the files (0 to 1; None where their size is
unknown)."""

_ALL = 1 << 20
"""Maximum number of costs for chosen connections: so high that the engine keeps all costs."""

_KNOWN = ("conn", "client_addr", "client_port", "server_addr", "server_port", "first_frame", "last_frame")


def share_read(engine: Engine) -> float | None:
    """Return the share of its files that an engine has read, 0 to 1; None if a file is not a regular file, or all are empty."""
    info = engine.info()
    return min(info["bytes_read"] / info["bytes_total"], 1.0) if info["bytes_total"] else None


def frame(stream: ArrowStream, table: schema.Table) -> pl.DataFrame:
    """Return the engine's columns without copying them, with category names instead of codes.

    Some columns of `table` can be missing. The columns are in the engine's order.
    """
    data: Any = stream  # Polars accepts Arrow streams, but its type hints do not
    codes = pl.DataFrame(data)
    if not codes.height:
        return table.no_rows(tuple(codes.columns))
    named = _named(table, tuple(codes.columns))
    return codes.with_columns(named) if named else codes


@cache
def _named(table: schema.Table, columns: tuple[str, ...]) -> list[pl.Expr]:
    """Return the expressions that turn category codes into categories."""
    return [pl.col(column.name).cat.to(column.polars_type()) for column in table if column.values and column.name in columns]


def pulled(engine: Engine, columns: int) -> Iterator[pl.DataFrame]:
    """Yield the remaining segment rows of `engine`, in batches; `columns` is the number of columns."""
    most = min(PULL_ROWS, max(PULL_VALUES // columns // BATCH_ROWS, 1) * BATCH_ROWS)
    while True:
        rows = frame(engine.segments(most), schema.SEGMENTS)
        if rows.is_empty():
            return
        yield rows


class Pulled(NamedTuple):
    """One batch of rows of each table, as the engine returns them.

    The row of a connection (flow) comes with the batch of its last segment (datagram), or with a later batch. The order of these rows is
    not defined. `accounts`, `ledger` (columns of `schema.WAITS`) and `notes` come after the row of their connection, if they were
    requested. In a capture with at most `MAX_NEIGHBOURS` connections, these three tables come after the rows of all connections.

    Attributes:
        share: share of the files that has been read up to this batch (see `share_read`).
        seen: number of segments so far. Segments count even if their rows are not requested.
    """

    share: float | None
    seen: int
    segments: pl.DataFrame
    datagrams: pl.DataFrame
    connections: pl.DataFrame
    flows: pl.DataFrame
    accounts: pl.DataFrame
    ledger: pl.DataFrame
    notes: pl.DataFrame


def pulled_all(engine: Engine) -> Iterator[Pulled]:
    """Yield all remaining rows of `engine`, in batches. A thread reads the next batch while the caller uses the current batch.

    Raises OutputUnwritable if there is no room for temporary files.
    """

    def pull() -> Pulled | None:
        tables = engine.pull(PULL_ROWS)
        if tables is None:
            return None
        segments, ledger, datagrams, connections, flows, accounts, notes = tables
        return Pulled(
            share_read(engine),
            engine.segments_seen(),
            frame(segments, schema.SEGMENTS),
            _frame(datagrams, schema.DATAGRAMS),
            _frame(connections, schema.CONNECTIONS),
            _frame(flows, schema.FLOWS),
            _frame(accounts, schema.ACCOUNTS),
            frame(ledger, schema.WAITS),
            _frame(notes, schema.NOTES),
        )

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="pull") as ahead:
        coming = ahead.submit(pull)
        while True:
            with temporary.room():
                rows = coming.result()
            if rows is None:
                return
            coming = ahead.submit(pull)
            yield rows


def _frame(stream: ArrowStream | None, table: schema.Table) -> pl.DataFrame:
    return table.no_rows() if stream is None else frame(stream, table)


class Judged(NamedTuple):
    """The evidence for findings: on connections that lose enough time for a finding, and on connections whose handshake failed.

    Attributes:
        kinds: rows of `schema.KINDS_OF_WAITS`.
        waits: rows of `schema.LONGEST`: for each direction, its longest waits, the longest waits of each cause, and the longest stalls.
        locks: rows of `schema.LOCKS`.
        places: rows of `schema.PLACES`: all directions of these connections.
    """

    kinds: pl.DataFrame
    waits: pl.DataFrame
    locks: pl.DataFrame
    places: pl.DataFrame

    def with_more(self, more: Judged) -> Judged:
        """Return this evidence together with the evidence `more` on other connections."""
        return Judged(*(pl.concat([getattr(self, name), getattr(more, name)]) for name in self._fields))


def nothing_judged() -> Judged:
    """Return the evidence when no connection was judged: empty tables."""
    tables = (schema.KINDS_OF_WAITS, schema.LONGEST, schema.LOCKS, schema.PLACES)
    return Judged(*(table.no_rows() for table in tables))


def judged(engine: Engine) -> Judged:
    """Return the evidence from an engine that was created with `worth` and has ended its pass."""
    return Judged(
        frame(engine.kinds(), schema.KINDS_OF_WAITS),
        frame(engine.waits(), schema.LONGEST),
        frame(engine.locks(), schema.LOCKS),
        frame(engine.directions(), schema.PLACES),
    )


def messages(segments: Iterable[pl.DataFrame], notes: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Reconstruct messages from batches of segments and the notes on them (`_core.Messages`).

    Yield rows of `schema.MESSAGES` when they are final.
    """
    found = Messages(notes)
    for batch in segments:
        if not (rows := frame(found.add(batch), schema.MESSAGES)).is_empty():
            yield rows
    if not (rows := frame(found.rest(), schema.MESSAGES)).is_empty():
        yield rows


def datagram_engine(names: list[str], *, flows: bool) -> Engine:
    """Return an engine for the UDP datagrams of a capture, and for its flows if requested. Raises EngineError if nothing can be read."""
    return Engine(names, BATCH_ROWS, columns=["frame"], only=[], summaries=False, datagrams=True, flows=flows)


def pulled_datagrams(engine: Engine) -> Iterator[pl.DataFrame]:
    """Yield the remaining datagram rows of `engine`, in batches."""
    return (rows.datagrams for rows in pulled_all(engine))


class Files:
    """Regular files that can be read again, with their state (`stat`) at the first reading."""

    def __init__(self, names: Sequence[str]) -> None:
        """Record the current state of the files. Raises OSError if `stat` fails."""
        self._names = list(names)
        self._looks = [os.stat(name) for name in self._names]  # noqa: PTH116  (file names stay as the user gave them)

    @property
    def regular(self) -> bool:
        """Whether all files are regular files: no pipe, device or directory."""
        return all(stat.S_ISREG(look.st_mode) for look in self._looks)

    @property
    def size_bytes(self) -> int:
        """Total size of the files."""
        return sum(look.st_size for look in self._looks)

    def compressed(self) -> bool:
        """Return whether one of the files is compressed, so that reading it again means decompressing it again.

        Raises OSError if a file cannot be opened.
        """
        return any(is_compressed(name) for name in self._names)

    def segments(self, last_frame: int, connections: pl.LazyFrame, revisions: Revisions) -> pl.LazyFrame:
        """Return the rows of `schema.SEGMENTS` up to `last_frame`. Each query reads the files.

        A query raises CaptureUnreadable if the files have changed. A capture in a single file is allowed to grow: frames after `last_frame`
        are ignored.

        Args:
            last_frame: last frame of the first reading.
            connections: all connections of the files.
            revisions: applied to the rows.
        """

        def pull(query: _Query) -> Iterator[pl.DataFrame]:
            return map(revisions.of, query.segments(self._names, connections))

        return self._again(schema.SEGMENTS, last_frame, pull)

    def ledger(self, connections: pl.LazyFrame) -> pl.LazyFrame:
        """Return the rows of `schema.WAITS`, in the order in which their connections end.

        Each query reads the files and classifies their segments again. A query raises CaptureUnreadable if the files have changed. A
        capture in a single file is allowed to grow. New connections of a grown file are ignored if there were at most `MAX_ONLY`
        connections before.
        """

        def pull(query: _Query) -> Iterator[pl.DataFrame]:
            return query.ledger(self._names, connections)

        return self._again(schema.WAITS, None, pull)

    def together(self, last_frame: int, connections: pl.LazyFrame, revisions: Revisions) -> Together:
        """Return a function that yields rows of `segments` and `ledger` from one pass over the files.

        The returned function raises CaptureUnreadable if the files have changed.
        """

        def rows(conns: Sequence[int], columns: Sequence[str], waits: Sequence[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
            self._check_unchanged()
            conn = pl.col("conn")  # a range test, because a list of a million numbers would be prepared again for each batch
            wanted = conn.is_between(conns.start, conns.stop - 1) if isinstance(conns, range) else conn.is_in(conns)
            only, in_capture = judged_together(connections, wanted)
            try:
                engine = Engine(
                    self._names,
                    BATCH_ROWS,
                    columns=sorted({*columns, "conn"}),
                    only=only,
                    summaries=False,
                    ledger=sorted({*waits, "conn"}),
                    in_capture=in_capture,
                    waits_memory_bytes=TOGETHER_WAITS_BYTES,
                )
                for pulled_rows in pulled_all(engine):
                    segments = _up_to(last_frame, pulled_rows.segments).filter(wanted).select(columns)
                    yield revisions.of(segments), pulled_rows.ledger.filter(wanted).select(waits)
            except EngineError as error:
                raise from_engine(error) from error

        return rows

    def judged(self, connections: pl.LazyFrame, conns: Sequence[int], worth: Sequence[Worth]) -> Judged:
        """Return the evidence for findings on some connections. Raises CaptureUnreadable if the files have changed."""
        self._check_unchanged()
        wanted = pl.col("conn").is_in(conns)
        only, in_capture = judged_together(connections, wanted)
        try:
            engine = Engine(self._names, BATCH_ROWS, columns=[], only=only, summaries=False, worth=worth, most=_ALL, in_capture=in_capture)
            for _ in pulled_all(engine):
                pass
        except EngineError as error:
            raise from_engine(error) from error
        return Judged(*(table.filter(wanted) for table in judged(engine)))

    def datagrams(self, last_frame: int) -> pl.LazyFrame:
        """Return the rows of `schema.DATAGRAMS` up to `last_frame`. Each query reads the files, with the errors of `segments`."""
        return self._again(schema.DATAGRAMS, last_frame, lambda _: pulled_datagrams(datagram_engine(self._names, flows=False)))

    def _again(self, table: schema.Table, last_frame: int | None, pull: Callable[[_Query], Iterator[pl.DataFrame]]) -> pl.LazyFrame:
        """Return a lazy frame of `table` that calls `pull` each time it is collected. It ends at `last_frame`, if given."""

        def rows(
            columns: list[str] | None,
            predicate: pl.Expr | None,
            limit: int | None,
            batch_rows: int | None,  # noqa: ARG001  (Polars passes its own batch size, which is not used)
        ) -> Iterator[pl.DataFrame]:
            self._check_unchanged()
            query = _Query(columns, predicate, limit)
            return query.answer(pull, last_frame)

        return register_io_source(rows, schema=table.polars_schema(), is_pure=True)

    def _check_unchanged(self) -> None:
        for name, before in zip(self._names, self._looks, strict=True):
            try:
                now = os.stat(name)  # noqa: PTH116
            except OSError as error:
                raise CaptureUnreadable(
                    f"the file disappeared while it was read: {error.strerror}", where=name, remedy="keep the file until the end"
                ) from error
            same = (now.st_dev, now.st_ino) == (before.st_dev, before.st_ino)
            untouched = (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
            only_grown = len(self._names) == 1 and now.st_size > before.st_size
            if not same or not (untouched or only_grown):
                raise CaptureUnreadable("changed while it was read", where=name, remedy="wait until it is complete, or analyze a copy")


class _Query(NamedTuple):
    """A request of Polars to a source of rows: columns (None: all), a predicate, and a maximum number of rows."""

    columns: list[str] | None
    predicate: pl.Expr | None
    limit: int | None

    def answer(self, pull: Callable[[_Query], Iterator[pl.DataFrame]], last_frame: int | None) -> Iterator[pl.DataFrame]:
        """Yield, in batches, the rows from `pull` that answer the query."""
        try:
            all_rows = pull(self)
        except EngineError as error:
            raise from_engine(error) from error
        yield from limited(self._wanted(all_rows, last_frame), self.limit)

    def _wanted(self, all_rows: Iterator[pl.DataFrame], last_frame: int | None) -> Iterator[pl.DataFrame]:
        """Apply predicate and columns to each batch. Stop after `last_frame`, because the file can have grown since the first reading."""
        for pulled_rows in all_rows:
            rows = pulled_rows if last_frame is None else _up_to(last_frame, pulled_rows)
            grown = rows.height < pulled_rows.height
            if self.predicate is not None:
                rows = rows.filter(self.predicate)
            if self.columns is not None:
                rows = rows.select(self.columns)
            yield rows
            if grown:
                return

    def segments(self, names: list[str], connections: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Yield the segments that the query needs. Raises EngineError if nothing can be read."""
        columns = self._engine_columns(schema.SEGMENTS, "frame")
        return pulled(Engine(names, BATCH_ROWS, columns=columns, only=self._only(connections), summaries=False), len(columns))

    def ledger(self, names: list[str], connections: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Yield the intervals of the ledger that the query needs. Raises EngineError if nothing can be read."""
        columns = self._engine_columns(schema.WAITS)
        only, in_capture = judged_together(connections, *self._of_connections())
        engine = Engine(names, BATCH_ROWS, columns=[], only=only, summaries=False, ledger=columns, in_capture=in_capture)
        return (rows.ledger for rows in pulled_all(engine) if not rows.ledger.is_empty())

    def _engine_columns(self, table: schema.Table, *also: str) -> list[str]:
        if self.columns is None:
            return list(table.names)
        tested = () if self.predicate is None else self.predicate.meta.root_names()
        return sorted({*self.columns, *tested, *also})

    def _only(self, connections: pl.LazyFrame) -> list[KnownConnection] | None:
        """Return the connections that the predicate's conditions on `conn` allow; the engine skips all others. None: all connections."""
        tests = self._of_connections()
        return known_connections(connections, *tests) if tests else None

    def _of_connections(self) -> list[pl.Expr]:
        """Return the parts of the predicate that use only `conn`."""
        return [part for part in conjuncts(self.predicate) if set(part.meta.root_names()) == {"conn"}]


def _up_to(last_frame: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Remove frames after `last_frame`, which were added to the file after the first reading. `rows` are in frame order."""
    return rows if rows.is_empty() or rows.item(-1, "frame") <= last_frame else rows.filter(pl.col("frame") <= last_frame)


def judged_together(connections: pl.LazyFrame, *tests: pl.Expr) -> tuple[list[KnownConnection] | None, int]:
    """Return the connections that pass the tests, for the engine's filter, and the number of all connections.

    The filter is None (all connections) if there are at most `MAX_NEIGHBOURS` connections, because the engine then judges them together.

    Args:
        connections: all connections of the files.
        tests: expressions over the columns of `connections`.
    """
    in_capture = connections.select(pl.len()).collect().item()
    return known_connections(connections, *tests) if in_capture > MAX_NEIGHBOURS else None, in_capture


def known_connections(connections: pl.LazyFrame, *tests: pl.Expr) -> list[KnownConnection] | None:
    """Return the connections that pass the tests, for the engine's filter; None if there are more than `MAX_ONLY`."""
    wanted = connections.filter(*tests).select(_KNOWN).head(MAX_ONLY + 1).collect()
    if wanted.height > MAX_ONLY:
        return None
    return [
        (conn, (client, client_port), (server, server_port), (first_frame, last_frame))
        for conn, client, client_port, server, server_port, first_frame, last_frame in wanted.iter_rows()
    ]
