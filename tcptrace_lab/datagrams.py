"""A capture, or several as one → its UDP tables `datagrams` and `flows`, without its TCP.

Rows are kept as those of `segments` are: in memory up to a bound; beyond it a plain file is read again, and of what cannot be
read twice they are kept in temporary files. (`analyze` reads UDP beside TCP in one pass and keeps no datagrams.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab import schema
from tcptrace_lab.convert import Source, read_through
from tcptrace_lab.flows import FlowFigures
from tcptrace_lab.ordered import Ordered
from tcptrace_lab.reread import datagram_engine, pulled_all
from tcptrace_lab.segments import REREAD_BYTES, ROWS_PER_CONNECTION, SPILL_ROWS, loss_of, names_of, rereadable
from tcptrace_lab.spill import Spill

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    import polars as pl

    from tcptrace_lab._core import CaptureInfo, Problem
    from tcptrace_lab.errors import ReadInPart
    from tcptrace_lab.reread import Progress


@dataclass(frozen=True, slots=True)
class Datagrams:
    """What the engine makes of the UDP in a capture.

    Attributes:
        datagrams: rows of `schema.DATAGRAMS` in capture order; lazy, because they may be larger than memory (see `Tables.segments`).
        flows: rows of `schema.FLOWS` by `flow`; lazy, too.
        info: what was captured, as the files and the engine say.
        problems: what the engine survived, each kind once, with its count and the place of the first.
    """

    datagrams: pl.LazyFrame
    flows: pl.LazyFrame
    info: CaptureInfo
    problems: tuple[Problem, ...]

    @property
    def loss(self) -> ReadInPart | None:
        """What of the capture was lost, for a caller who cannot live with a part and raises it; None if nothing was."""
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
        paths: a file, or several that are merged by time; `-` is standard input.
        spill_rows: datagram rows kept in memory; a capture with more is kept in temporary files (`TMPDIR` says where). So are
            flows beyond a thirty-second of it.
        reread_bytes: size from which uncompressed captures are read again by every query instead.
        progress: told now and then how many datagrams were read, and what share of the files (None where their size is not known).
        say: as for `segments.read`.

    Raises:
        CaptureUnreadable: nothing could be read (NotACapture where there is nothing to read).
        MissingTool: a file has a format that Wireshark reads, and it is not installed.
        UsageError: no path at all.
        OutputUnwritable: the temporary files have no room.
    """

    def tables(source: Source) -> Datagrams:
        files = rereadable(source.names, reread_bytes)
        figures = FlowFigures()
        flows = Ordered(schema.FLOWS.polars_schema(), "flow", spill_rows // ROWS_PER_CONNECTION, figures.take)
        spill = Spill(schema.DATAGRAMS.polars_schema(), spill_rows)
        engine = datagram_engine(source.names, flows=True)
        read = 0
        for rows in pulled_all(engine):
            if not rows.datagrams.is_empty():
                figures.add(rows.datagrams)
                if files is None:
                    spill.add(rows.datagrams)
            flows.add(rows.flows)
            read += rows.datagrams.height
            if progress is not None:
                progress(read, rows.share)
        info = source.info(engine)
        datagrams = spill.finish() if files is None else files.datagrams(info["packets"])
        return Datagrams(datagrams, flows.finish(), info, source.problems(engine))

    return read_through(names_of(paths), say, tables)
