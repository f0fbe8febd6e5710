"""`Column` and `Table`, with which tables are declared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl


class Unit(StrEnum):
    """Unit of a number."""

    NONE = ""
    NS = "ns"
    BYTES = "bytes"
    SEGMENTS = "segments"
    DATAGRAMS = "datagrams"
    BITS_PER_SECOND = "b/s"
    FRAME = "frame number"
    OFFSET = "stream offset, bytes"



@dataclass(frozen=True, slots=True)
class Column:
    """One column of one table.

    Attributes:
        name: name of the column.
        dtype: name of a Polars type, `List(Int64)`, `List(String)`, or `Enum` with `values`.
        unit: unit of the numbers.
        meaning: one line of text.
        limits: what the column does not show; empty if it has no limits worth stating.
        values: the categories of an `Enum`, in the order of their codes.
    """

    name: str
    dtype: str
    unit: Unit
    meaning: str
    limits: str = ""
    values: tuple[str, ...] = ()

    def polars_type(self) -> pl.DataType:
        """Return the Polars type of the column."""
        return _polars_type(self.dtype, self.values)



@cache
def _polars_type(dtype: str, values: tuple[str, ...]) -> pl.DataType:
    import polars as pl  # noqa: PLC0415  (importing Polars takes 0.1 s, and `--help` needs only the texts)

    if dtype == "Enum":
        return pl.Enum(values)
    if dtype.startswith("List("):
        return pl.List(getattr(pl, dtype[5:-1]))
    made: pl.DataType = getattr(pl, dtype)()
    return made



@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table: its name, what one row stands for, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        """Iterate over the columns, in order."""
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        """Return the column called `name`. Raises KeyError if there is no such column."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    def polars_schema(self) -> dict[str, pl.DataType]:
        """Return a dict of column name → Polars type, in the order of the columns."""
        return dict(_polars_schema(self))

    def no_rows(self, names: tuple[str, ...] | None = None) -> pl.DataFrame:
        """Return a frame without rows, with the columns `names` (None: all columns).

        The frame is a clone of a stored frame, because making a frame takes 5 µs per column.
        """
        return _no_rows(self, self.names if names is None else names).clone()


@cache
def _polars_schema(table: Table) -> dict[str, pl.DataType]:
    return {column.name: column.polars_type() for column in table}


@cache
def _no_rows(table: Table, names: tuple[str, ...]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415  (see `_polars_type`)

    types = _polars_schema(table)
    return pl.DataFrame(schema={name: types[name] for name in names})



def table(name: str, row: str, columns: Iterable[Column]) -> Table:
    """Return a table with the given columns."""
    return Table(name, row, tuple(columns))

