"""A capture, or several as one → its tables `segments` and `connections`. The engine is called here and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab._core import Engine, EngineError
from tcptrace_lab.errors import ReadInPart, UsageError, from_engine, place
from tcptrace_lab.spill import Spill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcptrace_lab._core import ArrowStream, CaptureInfo, Problem

PULL_ROWS = 262_144
"""Segment rows taken from the engine at a time: about 40 MB."""

SPILL_ROWS = 524_288
"""Segment rows kept in memory, about 85 MB; a capture with more goes through temporary files. The promise behind it: 300 MB in
all for a capture of 100 MB, which has 0.9 million segments where 96 bytes of each are kept."""


_PARTIAL = "the results hold what could be read"


@dataclass(frozen=True, slots=True)
class Tables:
    """What the engine makes of a capture.

    Attributes:
        segments: rows of `schema.SEGMENTS` in capture order; lazy, because they may be larger than memory.
        connections: rows of `schema.CONNECTIONS` by `conn`.
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
    progress: Callable[[int], None] | None = None,
) -> Tables:
    """Read a capture into tables.

    Args:
        paths: a file, or several that are merged by time; `-` is standard input.
        spill_rows: segment rows kept in memory; a capture with more is kept in temporary files (`TMPDIR` says where).
        progress: called now and then with the number of packets read so far.

    Raises:
        CaptureUnreadable, NotACapture: nothing could be read.
        UsageError: no path at all.
        OutputUnwritable: the temporary files have no room.
    """
    names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    if not names:
        raise UsageError("no capture given", remedy="name at least one file")
    try:
        return _drain(Engine(names), spill_rows, progress)
    except EngineError as error:
        raise from_engine(error) from error


def _drain(engine: Engine, spill_rows: int, progress: Callable[[int], None] | None) -> Tables:
    spill = Spill(schema.SEGMENTS.polars_schema(), spill_rows)
    while True:
        rows = _frame(engine.segments(PULL_ROWS), schema.SEGMENTS)
        if rows.is_empty():
            break
        spill.add(rows)
        if progress is not None:
            progress(engine.info()["packets"])
    connections = _frame(engine.connections(), schema.CONNECTIONS)
    return Tables(spill.finish(), connections, engine.info(), tuple(engine.problems()))


def _frame(stream: ArrowStream, table: schema.Table) -> pl.DataFrame:
    """The engine's columns, uncopied, with its category codes named."""
    data: Any = stream  # Polars knows the interface by its method, its type hints do not
    named = [pl.col(column.name).cat.to(column.polars_type()) for column in table if column.values]
    return pl.DataFrame(data).with_columns(named)
