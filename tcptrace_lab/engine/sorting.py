"""Collects rows that arrive out of order and can exceed memory, and returns them as one lazy frame, sorted by number.

The engine returns a connection (or flow) when it ends, so a long connection can come after thousands that began later. Up to a limit, rows
are kept in memory and sorted at the end. Rows beyond the limit are written to temporary files in parts. A query processes one range of
numbers after the other: it reads only the rows in the range from each file, and sorts them. The ranges of the parts overlap little, so
nearly all rows are read once.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
from polars.io.plugins import register_io_source

from tcptrace_lab.engine import memory
from tcptrace_lab.engine.predicates import conjuncts, limited
from tcptrace_lab.engine.spill import Files, close, parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RANGE_ROWS = 8_192
"""Length of a range of numbers, and number of rows that are decoded together. Rows of connections (3.3 KB each) take 27 MB."""

TESTED_NUMBERS = 128 * RANGE_ROWS
"""How many numbers are tested against a query's predicate at a time. They take 4 MB."""


class _Part(NamedTuple):
    """One part: its rows, and its lowest and highest number."""

    rows: pl.LazyFrame
    low: int
    high: int


class Ordered:
    """Collects frames with equal schemas, and returns all rows as one lazy frame, sorted by a column of distinct numbers."""

    def __init__(self, schema: Mapping[str, pl.DataType], number: str, part_rows: int) -> None:
        """Start without rows.

        Args:
            schema: columns and types of the resulting rows.
            number: name of the column to sort by.
            part_rows: maximum number of rows kept in memory. When there are more, all of them are written to a file as one part.
        """
        self._schema = dict(schema)
        self._number = number
        self._part_rows = part_rows
        self._held: list[pl.DataFrame] = []
        self._held_rows = 0
        self._files = Files(parquet(RANGE_ROWS))
        self._bounds: list[tuple[int, int]] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Add the rows of `frame`. Raises OutputUnwritable as `Files.add` does."""
        if frame.is_empty():
            return
        self._held.append(frame)
        self._held_rows += frame.height
        if self._held_rows > self._part_rows:
            self._write_held()

    def finish(self) -> pl.LazyFrame:
        """Return all rows. Raises OutputUnwritable as `add` does."""
        if not self._files.some:
            rows = self._taken() if self._held else _no_rows(tuple(self._schema.items()))
            return (rows if rows[self._number].is_sorted() else rows.sort(self._number)).lazy()
        if self._held:
            self._write_held()
        files = self._files.finish()
        bounds = zip(files, self._bounds, strict=True)
        parts = [_Part(pl.scan_parquet([file], schema=self._schema), low, high) for file, (low, high) in bounds]
        close(files)  # the scans keep the files open
        return _lazy(parts, self._schema, self._number)

    def _taken(self) -> pl.DataFrame:
        """Return the rows, and start again without rows."""
        rows = pl.concat(self._held)
        self._held, self._held_rows = [], 0
        return rows[list(self._schema)]

    def _write_held(self) -> None:
        rows = self._taken()
        self._bounds.append(rows.select(pl.min(self._number), high=pl.max(self._number)).row(0))
        self._files.add(rows)
        memory.give_back()  # also returns the memory that the engine used for these connections


@cache
def _no_rows(columns: tuple[tuple[str, pl.DataType], ...]) -> pl.DataFrame:
    return pl.DataFrame(schema=dict(columns))


def _lazy(parts: list[_Part], schema: Mapping[str, pl.DataType], number: str) -> pl.LazyFrame:
    """Return a lazy frame over all parts, sorted by `number`. Each `collect` of this frame reads the files."""
    highest = max(part.high for part in parts)

    def rows(
        columns: list[str] | None,
        predicate: pl.Expr | None,
        limit: int | None,
        batch_rows: int | None,  # noqa: ARG001  (Polars passes its own batch size, which is not used)
    ) -> Iterator[pl.DataFrame]:
        tests = conjuncts(predicate)
        on_number = [test for test in tests if set(test.meta.root_names()) == {number}]
        others = [test for test in tests if set(test.meta.root_names()) != {number}]
        passing = _ranges(highest, number, schema[number], on_number)
        return limited((_range(parts, number, numbers, others, columns) for numbers in passing), limit)

    return register_io_source(rows, schema=schema, is_pure=True)


def _ranges(highest: int, number: str, dtype: pl.DataType, tests: list[pl.Expr]) -> Iterator[pl.Series]:
    """Yield the numbers up to `highest` that pass the tests, one range after the other. Ranges without such a number are left out."""
    for start in range(0, highest + 1, TESTED_NUMBERS):
        numbers = pl.int_range(start, min(start + TESTED_NUMBERS, highest + 1), dtype=pl.Int64, eager=True)
        passing = pl.DataFrame({number: numbers.cast(dtype)}).filter(*tests, True)  # noqa: FBT003
        for _, of_range in passing.group_by(pl.col(number) // RANGE_ROWS, maintain_order=True):
            yield of_range[number]


def _range(parts: list[_Part], number: str, numbers: pl.Series, tests: list[pl.Expr], columns: list[str] | None) -> pl.DataFrame:
    """Return the rows that have one of the sorted `numbers` and pass the tests. The rows are sorted by number."""
    low, high = numbers[0], numbers[-1]
    inside = pl.col(number).is_between(low, high)
    if len(numbers) <= high - low:
        inside &= pl.col(number).is_in(numbers.implode())  # with a list, Polars would test a part's statistics for each number
    scans = [part.rows.filter(inside, *tests) for part in parts if part.low <= high and part.high >= low]
    if not scans:
        scans = [parts[0].rows.clear()]
    query = pl.concat(scans)
    if columns is None:
        return query.sort(number).collect()
    return query.select({*columns, number}).sort(number).select(columns).collect()


def beside(left: pl.LazyFrame, right: pl.LazyFrame, number: str) -> Iterator[pl.DataFrame]:
    """Join the rows of `right` to those of `left` (left join), in batches of limited size. Both tables are sorted by `number`.

    Polars' own join would keep one of the tables in memory.
    """
    for rows in memory.batches(left, RANGE_ROWS):
        if rows.height:
            bounds = rows.item(0, number), rows.item(-1, number)
            own = right.filter(pl.col(number).is_between(*bounds)).collect()
            if own[number].equals(rows[number]):  # usually, both tables have the same numbers
                yield rows.hstack([column for column in own if column.name != number])
            else:
                yield rows.join(own, on=number, how="left", maintain_order="left")
