"""A capture too large to keep: its rows as a lazy frame that reads the files again, each time it is collected.

Reading a plain capture again costs less than writing its segments to disk and reading those: measured on 10 M segments (1 GB of
capture, 1.6 GB of rows), 1.6 s of CPU time for a dozen columns against 4 s for writing Parquet alone. Only the columns that a
query needs are made, and nothing is left behind.
"""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import polars as pl
from polars.io.plugins import register_io_source

from tcptrace_lab import schema, temporary
from tcptrace_lab._core import Engine, EngineError
from tcptrace_lab.errors import CaptureUnreadable, from_engine
from tcptrace_lab.predicates import conjuncts, limited
from tcptrace_lab.streams import is_compressed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tcptrace_lab._core import ArrowStream
    from tcptrace_lab.revisions import Revisions

    KnownConnection = tuple[int, tuple[str, int], tuple[str, int], tuple[int, int]]

Worth: TypeAlias = "tuple[int, int, float, bool, bool]"
"""When the time of a cause in one direction is worth a finding: the cause's place in `schema.CAUSES`, from so many nanoseconds on, from
this share of the direction's life on, of the client's direction alone, of directions with data alone."""

PULL_ROWS = 65_536
"""Rows taken from the engine at a time, if they have few columns. The next are made meanwhile."""

PULL_VALUES = 1_048_576
"""Values (rows times columns) taken from the engine at a time for a query, but for at least one batch: about 8 MB. Of what a query is given
slowly (`collect_batches`), Polars holds six times as much on its way, and twelve times where the query wants columns in another order."""

BATCH_ROWS = 16_384
"""Rows of one batch of the engine: Polars takes a third more time for batches that are four times smaller."""

TOGETHER_WAITS_BYTES = 16_000_000
"""Memory for waits where segments come of the same pass, a quarter of what the engine takes otherwise: what segments need comes on top."""

MOST_ONLY = 10_000
"""Connections that the engine is told to look for; where more are wanted, it gives all, and Polars picks."""

Together: TypeAlias = "Callable[[Sequence[int], Sequence[str], Sequence[str]], Iterator[tuple[pl.DataFrame, pl.DataFrame]]]"
"""Is asked for connections, columns of `schema.SEGMENTS` and columns of `schema.WAITS`; gives some rows of both at a time, in one pass:
segments in frame order, and the ledger of each connection behind its segments."""

Progress: TypeAlias = "Callable[[int, float | None], None]"
"""Is told now and then how many rows were read, and what share of the files (0 to 1; None where their size is not known)."""

_ALL = 1 << 20
"""So many costs are kept where connections were chosen before: all that they can have."""

_KNOWN = ("conn", "client_addr", "client_port", "server_addr", "server_port", "first_frame", "last_frame")


def share_read(engine: Engine) -> float | None:
    """What share of its files an engine has read, 0 to 1; None where one of them is no regular file, or all are empty."""
    info = engine.info()
    return min(info["bytes_read"] / info["bytes_total"], 1.0) if info["bytes_total"] else None


def frame(stream: ArrowStream, table: schema.Table) -> pl.DataFrame:
    """The engine's columns, uncopied, with its category codes named. Columns may be missing; their order is the engine's."""
    data: Any = stream  # Polars knows the interface by its method, its type hints do not
    codes = pl.DataFrame(data)
    return codes.with_columns(_named(table, tuple(codes.columns))) if codes.height else table.no_rows(tuple(codes.columns))


@cache
def _named(table: schema.Table, columns: tuple[str, ...]) -> list[pl.Expr]:
    """Category codes as categories."""
    return [pl.col(column.name).cat.to(column.polars_type()) for column in table if column.values and column.name in columns]


def pulled(engine: Engine, columns: int) -> Iterator[pl.DataFrame]:
    """The segment rows, of so many columns, that remain in `engine`, some at a time."""
    most = min(PULL_ROWS, max(PULL_VALUES // columns // BATCH_ROWS, 1) * BATCH_ROWS)
    while True:
        rows = frame(engine.segments(most), schema.SEGMENTS)
        if rows.is_empty():
            return
        yield rows


class Pulled(NamedTuple):
    """Rows of each table that the engine gave at a time.

    Those of connections and flows come when they are over, behind their segments and datagrams, and in no order. Flows lack the columns
    that are made in Python. `share` is what share of the files was read by then (see `share_read`), and `seen` how many segments, wanted
    or not. `accounts`, `ledger` (columns of `schema.WAITS`) and `notes` come with their connection, where the engine was asked for them.
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

    def goes_on(self, before: Pulled | None) -> bool:
        """False behind the end: nothing came since `before`."""
        tables = (self.segments, self.datagrams, self.connections, self.flows, self.accounts, self.ledger, self.notes)
        return self.seen > (0 if before is None else before.seen) or not all(table.is_empty() for table in tables)


_PULLED = (
    schema.SEGMENTS,
    schema.DATAGRAMS,
    schema.CONNECTIONS,
    schema.FLOWS,
    schema.ACCOUNTS,
    schema.WAITS,
    schema.NOTES,
)


def pulled_all(engine: Engine) -> Iterator[Pulled]:
    """All that remains in `engine`, some at a time. While the caller looks at rows, a thread has the engine make the next ones.

    Raises OutputUnwritable where temporary files have no room.
    """

    def pull() -> Pulled:
        tables = map(frame, engine.pull(PULL_ROWS), _PULLED)
        return Pulled(share_read(engine), engine.segments_seen(), *tables)

    before = None
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="pull") as ahead:
        coming = ahead.submit(pull)
        while True:
            with temporary.room():
                rows = coming.result()
            if not rows.goes_on(before):
                return
            coming = ahead.submit(pull)
            before = rows
            yield rows


class Judged(NamedTuple):
    """What findings are made of: of the connections that lose time worth a finding, and of those whose handshake failed.

    Attributes:
        kinds: rows of `schema.KINDS_OF_WAITS`.
        waits: rows of `schema.LONGEST`: the longest of each direction, of each of its causes, and of its stalls.
        locks: rows of `schema.LOCKS`.
        places: rows of `schema.PLACES`: all directions of these connections.
    """

    kinds: pl.DataFrame
    waits: pl.DataFrame
    locks: pl.DataFrame
    places: pl.DataFrame

    def with_more(self, more: Judged) -> Judged:
        """This and what `more` says of other connections."""
        return Judged(*(pl.concat([getattr(self, name), getattr(more, name)]) for name in self._fields))


def nothing_judged() -> Judged:
    """What is said of no connections."""
    tables = (schema.KINDS_OF_WAITS, schema.LONGEST, schema.LOCKS, schema.PLACES)
    return Judged(*(table.no_rows() for table in tables))


def judged(engine: Engine) -> Judged:
    """What the engine says at the end of a pass in which it was told what is worth a finding."""
    return Judged(
        frame(engine.kinds(), schema.KINDS_OF_WAITS),
        frame(engine.waits(), schema.LONGEST),
        frame(engine.locks(), schema.LOCKS),
        frame(engine.directions(), schema.PLACES),
    )


def datagram_engine(names: list[str], *, flows: bool) -> Engine:
    """An engine that gives the datagrams of a capture, its flows if wanted, and no TCP. Raises EngineError where nothing can be read."""
    return Engine(names, BATCH_ROWS, columns=["frame"], only=[], summaries=flows, datagrams=True)


def pulled_datagrams(engine: Engine) -> Iterator[pl.DataFrame]:
    """The datagram rows that remain in `engine`, some at a time."""
    return (rows.datagrams for rows in pulled_all(engine))


class Files:
    """Regular files that can be read again, and how they looked when they were read first."""

    def __init__(self, names: Sequence[str]) -> None:
        """Remember how `names` look now. Raises OSError where one cannot be looked at."""
        self._names = list(names)
        self._looks = [os.stat(name) for name in self._names]  # noqa: PTH116  (names as the user gave them)

    @property
    def regular(self) -> bool:
        """True if none is a pipe, a device or a directory."""
        return all(stat.S_ISREG(look.st_mode) for look in self._looks)

    @property
    def size_bytes(self) -> int:
        """Of all together."""
        return sum(look.st_size for look in self._looks)

    def compressed(self) -> bool:
        """True if one of them is: reading it again would mean decompressing it again. Raises OSError where one cannot be opened."""
        return any(is_compressed(name) for name in self._names)

    def segments(self, last_frame: int, connections: pl.LazyFrame, revisions: Revisions) -> pl.LazyFrame:
        """The rows of `schema.SEGMENTS` up to `last_frame`, read anew for each query; `connections` are all that the files hold.

        A query raises CaptureUnreadable if the files have changed since. A single file may have grown: what is new in it is left out.
        """

        def pull(query: _Query) -> Iterator[pl.DataFrame]:
            return map(revisions.of, query.segments(self._names, connections))

        return self._again(schema.SEGMENTS, last_frame, pull)

    def ledger(self, connections: pl.LazyFrame) -> pl.LazyFrame:
        """The rows of `schema.WAITS`, read and judged anew for each query, in the order in which their connections end.

        A query raises CaptureUnreadable as one of `segments` does. What is new in a file that has grown is left out, where it holds few
        enough connections for the engine to be told of all.
        """

        def pull(query: _Query) -> Iterator[pl.DataFrame]:
            return query.ledger(self._names, connections)

        return self._again(schema.WAITS, None, pull)

    def together(self, last_frame: int, connections: pl.LazyFrame, revisions: Revisions) -> Together:
        """Gives rows of `segments` and of `ledger` from one reading. It raises CaptureUnreadable as a query does."""

        def rows(conns: Sequence[int], columns: Sequence[str], waits: Sequence[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
            self._check_unchanged()
            only = known_connections(connections, pl.col("conn").is_in(conns))
            try:
                engine = Engine(
                    self._names,
                    BATCH_ROWS,
                    columns=columns,
                    only=only,
                    summaries=False,
                    ledger=waits,
                    waits_memory_bytes=TOGETHER_WAITS_BYTES,
                )
                for pulled_rows in pulled_all(engine):
                    yield revisions.of(_up_to(last_frame, pulled_rows.segments)), pulled_rows.ledger
            except EngineError as error:
                raise from_engine(error) from error

        return rows

    def judged(self, connections: pl.LazyFrame, conns: Sequence[int], worth: Sequence[Worth]) -> Judged:
        """What findings on some connections are made of. Raises CaptureUnreadable as a query of `ledger` does."""
        self._check_unchanged()
        only = known_connections(connections, pl.col("conn").is_in(conns))
        try:
            engine = Engine(self._names, BATCH_ROWS, columns=[], only=only, summaries=False, worth=worth, most=_ALL)
            for _ in pulled_all(engine):
                pass
        except EngineError as error:
            raise from_engine(error) from error
        return judged(engine)

    def datagrams(self, last_frame: int) -> pl.LazyFrame:
        """The rows of `schema.DATAGRAMS`, as `segments` gives those of `schema.SEGMENTS`."""
        return self._again(schema.DATAGRAMS, last_frame, lambda _: pulled_datagrams(datagram_engine(self._names, flows=False)))

    def _again(self, table: schema.Table, last_frame: int | None, pull: Callable[[_Query], Iterator[pl.DataFrame]]) -> pl.LazyFrame:
        """A lazy frame of `table` that takes its rows from `pull` each time it is collected; up to a frame, if one is given."""

        def rows(
            columns: list[str] | None,
            predicate: pl.Expr | None,
            limit: int | None,
            batch_rows: int | None,  # noqa: ARG001  (Polars' own idea of a batch)
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
    """What Polars asks of a source: columns (None: all), a predicate, and how many rows at most."""

    columns: list[str] | None
    predicate: pl.Expr | None
    limit: int | None

    def answer(self, pull: Callable[[_Query], Iterator[pl.DataFrame]], last_frame: int | None) -> Iterator[pl.DataFrame]:
        """The answer, some rows at a time, from the rows that `pull` gives."""
        try:
            all_rows = pull(self)
        except EngineError as error:
            raise from_engine(error) from error
        yield from limited(self._wanted(all_rows, last_frame), self.limit)

    def _wanted(self, all_rows: Iterator[pl.DataFrame], last_frame: int | None) -> Iterator[pl.DataFrame]:
        """What is asked for of them, up to a frame behind which the file has grown."""
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
        """The segments which the query needs. Raises EngineError where nothing can be read."""
        columns = self._engine_columns(schema.SEGMENTS, "frame")
        return pulled(Engine(names, BATCH_ROWS, columns=columns, only=self._only(connections), summaries=False), len(columns))

    def ledger(self, names: list[str], connections: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """The intervals of the ledger which the query needs. Raises EngineError where nothing can be read."""
        columns = self._engine_columns(schema.WAITS)
        only = known_connections(connections, *self._of_connections())
        engine = Engine(names, BATCH_ROWS, columns=[], only=only, summaries=False, ledger=columns)
        return (rows.ledger for rows in pulled_all(engine) if not rows.ledger.is_empty())

    def _engine_columns(self, table: schema.Table, *also: str) -> list[str]:
        if self.columns is None:
            return list(table.names)
        tested = () if self.predicate is None else self.predicate.meta.root_names()
        return sorted({*self.columns, *tested, *also})

    def _only(self, connections: pl.LazyFrame) -> list[KnownConnection] | None:
        """The connections that can pass the predicate, where parts of it look at nothing else: the engine skips all others early."""
        tests = self._of_connections()
        return known_connections(connections, *tests) if tests else None

    def _of_connections(self) -> list[pl.Expr]:
        """The parts of the predicate that look at nothing but the connection."""
        return [part for part in conjuncts(self.predicate) if set(part.meta.root_names()) == {"conn"}]


def _up_to(last_frame: int, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows, in frame order, without those of frames that came into the file since it was read first."""
    return rows if rows.is_empty() or rows.item(-1, "frame") <= last_frame else rows.filter(pl.col("frame") <= last_frame)


def known_connections(connections: pl.LazyFrame, *tests: pl.Expr) -> list[KnownConnection] | None:
    """The connections that pass some tests, as the engine is told to look for them; None: they are too many for that."""
    wanted = connections.filter(*tests).select(_KNOWN).head(MOST_ONLY + 1).collect()
    if wanted.height > MOST_ONLY:
        return None
    return [
        (conn, (client, client_port), (server, server_port), (first_frame, last_frame))
        for conn, client, client_port, server, server_port, first_frame, last_frame in wanted.iter_rows()
    ]
