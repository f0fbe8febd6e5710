"""The table of UDP flows in the terminal, for a capture without TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from tcptrace_lab.cli.console import paragraph, plain_table
from tcptrace_lab.cli.tables.connections import ENDPOINT_MIN, shortened
from tcptrace_lab.report.parts import udp
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

ROWS = 5
"""Maximum number of flows that are shown, those with the most data first. The report and `export --table flows` have more flows."""

_SIDES = ("client", "server")
_FIGURES = ("sent →", "← sent", "rate", "gap", "longest", "missing")


def show(flows: pl.LazyFrame, out: Console) -> None:
    """Print the flows with the most data. Without a flow, print nothing."""
    total, rows = udp.listed(flows)
    if not total:
        return
    shown = rows[:ROWS]
    figures = [_figures(row) for row in shown]
    widths = [max(map(len, column)) for column in zip(_FIGURES, *figures, strict=True)]
    room = max((out.width - sum(width + 1 for width in widths)) // len(_SIDES) - 1, ENDPOINT_MIN)
    made = plain_table()
    for side in _SIDES:
        made.add_column(side, no_wrap=True)
    for heading, width in zip(_FIGURES, widths, strict=True):
        made.add_column(heading, justify="right", width=width)
    for row, cells in zip(shown, figures, strict=True):
        made.add_row(*(Text(shortened(printable(row[side]), room)) for side in _SIDES), *map(Text, cells))
    out.print(made)
    if total > ROWS:
        paragraph(out, f"and {numbers.counted(total - ROWS, 'more flow')}, in the report")
    out.print()


def _figures(row: dict[str, Any]) -> list[str]:
    return [
        numbers.size(row["client_bytes"]),
        numbers.size(row["server_bytes"]),
        numbers.rate(row["rate_bps"]),
        numbers.duration(row["gap_p50_ns"]),
        numbers.duration(row["gap_max_ns"]),
        numbers.count(row["missing"]),
    ]
