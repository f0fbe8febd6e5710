"""Rows that are read once or twice and soon, beyond a bound in nameless temporary files: integers as narrow as they fit, not compressed.

What fits into fewer bytes costs less to write than to compress. Of a million departures (217 bytes each, 95 as narrow as they fit), LZ4
took 0.33 s of CPU time either way; uncompressed as they are 0.1 s and as much again in the kernel, which finds pages for them; narrow
0.1 s in all.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import polars as pl
from polars.io.plugins import register_io_source

from tcptrace_lab.spill import Files, close

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Passing:
    """Collects frames of one schema, then gives all their rows as one lazy frame, in the order of adding."""

    def __init__(self, schema: Mapping[str, pl.DataType], held_rows: int) -> None:
        """Keep up to `held_rows` rows in memory."""
        self._schema = dict(schema)
        self._held_rows = held_rows
        self._held: list[pl.DataFrame] = []
        self._files = Files(_write)

    def add(self, frame: pl.DataFrame) -> None:
        """Take over the rows of `frame`. Raises OutputUnwritable as `spill.Files.add` does."""
        if frame.is_empty():
            return
        self._held.append(frame)
        if self._files.some or sum(part.height for part in self._held) > self._held_rows:
            self._files.add(pl.concat(self._held, rechunk=False))
            self._held = []

    def finish(self) -> pl.LazyFrame:
        """All rows. Raises OutputUnwritable as `add` does."""
        files = self._files.finish()
        if not files:
            return pl.concat([pl.DataFrame(schema=self._schema), *self._held], rechunk=False).lazy()
        parts = [pl.scan_ipc(file) for file in files]
        close(files)  # the scans hold them open
        return _lazy(parts, self._schema)


def _write(frame: pl.DataFrame, file: IO[bytes]) -> None:
    """As few bytes as hold the numbers of this frame, and codes of categories: with their names, each file would have a dictionary."""
    codes = frame.with_columns(pl.selectors.enum().to_physical())
    narrow = pl.DataFrame([column.shrink_dtype() if column.dtype.is_integer() else column for column in codes])
    narrow.rechunk().write_ipc(file, compression="uncompressed")


def _lazy(parts: list[pl.LazyFrame], schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """A lazy frame over all parts that reads them anew each time it is collected, one at a time."""

    def rows(
        columns: list[str] | None,
        predicate: pl.Expr | None,
        limit: int | None,
        batch_rows: int | None,  # noqa: ARG001  (Polars' own idea of a batch)
    ) -> Iterator[pl.DataFrame]:
        names = list(schema) if columns is None else columns
        tested = [] if predicate is None else predicate.meta.root_names()
        left = limit
        for part in parts:
            query = part.select({*names, *tested}).with_columns(_wide(schema, tested))
            if predicate is not None:
                query = query.filter(predicate)  # before the other columns are made wide again
            found = query.with_columns(_wide(schema, set(names) - set(tested))).select(names).collect()
            yield found if left is None else found.head(left)
            if left is not None:
                left -= min(left, found.height)
                if left == 0:
                    return

    return register_io_source(rows, schema=schema, is_pure=True)


def _wide(schema: Mapping[str, pl.DataType], names: Iterable[str]) -> list[pl.Expr]:
    """Columns as they were: integers as wide as their schema says, categories with their names."""
    return [pl.col(name).cat.to(dtype) if isinstance(dtype := schema[name], pl.Enum) else pl.col(name).cast(dtype) for name in names]
