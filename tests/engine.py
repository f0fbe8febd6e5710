"""The engine as tests use it: one capture → its tables as Polars frames, and what the engine says of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from tcptrace_lab import _core, schema

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Read:
    """All that the engine gives for one capture."""

    segments: pl.DataFrame
    connections: pl.DataFrame
    info: _core.CaptureInfo
    problems: list[_core.Problem]

    @property
    def loses_data(self) -> bool:
        """True if something of the capture could not be used."""
        return any(problem["loses_data"] for problem in self.problems)


def read(*paths: Path) -> Read:
    """Reads `paths` to their end.

    Raises:
        EngineError: nothing could be read.
    """
    engine = _core.Engine([str(path) for path in paths])
    segments = _frame(engine.segments(), schema.SEGMENTS)
    connections = _frame(engine.connections(), schema.CONNECTIONS)
    return Read(segments, connections, engine.info(), engine.problems())


def _frame(stream: _core.ArrowStream, table: schema.Table) -> pl.DataFrame:
    """The batches as one frame with the types of `table`."""
    return pl.DataFrame(stream).cast(table.polars_schema())  # type: ignore[arg-type]
