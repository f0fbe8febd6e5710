"""The tables of one connection: its ledger, stalls, messages, transactions and segments, in pages and as downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.ledger import stalls
from tcptrace_lab.messages import messages
from tcptrace_lab.report.parts import statistics
from tcptrace_lab.schema import Unit
from tcptrace_lab.view.problem import NotFound

if TYPE_CHECKING:
    from tcptrace_lab.view.cached.store import Store

_SCHEMAS = {
    "ledger": schema.LEDGER,
    "stalls": schema.STALLS,
    "messages": schema.MESSAGES,
    "transactions": schema.TRANSACTIONS,
    "segments": schema.SEGMENTS,
}

_TIMES = {"ledger": "start_ns", "stalls": "start_ns", "messages": "first_ts_ns", "transactions": "request_ts_ns", "segments": "ts_ns"}
"""Table → the column by which a window selects rows."""

_INSTANTS = ("start_ns", "end_ns")
_KINDS = {Unit.NS: "duration", Unit.BYTES: "bytes", Unit.SEGMENTS: "count", Unit.FRAME: "frame", Unit.OFFSET: "integer"}
_LISTS = {"List(Int64)", "List(String)"}


def rows(store: Store, conn: int, name: str) -> pl.LazyFrame:
    """Return all rows of a table of a connection, as `export` would write them. Raises NotFound if there is no such table."""
    match name:
        case "ledger":
            return store.waits.of(conn).select(schema.LEDGER.names)
        case "stalls":
            return stalls.stalls(store.waits.of(conn))
        case "messages":
            return messages.messages(store.segments.of(conn), store.notes.of(conn), conn + 1).sort("first_ts_ns", "from_client")
        case "transactions":
            return store.transactions.filter(pl.col("conn") == conn)
        case "segments":
            return store.segments.of(conn)
    raise NotFound(f"no table of this name; there are {', '.join(_SCHEMAS)}")


def counts(store: Store, conn: int) -> dict[str, int]:
    """Return the number of rows of each table."""
    return {name: int(rows(store, conn, name).select(pl.len()).collect().item()) for name in _SCHEMAS}


def page(store: Store, row: dict[str, Any], name: str, offset: int, limit: int, window_ns: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return `total`, `columns` and `rows` of one page. Times are in ns since the connection's first segment."""
    origin_ns = row["first_ts_ns"] or 0
    found = rows(store, row["conn"], name)
    columns = [column for column in _SCHEMAS[name] if column.name != "conn"]
    if window_ns is not None:
        last = "end_ns" if name in {"ledger", "stalls"} else _TIMES[name]
        found = found.filter(pl.col(last) >= origin_ns + window_ns[0], pl.col(_TIMES[name]) <= origin_ns + window_ns[1])
    total = int(found.select(pl.len()).collect().item())
    shown = found.slice(offset, limit).select(
        (pl.col(column.name) - origin_ns).alias(column.name) if _is_instant(column) else pl.col(column.name) for column in columns
    )
    return {
        "total": total,
        "columns": [
            {"name": column.name, "label": statistics.label(column), "kind": kind(column), "meaning": meaning(column)} for column in columns
        ],
        "rows": shown.collect().to_dicts(),
    }


def meaning(column: schema.Column) -> str:
    """Return what a column means, and what it does not show."""
    return column.meaning + (f"; {column.limits}" if column.limits else "")


def kind(column: schema.Column) -> str:
    """Return how a column is formatted: a kind of `numbers.formatted`, or `instant`, `cause`, `frame`, `bool`, `list`."""
    if _is_instant(column):
        return "instant"
    if column.name in {"cause", "stall_cause"}:
        return "cause"
    if column.dtype == "Boolean":
        return "bool"
    if column.dtype in _LISTS:
        return "list"
    return _KINDS.get(column.unit, "integer" if "Int" in column.dtype else "text")


def _is_instant(column: schema.Column) -> bool:
    return column.name.endswith("ts_ns") or (column.name in _INSTANTS and column.unit == Unit.NS)
