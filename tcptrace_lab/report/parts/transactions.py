"""The table of HTTP and FTP transactions: its columns, explained by `schema`, and its rows with the phases of each transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab import schema

if TYPE_CHECKING:
    import polars as pl

    from tcptrace_lab.report.data_types import Column

LISTED_TRANSACTIONS = 50
"""Maximum number of transactions that are listed, the longest first. The JSON has all transactions."""

_SHOWN = (
    ("conn", "#", "integer"),
    ("method", "asked", "text"),
    ("target", "for", "text"),
    ("status", "status", "integer"),
    ("state", "known", "text"),
    ("body_bytes", "bytes", "size"),
    ("total_ns", "time", "duration"),
    ("connect_ns", "connection", "duration"),
    ("client_think_ns", "client think time", "duration"),
    ("request_ns", "request", "duration"),
    ("server_think_ns", "server think time", "duration"),
    ("transfer_ns", "transfer", "duration"),
)
"""Column of `schema.TRANSACTIONS`, its heading, and its kind (`numbers.formatted`)."""


def section(rows: pl.DataFrame) -> dict[str, Any] | None:
    """Return the columns, the rows of the longest (or unfinished) transactions, and the total number; None without transactions."""
    if rows.is_empty():
        return None
    longest = rows.sort("total_ns", descending=True, nulls_last=True, maintain_order=True).head(LISTED_TRANSACTIONS)
    shown = longest.select(name for name, _, _ in _SHOWN).rows(named=True)
    return {"columns": [_column(*one) for one in _SHOWN], "rows": shown, "total": rows.height}


def _column(name: str, label: str, kind: str) -> Column:
    column = schema.TRANSACTIONS[name]
    tooltip = column.meaning + (f"; {column.limits}" if column.limits else "")
    return {"key": name, "label": label, "kind": kind, "tooltip": tooltip}
