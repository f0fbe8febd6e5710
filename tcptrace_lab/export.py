"""The tables in other formats: Parquet, CSV, Arrow IPC, NDJSON; streamed, so the table may be larger than memory.

Parquet, Arrow and NDJSON keep lists (`sack_blocks`) and tell null from empty. CSV has neither: a list becomes text, its
blocks as `left:right` with blanks between them (not `left-right`: offsets can be negative), and null is an empty field.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.formats import Format, TableName

if TYPE_CHECKING:
    from tcptrace_lab.segments import Tables


def export(tables: Tables, table: TableName, form: Format, stream: IO[bytes]) -> None:
    """Write one table.

    Args:
        tables: what `read` gave.
        table: which of them.
        form: the format.
        stream: takes the bytes; it need not be seekable.

    Raises:
        OSError: the stream refuses.
    """
    rows = tables.segments if table is TableName.SEGMENTS else tables.connections.lazy()
    match form:
        case Format.PARQUET:
            rows.sink_parquet(stream)
        case Format.ARROW:
            rows.sink_ipc(stream)
        case Format.NDJSON:
            rows.sink_ndjson(stream)
        case Format.CSV:
            rows.with_columns(_block_text(column.name) for column in schema.TABLES[table] if column.dtype == "List(Int64)").sink_csv(stream)


def _block_text(name: str) -> pl.Expr:
    """[1, 5, 9, 12] → `1:5 9:12`."""
    position = pl.int_range(pl.len())
    separator = pl.when(position == 0).then(pl.lit("")).when(position % 2 == 0).then(pl.lit(" ")).otherwise(pl.lit(":"))
    return pl.col(name).list.eval(separator + pl.element().cast(pl.String)).list.join("").alias(name)
