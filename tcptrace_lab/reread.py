"""A capture too large to keep: its rows as a lazy frame that reads the files again, each time it is collected.

Reading a plain capture again costs less than writing its segments to disk and reading those: measured on 10 M segments (1 GB of
capture, 1.6 GB of rows), 1.6 s of CPU time for a dozen columns against 4 s for writing Parquet alone. Only the columns that a
query needs are made, and nothing is left behind.
"""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
from polars.io.plugins import register_io_source

from tcptrace_lab import schema
from tcptrace_lab._core import Engine, EngineError
from tcptrace_lab.errors import CaptureUnreadable, from_engine
from tcptrace_lab.predicates import conjuncts, limited
from tcptrace_lab.streams import is_compressed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tcptrace_lab._core import ArrowStream
    from tcptrace_lab.revisions import Revisions

    KnownConnection = tuple[int, tuple[str, int], tuple[str, int], tuple[int, int]]

PULL_ROWS = 65_536
"""Rows taken from the engine at a time, if they have few columns. The next are made meanwhile."""

PULL_VALUES = 1_048_576
"""Values (rows times columns) taken from the engine at a time for a query, but for at least one batch: about 8 MB. Of what a query is given
slowly (`collect_batches`), Polars holds six times as much on its way, and twelve times where the query wants columns in another order."""

BATCH_ROWS = 16_384
"""Rows of one batch of the engine: Polars takes a third more time for batches that are four times smaller."""

MOST_ONLY = 10_000
"""Connections that the engine is told to look for; where more are wanted, it gives all, and Polars picks."""

Progress: TypeAlias = "Callable[[int, float | None], None]"
"""Is told now and then how many rows were read, and what share of the files (0 to 1; None where their size is not known)."""

_KNOWN = ("conn", "client_addr", "client_port", "server_addr", "server_port", "first_frame", "last_frame")


def share_read(engine: Engine) -> float | None:
    """What share of its files an engine has read, 0 to 1; None where one of them is no regular file, or all are empty."""
    info = engine.info()
    return min(info["bytes_read"] / info["bytes_total"], 1.0) if info["bytes_total"] else None


def frame(stream: ArrowStream, table: schema.Table) -> pl.DataFrame:
    """The engine's columns, uncopied, with its category codes named. Columns may be missing; their order is the engine's."""
    data: Any = stream  # Polars knows the interface by its method, its type hints do not
    codes = pl.DataFrame(data)
    return codes.with_columns(
        pl.col(column.name).cat.to(column.polars_type()) for column in table if column.values and column.name in codes.columns
    )


def pulled(engine: Engine, columns: int) -> Iterator[pl.DataFrame]:
    """The segment rows, of so many columns, that remain in `engine`, some at a time."""
    most = min(PULL_ROWS, max(PULL_VALUES // columns // BATCH_ROWS, 1) * BATCH_ROWS)
    while True:
        rows = frame(engine.segments(most), schema.SEGMENTS)
        if rows.is_empty():
            return
        yield rows


@dataclass(frozen=True, slots=True)
class Pulled:
    """Rows of each table that the engine gave at a time.

    Those of connections and flows come when they are over, behind their segments and datagrams, and in no order. They lack the
    columns that are made in Python. `share` is what share of the files was read by then (see `share_read`), and `seen` how many segments,
    wanted or not. `samples` are `conn from_client ack_lag ns`: round trips (of data of that side) and lags (of its ACKs).
    """

    share: float | None
    seen: int
    segments: pl.DataFrame
    datagrams: pl.DataFrame
    connections: pl.DataFrame
    flows: pl.DataFrame
    samples: pl.DataFrame


_PULLED = (schema.SEGMENTS, schema.DATAGRAMS, schema.CONNECTIONS, schema.FLOWS)


def pulled_all(engine: Engine) -> Iterator[Pulled]:
    """All that remains in `engine`, some at a time. While the caller looks at rows, a thread has the engine make the next ones."""

    def pull() -> Pulled:
        *streams, samples = engine.pull(PULL_ROWS)
        data: Any = samples
        segments, datagrams, connections, flows = map(frame, streams, _PULLED)
        return Pulled(share_read(engine), engine.segments_seen(), segments, datagrams, connections, flows, pl.DataFrame(data))

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="pull") as ahead:
        coming = ahead.submit(pull)
        while True:
            rows = coming.result()
            if all(table.is_empty() for table in (rows.segments, rows.datagrams, rows.connections, rows.flows, rows.samples)):
                return
            coming = ahead.submit(pull)
            yield rows


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

    def datagrams(self, last_frame: int) -> pl.LazyFrame:
        """The rows of `schema.DATAGRAMS`, as `segments` gives those of `schema.SEGMENTS`."""
        return self._again(schema.DATAGRAMS, last_frame, lambda _: pulled_datagrams(datagram_engine(self._names, flows=False)))

    def _again(self, table: schema.Table, last_frame: int, pull: Callable[[_Query], Iterator[pl.DataFrame]]) -> pl.LazyFrame:
        """A lazy frame of `table` that takes its rows from `pull` each time it is collected."""

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
                    f"gone while it was read: {error.strerror}", where=name, remedy="keep it until all is done"
                ) from error
            same = (now.st_dev, now.st_ino) == (before.st_dev, before.st_ino)
            untouched = (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
            only_grown = len(self._names) == 1 and now.st_size > before.st_size
            if not same or not (untouched or only_grown):
                raise CaptureUnreadable("changed while it was read", where=name, remedy="wait until it is complete, or analyze a copy")


@dataclass(frozen=True, slots=True)
class _Query:
    """What Polars asks of a source: columns (None: all), a predicate, and how many rows at most."""

    columns: list[str] | None
    predicate: pl.Expr | None
    limit: int | None

    def answer(self, pull: Callable[[_Query], Iterator[pl.DataFrame]], last_frame: int) -> Iterator[pl.DataFrame]:
        """The answer, some rows at a time, from the rows that `pull` gives."""
        try:
            all_rows = pull(self)
        except EngineError as error:
            raise from_engine(error) from error
        yield from limited(self._wanted(all_rows, last_frame), self.limit)

    def _wanted(self, all_rows: Iterator[pl.DataFrame], last_frame: int) -> Iterator[pl.DataFrame]:
        """What is asked for of them, up to a frame behind which the file has grown."""
        for pulled_rows in all_rows:
            rows = pulled_rows
            grown = rows.item(-1, "frame") > last_frame
            if grown:
                rows = rows.filter(pl.col("frame") <= last_frame)
            if self.predicate is not None:
                rows = rows.filter(self.predicate)
            if self.columns is not None:
                rows = rows.select(self.columns)
            yield rows
            if grown:
                return

    def segments(self, names: list[str], connections: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """The segments which the query needs. Raises EngineError where nothing can be read."""
        columns = self._engine_columns()
        return pulled(Engine(names, BATCH_ROWS, columns=columns, only=self._only(connections), summaries=False), len(columns))

    def _engine_columns(self) -> list[str]:
        if self.columns is None:
            return list(schema.SEGMENTS.names)
        tested = () if self.predicate is None else self.predicate.meta.root_names()
        return sorted({*self.columns, *tested, "frame"})

    def _only(self, connections: pl.LazyFrame) -> list[KnownConnection] | None:
        """The connections that can pass the predicate, where parts of it look at nothing else: the engine skips all others early."""
        tests = [part for part in conjuncts(self.predicate) if set(part.meta.root_names()) == {"conn"}]
        if not tests:
            return None
        wanted = connections.filter(tests).select(_KNOWN).head(MOST_ONLY + 1).collect()
        if wanted.height > MOST_ONLY:
            return None
        return [
            (conn, (client, client_port), (server, server_port), (first_frame, last_frame))
            for conn, client, client_port, server, server_port, first_frame, last_frame in wanted.iter_rows()
        ]
