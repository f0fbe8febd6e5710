"""Rows that are read once or twice and soon, beyond a bound in nameless temporary files: integers as narrow as they fit, not compressed.

What fits into fewer bytes costs less to write than to compress. Of a million departures (217 bytes each, 95 as narrow as they fit), LZ4
took 0.33 s of CPU time either way; uncompressed as they are 0.1 s and as much again in the kernel, which finds pages for them; narrow
less than 0.1 s in all.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import polars as pl
from polars.io.plugins import register_io_source

from tcptrace_lab.predicates import limited
from tcptrace_lab.spill import Spill

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tcptrace_lab.revisions import Revisions

_BITS: dict[bool, dict[type[pl.DataType], int]] = {
    True: {pl.Int8: 7, pl.Int16: 15, pl.Int32: 31},
    False: {pl.UInt8: 8, pl.UInt16: 16, pl.UInt32: 32},
}
"""Bits of a number beside its sign: of the integers that have one, and of those that have none."""


class Passing(Spill):
    """As `Spill`, for rows that are not kept for long: its files are read in the order of adding, one at a time."""

    def _put(self, rows: list[pl.DataFrame]) -> None:
        self._files.add(pl.concat(rows, rechunk=False))  # they become whole once they are narrow

    @staticmethod
    def _write(frame: pl.DataFrame, file: IO[bytes]) -> None:
        """As few bytes as hold the numbers of this frame, and codes of categories: with their names, each file would have a dictionary."""
        codes = frame.with_columns(pl.selectors.enum().to_physical())
        narrow = pl.DataFrame([_narrow(column) if column.dtype.is_integer() else column for column in codes])
        narrow.rechunk().write_ipc(file, compression="uncompressed")

    def _scan(self, files: list[IO[bytes]], revisions: Revisions) -> pl.LazyFrame:
        return _lazy([pl.scan_ipc(file) for file in files], self._schema, revisions)


def _lazy(parts: list[pl.LazyFrame], schema: Mapping[str, pl.DataType], revisions: Revisions) -> pl.LazyFrame:
    """A lazy frame over all parts that reads them anew each time it is collected, one at a time."""

    def rows(
        columns: list[str] | None,
        predicate: pl.Expr | None,
        limit: int | None,
        batch_rows: int | None,  # noqa: ARG001  (Polars' own idea of a batch)
    ) -> Iterator[pl.DataFrame]:
        names = list(schema) if columns is None else columns
        tested = [] if predicate is None else predicate.meta.root_names()
        asked = {*names, *tested}
        first = {*tested, *revisions.touched(asked)}

        def found(part: pl.LazyFrame) -> pl.DataFrame:
            held = revisions.of(part.select(asked | first).with_columns(_wide(schema, first)).collect())
            if predicate is not None:
                held = held.filter(predicate)  # before the other columns are made wide again
            return held.lazy().with_columns(_wide(schema, asked - first)).select(names).collect()

        return limited(map(found, parts), limit)

    return register_io_source(rows, schema=schema, is_pure=True)


def _narrow(column: pl.Series) -> pl.Series:
    """Integers in as few bytes as hold them all.

    As `shrink_dtype`, which tests each value once more: of 46 columns a row that takes 1,130 instructions, and this 190.
    """
    bounds: Any = column.min(), column.max()
    least, most = (0 if bound is None else bound for bound in bounds)
    types = _BITS[column.dtype.is_signed_integer()].items()
    fitting = (dtype for dtype, bits in types if -1 << bits <= least and most < 1 << bits)
    return column.cast(next(fitting, column.dtype), wrap_numerical=True)


def _wide(schema: Mapping[str, pl.DataType], names: Iterable[str]) -> list[pl.Expr]:
    """Columns as they were: integers as wide as their schema says, categories with their names."""
    return [pl.col(name).cat.to(dtype) if isinstance(dtype := schema[name], pl.Enum) else pl.col(name).cast(dtype) for name in names]
