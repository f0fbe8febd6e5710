"""Export of tables as Parquet, CSV, Arrow IPC or NDJSON. Rows are streamed, so that a table can be larger than memory.

Parquet, Arrow and NDJSON support lists and distinguish null from empty. In CSV, null becomes an empty field, and a list becomes its
numbers, separated by blanks. `sack_blocks` becomes `left:right` pairs. The separator is a colon, because offsets can be negative.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import polars as pl

from tcptrace_lab import schema, transactions
from tcptrace_lab.connections import rates
from tcptrace_lab.connections.anonymizer import NAME
from tcptrace_lab.engine.segments import names_of, read
from tcptrace_lab.errors import ReadInPart
from tcptrace_lab.ledger import other_rules, stalls
from tcptrace_lab.ledger.departures import departures
from tcptrace_lab.messages import messages
from tcptrace_lab.outputs.formats import Format, TableName
from tcptrace_lab.udp.datagrams import read_datagrams

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from tcptrace_lab.connections.anonymizer import Anonymizer
    from tcptrace_lab.engine.reread import Progress
    from tcptrace_lab.engine.segments import Tables


_JUDGED = frozenset({TableName.LEDGER, TableName.DEPARTURES, TableName.STALLS, TableName.ACCOUNTS, TableName.MESSAGES})
"""Tables for which the engine must classify waits."""


def read_table(
    paths: Sequence[str | os.PathLike[str]],
    table: TableName,
    anonymizer: Anonymizer | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> tuple[pl.LazyFrame, ReadInPart | None]:
    """Return one table of a capture, and the error if part of the capture was lost.

    The arguments and errors are those of `read` and `read_datagrams`. With an `anonymizer`, addresses are replaced by pseudonyms, and
    transactions have no names.
    """
    rows, loss = _read_table(paths, table, progress, say)
    if anonymizer is None:
        return rows, loss
    if table in {TableName.CONNECTIONS, TableName.FLOWS}:
        rows = anonymizer.rows(rows)
    if table is TableName.TRANSACTIONS:
        rows = transactions.without_names(rows.collect()).lazy()
    return rows, None if loss is None else ReadInPart(loss.what, where=NAME, remedy=loss.remedy)


def _read_table(
    paths: Sequence[str | os.PathLike[str]], table: TableName, progress: Progress | None, say: Callable[[str], None] | None
) -> tuple[pl.LazyFrame, ReadInPart | None]:
    if table.is_udp:
        udp = read_datagrams(paths, progress=progress, say=say)
        return udp.datagrams if table is TableName.DATAGRAMS else udp.flows, udp.loss
    judged = table in _JUDGED
    tcp = read(paths, worth=() if judged else None, progress=progress, say=say)
    return _tcp_rows(other_rules.overridden(tcp) if judged else tcp, table, names_of(paths)), tcp.loss


def _tcp_rows(tcp: Tables, table: TableName, names: list[str]) -> pl.LazyFrame:  # noqa: PLR0911  (one return per table)
    match table:
        case TableName.SEGMENTS:
            return tcp.segments
        case TableName.CONNECTIONS:
            return tcp.connections
        case TableName.LEDGER:
            return tcp.ledger.select(schema.LEDGER.names)
        case TableName.DEPARTURES:
            return departures(tcp.ledger)
        case TableName.STALLS:
            return stalls.stalls(tcp.ledger)
        case TableName.ACCOUNTS:
            return tcp.accounts
        case TableName.MESSAGES:
            return messages.messages(tcp.segments, tcp.notes, tcp.info["connections"])
        case TableName.TRANSACTIONS:
            return transactions.found(names, tcp.segments, tcp.connections).lazy()
        case TableName.RATES:
            return rates.table(tcp.connections)
        case _:
            raise ValueError(table)


def export(rows: pl.LazyFrame, table: TableName, form: Format, stream: IO[bytes]) -> None:
    """Write one table.

    Args:
        rows: the rows.
        table: name of the table.
        form: the format.
        stream: receives the bytes; it need not be seekable.

    Raises:
        OSError: the stream cannot be written.
    """
    match form:
        case Format.PARQUET:
            rows.sink_parquet(stream)
        case Format.ARROW:
            rows.sink_ipc(stream)
        case Format.NDJSON:
            rows.sink_ndjson(stream)
        case Format.CSV:
            rows.with_columns(_text(column.name) for column in schema.TABLES[table] if column.dtype.startswith("List(")).sink_csv(stream)
        case _:
            raise ValueError(form)


def text_of_lists(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Convert all columns with lists to text, for CSV."""
    return rows.with_columns(_text(name) for name, dtype in rows.collect_schema().items() if isinstance(dtype, pl.List))


def _text(name: str) -> pl.Expr:
    """Convert a list to text: [1, 5, 9, 12] → `1 5 9 12`, or as SACK blocks `1:5 9:12`."""
    position = pl.int_range(pl.len())
    between = pl.when((position % 2 == 1) & pl.lit(name == "sack_blocks")).then(pl.lit(":")).otherwise(pl.lit(" "))
    separator = pl.when(position == 0).then(pl.lit("")).otherwise(between)
    return pl.col(name).list.eval(separator + pl.element().cast(pl.String)).list.join("").alias(name)
