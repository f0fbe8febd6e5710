"""Formats the connections as a table for the terminal. The table fits into 80 columns, and shows more on a wider terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from rich.text import Text

from tcptrace_lab.cli.console import plain_table
from tcptrace_lab.connections import behaviour, link_overhead, rates
from tcptrace_lab.report.largest import Ranking, largest
from tcptrace_lab.report.parts import connection_table
from tcptrace_lab.report.selection import PAYLOAD
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from rich.table import Table

    from tcptrace_lab.analysis import Analysis

ROWS = 20
"""Maximum number of connections that are shown. The report and the JSON have all connections."""

LINE_ROWS, LINE_NOTES = 1_000, 5
"""Number of connections that are examined for the overhead of their link, and maximum number of lines about this overhead. A line names at
most `LINE_NOTES` connections."""

ENDPOINT_MIN, ENDPOINT_MAX = 12, 47
"""Minimum and maximum width of an address with its port, in characters. The longest IPv6 address has the maximum width."""

_SIDES = ("client", "server")
_FIGURES = (("time", 8), ("bytes →", 7), ("← bytes", 7), ("RTT", 7), ("retrans.", 8))
"""Heading and minimum width of each column to the right of the addresses."""

_MORE_FIGURES = (("throughput", 10),)
"""Heading and minimum width of further columns on a terminal of at least `_WIDE` characters."""

_WIDE = 110


def largest_rows(analysis: Analysis) -> tuple[int, pl.DataFrame]:
    """Return the number of connections, and the rows of the connections with the most payload."""
    total, (found,) = largest(analysis.connections, "conn", {"bytes": PAYLOAD}, [Ranking(("bytes",), ROWS)])
    return total, analysis.connections.filter(pl.col("conn").is_in(found)).collect().sort(PAYLOAD, "conn", descending=[True, False])


def refusals(connections: pl.LazyFrame) -> str:
    """Return `connections 3, 7: refused (RST in answer to their SYN)`; empty if no connection was refused."""
    conns = connections.filter(behaviour.refused(pl.col)).select("conn").collect()["conn"].sort().to_list()
    many = len(conns) > 1
    return (
        f"connection{'s' if many else ''} {_numbers(conns)}: refused (RST in answer to {'their' if many else 'its'} SYN)" if conns else ""
    )


def headline(analysis: Analysis, kept: int) -> str:
    """Return one line about the capture: `slow.pcap: 1,204 packets, 1,200 TCP segments, 2 connections in 3.21 s`.

    If only some connections are selected, the line counts them: `1,204 packets in 3.21 s; kept: 1 of 2 connections, 9 of 20 TCP segments`.
    """
    capture = analysis.capture
    if kept != capture["connections"]:
        return _headline_of_kept(analysis, kept)
    words = [("packets", "packet"), ("tcp_segments", "TCP segment"), ("connections", "connection")]
    if capture["udp_datagrams"]:
        words.append(("udp_datagrams", "UDP datagram"))
    counts = ", ".join(f"{capture[key]:,} {word if capture[key] == 1 else word + 's'}" for key, word in words)
    first_ns, last_ns = capture["first_ts_ns"], capture["last_ts_ns"]
    lasting = "" if first_ns is None or last_ns is None else f" in {numbers.duration(last_ns - first_ns)}"
    return f"{printable(capture['path'])}: {counts}{lasting}"


def _headline_of_kept(analysis: Analysis, kept: int) -> str:
    capture = analysis.capture
    both = pl.sum_horizontal(*(pl.col(f"{side}_segments") for side in _SIDES)).sum()
    segments = analysis.connections.select(both).collect().item() or 0
    first_ns, last_ns = capture["first_ts_ns"], capture["last_ts_ns"]
    lasting = "" if first_ns is None or last_ns is None else f" in {numbers.duration(last_ns - first_ns)}"
    return (
        f"{printable(capture['path'])}: {capture['packets']:,} packets{lasting}; "
        f"kept: {kept:,} of {capture['connections']:,} connections, {segments:,} of {capture['tcp_segments']:,} TCP segments"
    )


def behaviour_notes(rows: pl.DataFrame) -> list[str]:
    """Return one line on the endpoints of each connection: `connection 3: captured at the client (proved); server: …`."""
    return [f"connection {row['conn']}: {' · '.join(behaviour.words(row))}" for row in rows.iter_rows(named=True)]


def rate_notes(rows: pl.DataFrame) -> list[str]:
    """Return one line on the rates of each connection's larger direction: `connection 3 →: the sender reached …`."""
    rate_lines = ((row, rates.sentence(row)) for row in _larger_directions(rows))
    return [f"connection {row['conn']} {'→' if row['from_client'] else '←'}: {words}" for row, words in rate_lines if words]


def nothing_to_report(rows: pl.DataFrame) -> str:
    """Return the line for a capture without findings.

    The line also says how close the largest connection came to the bound of its rate, if the bound is known.
    """
    summary = "no finding: no fixable cause took 5% or more of any direction's time"
    reached = [rates.reached(row) for row in _larger_directions(rows.head(1))]
    return f"{summary}; connection {rows.item(0, 'conn')} reached {reached[0]}" if reached and reached[0] else summary


def _larger_directions(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the row of `schema.RATES` for the larger direction of each connection, in the order of `rows`."""
    by_direction = {(row["conn"], row["from_client"]): row for row in rates.table(rows.sort("conn")).iter_rows(named=True)}
    larger = ((row["conn"], row["client_payload_bytes"] >= row["server_payload_bytes"]) for row in rows.iter_rows(named=True))
    return [by_direction[direction] for direction in larger if direction in by_direction]


def line_notes(connections: pl.DataFrame) -> list[str]:
    """Return at most `LINE_NOTES` lines on connections over ATM: `connections 0, 3: ATM, VPI 0 VCI 32: at most 89.9% …`.

    The overhead of Ethernet is well known, so only the report and the JSON show it.
    """
    by_text: dict[str, list[int]] = {}
    for row in connections.filter(pl.col("link") == "atm").iter_rows(named=True):
        words = link_overhead.best(row, max(_SIDES, key=lambda side: row[f"{side}_payload_bytes"]))
        if words:
            by_text.setdefault(f"{link_overhead.name(row)}: {words}", []).append(row["conn"])
    notes = [f"connection{'s' if len(conns) > 1 else ''} {_numbers(conns)}: {words}" for words, conns in by_text.items()]
    return notes[:LINE_NOTES]


def _numbers(conns: list[int]) -> str:
    more = len(conns) - LINE_NOTES
    return ", ".join(map(str, conns[:LINE_NOTES])) + (f" and {more:,} more" if more > 0 else "")


def endpoint(address: str, port: int, width: int) -> str:
    """Format an endpoint as `10.0.0.1:80` or `[2001:db8::1]:443`. If the text is too wide, the middle of the address is left out."""
    return shortened(f"[{address}]:{port}" if ":" in address else f"{address}:{port}", width)


def shortened(endpoint: str, width: int) -> str:
    """Shorten `endpoint` to `width` characters by leaving out the middle of its address. The port stays complete."""
    if len(endpoint) <= width:
        return endpoint
    address, bracket, port = endpoint.rpartition("]:" if endpoint.startswith("[") else ":")
    room = max(width - len(bracket + port) - 1, 2)
    return f"{address[: room - room // 2]}…{address[len(address) - room // 2 :]}{bracket}{port}"


def table(rows: list[dict[str, Any]], width: int) -> Table:
    """Return a table of these rows of `schema.CONNECTIONS`, at most `width` characters wide.

    The column RTT shows the smallest RTT of the path, or else the initial RTT.
    """
    number_width = max(len("conn"), *(len(str(row["conn"])) for row in rows))
    headings = (*_FIGURES, *(_MORE_FIGURES if width >= _WIDE else ()))
    cells = [_figures(row)[: len(headings)] for row in rows]
    widths = [max(least, *map(len, column)) for (_, least), column in zip(headings, zip(*cells, strict=True), strict=True)]
    fixed = number_width + sum(figure_width + 1 for figure_width in widths) + len(_SIDES)
    endpoint_width = min(max((width - fixed) // len(_SIDES), ENDPOINT_MIN), ENDPOINT_MAX)
    made = plain_table()
    made.add_column("conn", justify="right", width=number_width)
    for side in _SIDES:
        made.add_column(side, max_width=endpoint_width, no_wrap=True)
    for (heading, _), figure_width in zip(headings, widths, strict=True):
        made.add_column(heading, justify="right", width=figure_width)
    for row, figures in zip(rows, cells, strict=True):
        ends = (endpoint(row[f"{side}_addr"], row[f"{side}_port"], endpoint_width) for side in _SIDES)
        made.add_row(*map(Text, (str(row["conn"]), *ends, *figures)))
    return made


def _figures(connection: dict[str, Any]) -> list[str]:
    row = connection_table.row(connection, connection["first_ts_ns"])
    is_known = row["duration_ns"] is not None and row["duration_ns"] >= 0
    return [
        numbers.duration(row["duration_ns"] if is_known else None),
        numbers.size(row["client_bytes"]),
        numbers.size(row["server_bytes"]),
        numbers.duration(row["initial_rtt_ns"] if row["rtt_min_ns"] is None else row["rtt_min_ns"]),
        numbers.count(row["resent"]),
        numbers.rate(row["throughput_bps"]),
    ]
