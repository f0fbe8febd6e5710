"""The table of UDP flows in the terminal, for a capture without TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from tcptrace_lab.cli.console import paragraph, plain_table
from tcptrace_lab.report.parts import udp
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

ROWS = 5
"""Maximum number of flows: those with most data. The report and `export --table flows` have more."""

_FIGURES = ("sent →", "← sent", "rate", "gap", "longest", "missing")


def show(flows: pl.LazyFrame, out: Console) -> None:
    """Print the flows with most data; nothing if there is none."""
    total, rows = udp.listed(flows)
    if not total:
        return
    made = plain_table()
    for side in ("client", "server"):
        made.add_column(side, overflow="ellipsis", no_wrap=True)
    for heading in _FIGURES:
        made.add_column(heading, justify="right", no_wrap=True)
    for row in rows[:ROWS]:
        made.add_row(*(Text(cell) for cell in _cells(row)))
    out.print(made)
    if total > ROWS:
        paragraph(out, f"and {numbers.counted(total - ROWS, 'more flow')}, in the report")
    out.print()


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        printable(row["client"]),
        printable(row["server"]),
        numbers.size(row["client_bytes"]),
        numbers.size(row["server_bytes"]),
        numbers.rate(row["rate_bps"]),
        numbers.duration(row["gap_p50_ns"]),
        numbers.duration(row["gap_max_ns"]),
        numbers.count(row["missing"]),
    ]
