"""The table of HTTP and FTP transactions: its columns, explained by `schema`, and its rows with the parts of each one's time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab import schema

if TYPE_CHECKING:
    import polars as pl

    from tcptrace_lab.report.shape import Column

LISTED_TRANSACTIONS = 50
"""Rows of the table: those that took longest; the JSON has them all."""

_SHOWN = (
    ("conn", "#", "integer"),
    ("method", "asked", "text"),
    ("target", "for", "text"),
    ("status", "status", "integer"),
    ("state", "known", "text"),
    ("body_bytes", "bytes", "size"),
    ("total_ns", "time", "duration"),
    ("connect_ns", "connection", "duration"),
    ("wait_ns", "client think time", "duration"),
    ("request_ns", "request", "duration"),
    ("think_ns", "server think time", "duration"),
    ("transfer_ns", "transfer", "duration"),
)
"""Column of `schema.TRANSACTIONS`, its heading, and how it is read (`numbers.said`)."""


def section(rows: pl.DataFrame) -> dict[str, Any] | None:
    """Columns, the rows of those that took longest (or are not known to have ended), and how many there are; None without any."""
    if rows.is_empty():
        return None
    longest = rows.sort("total_ns", descending=True, nulls_last=True, maintain_order=True).head(LISTED_TRANSACTIONS)
    shown = longest.select(name for name, _, _ in _SHOWN).rows(named=True)
    return {"columns": [_column(*one) for one in _SHOWN], "rows": shown, "total": rows.height}


def _column(name: str, label: str, kind: str) -> Column:
    column = schema.TRANSACTIONS[name]
    tooltip = column.meaning + (f"; {column.limits}" if column.limits else "")
    return {"key": name, "label": label, "kind": kind, "tooltip": tooltip}
