"""Reads a capture with the engine into Polars frames, and keeps the engine's messages about the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import _core, schema
from tcptrace_lab.engine.revisions import REVISED, Revisions
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Read:
    """The engine's output for one capture."""

    segments: pl.DataFrame
    connections: pl.DataFrame
    info: _core.CaptureInfo
    problems: list[_core.Problem]

    @property
    def loses_data(self) -> bool:
        """True if a part of the capture could not be used."""
        return any(problem["loses_data"] for problem in self.problems)


def read(*paths: Path) -> Read:
    """Read `paths` to their end.

    Raises:
        EngineError: nothing could be read.
    """
    engine = _core.Engine([str(path) for path in paths])
    segments = _frame(engine.segments(), schema.SEGMENTS)
    connections = _frame(engine.connections(), schema.CONNECTIONS).sort("conn")
    segments = Revisions(_revisions(engine)).of(segments)
    return Read(segments, connections, engine.info(), engine.problems())


def read_text(folder: Path, text: str, *, link: str = "ethernet", snaplen_bytes: int = packets.SNAPLEN_BYTES) -> Read:
    """Write the exchange `text` (grammar of `packets`) to a capture in `folder`, and read the capture."""
    return read(packets.capture(folder / "exchange.pcap", text, link=link, snaplen_bytes=snaplen_bytes))


def column(table: pl.DataFrame, name: str, *frames: int) -> list[Any]:
    """Return the values of column `name` in the rows of `frames`, in the order of `frames`.

    Without `frames`, return the values of all rows.
    """
    rows = {row["frame"]: row[name] for row in table.iter_rows(named=True)}
    return [rows[frame] for frame in frames or rows]


def _frame(stream: _core.ArrowStream, table: schema.Table) -> pl.DataFrame:
    """Return the batches of the stream as one Polars frame with the types of `table`."""
    data: Any = stream  # Polars accepts an object with `__arrow_c_stream__`, but its type hints do not
    frame = pl.DataFrame(data).with_columns(pl.col(column.name).cat.to(column.polars_type()) for column in table if column.values)
    assert frame.schema == pl.Schema(table.polars_schema())
    return frame


def _revisions(engine: _core.Engine) -> pl.DataFrame:
    data: Any = engine.revisions()
    codes = pl.DataFrame(data)
    assert codes.columns == ["frame", *REVISED]
    named = [name for name in REVISED if schema.SEGMENTS[name].values]
    return codes.with_columns(pl.col(name).cat.to(schema.SEGMENTS[name].polars_type()) for name in named)
