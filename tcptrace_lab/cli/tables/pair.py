"""Prints the comparison of two captures of one transfer, as lines and a table in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from tcptrace_lab.cli.console import console, plain_table
from tcptrace_lab.cli.tables.connections import ROWS, endpoint
from tcptrace_lab.pair.figures import directions
from tcptrace_lab.report.parts.pair import words
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from rich.table import Table

    from tcptrace_lab.pair import Pair

LEGEND = (
    "lost: sent but not received; copies: received more than once; late: received after a packet that was sent later; "
    "ACK delay: median time from the arrival of a packet to its ACK."
)

_COLUMNS = (("sent", 6), ("lost", 5), ("copies", 6), ("late", 5), ("delay p50", 9), ("p95", 8), ("max", 8), ("ACK delay", 9))
"""Heading and width of each column to the right of the direction."""


def show(pair: Pair) -> None:
    """Print the result of the clock alignment, and a line for each direction of each connection, to stdout."""
    out = console()
    for line in words(pair):
        out.print(Text(printable(line)), soft_wrap=False)
    out.print(_table(pair, out.width))
    out.print(Text(LEGEND))
    more = pair.connections.height - ROWS
    if more > 0:
        out.print(Text(f"and {more:,} more connection{'s' if more > 1 else ''}; --json has them all"))


def _table(pair: Pair, width: int) -> Table:
    table = plain_table()
    fixed = sum(figure_width + 1 for _, figure_width in _COLUMNS)
    table.add_column("from", no_wrap=True, max_width=max(width - fixed, 12))
    for heading, figure_width in _COLUMNS:
        table.add_column(heading, justify="right", width=figure_width)
    found = {row["direction"]: row for row in directions(pair.packets).iter_rows(named=True)}
    rows = pair.endpoints[0].head(ROWS).iter_rows(named=True)
    for place, connection in enumerate(rows):
        for number, side in ((2 * place, "client"), (2 * place + 1, "server")):
            name = endpoint(connection[f"{side}_addr"], connection[f"{side}_port"], max(width - fixed, 12))
            table.add_row(Text(name), *(Text(cell) for cell in _cells(found.get(number))))
    return table


def _cells(row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return ["0", *("" for _ in _COLUMNS[1:])]
    counts = [row["sent"], row["lost"], row["duplicated"], row["reordered"]]
    times = ["one_way_delay_p50_ns", "one_way_delay_p95_ns", "one_way_delay_max_ns", "ack_delay_p50_ns"]
    return [*(numbers.count(value) for value in counts), *(numbers.duration(row[name]) for name in times)]
