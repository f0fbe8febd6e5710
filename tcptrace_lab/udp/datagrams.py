"""Reads the UDP of capture files into the tables `datagrams` and `flows`, without TCP.

Datagram rows are kept in memory up to a limit. Above the limit, a query reads a plain file again; rows of other input go to temporary
files. The command `analyze` does not use this module, because it reads UDP and TCP in one pass and keeps no datagrams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab import schema
from tcptrace_lab.capture.convert import Source, read_through
from tcptrace_lab.engine.reread import datagram_engine, pulled_all
from tcptrace_lab.engine.segments import REREAD_BYTES, ROWS_PER_CONNECTION, SPILL_ROWS, loss_of, names_of, rereadable
from tcptrace_lab.engine.sorting import Ordered
from tcptrace_lab.engine.spill import Spill

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    import polars as pl

    from tcptrace_lab._core import CaptureInfo, Problem
    from tcptrace_lab.engine.reread import Progress
    from tcptrace_lab.errors import ReadInPart


@dataclass(frozen=True, slots=True)
class Datagrams:
    """The UDP tables of a capture.

    Attributes:
        datagrams: rows of `schema.DATAGRAMS` in capture order; lazy, because they can be larger than memory (see `Tables.segments`).
        flows: rows of `schema.FLOWS` by `flow`; also lazy.
        info: facts about the capture, from the files and the engine.
        problems: each kind of problem that did not stop the engine, with its count and the place where it first occurred.
    """

    datagrams: pl.LazyFrame
    flows: pl.LazyFrame
    info: CaptureInfo
    problems: tuple[Problem, ...]

    @property
    def loss(self) -> ReadInPart | None:
        """The lost part of the capture as an exception, for a caller that needs all of it; None if nothing was lost."""
        return loss_of(self.info, self.problems)


def read_datagrams(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    spill_rows: int = SPILL_ROWS,
    reread_bytes: int = REREAD_BYTES,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Datagrams:
    """Read the UDP of a capture into tables.

    Args:
        paths: a file, or several files that are merged by time; `-` is standard input.
        spill_rows: datagram rows kept in memory. The rows of a larger capture go to temporary files (in `TMPDIR`). One flow is kept in
            memory for every 64 of these rows.
        reread_bytes: rows of uncompressed captures of at least this size are not kept: each query reads the files again.
        progress: called at intervals with the number of datagrams read and the share of the files (None where their size is unknown).
        say: see `segments.read`.

    Raises:
        CaptureUnreadable: nothing could be read (NotACapture: the file is not a capture).
        MissingTool: a file has a format that needs Wireshark, and Wireshark is not installed.
        UsageError: no path was given.
        OutputUnwritable: no room for the temporary files.
    """

    def tables(source: Source) -> Datagrams:
        files = rereadable(source.names, reread_bytes)
        flows = Ordered(schema.FLOWS.polars_schema(), "flow", spill_rows // ROWS_PER_CONNECTION)
        spill = Spill(schema.DATAGRAMS.polars_schema(), spill_rows)
        engine = datagram_engine(source.names, flows=True)
        read = 0
        for rows in pulled_all(engine):
            if files is None and not rows.datagrams.is_empty():
                spill.add(rows.datagrams)
            flows.add(rows.flows)
            read += rows.datagrams.height
            if progress is not None:
                progress(read, rows.share)
        info = source.info(engine)
        datagrams = spill.finish() if files is None else files.datagrams(info["packets"])
        return Datagrams(datagrams, flows.finish(), info, source.problems(engine))

    return read_through(names_of(paths), say, tables)
