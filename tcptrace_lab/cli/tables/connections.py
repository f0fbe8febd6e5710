"""The connections as a table for people: the largest first, within the width of the terminal, in 80 columns too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from rich.text import Text

from tcptrace_lab import verdict
from tcptrace_lab.cli.console import console, plain_table
from tcptrace_lab.connections import behaviour, capture_quality, link_overhead, rates
from tcptrace_lab.findings.finding import Severity, fixable_first
from tcptrace_lab.report.largest import Ranking, largest
from tcptrace_lab.report.selection import PAYLOAD
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.findings.finding import Finding

ROWS = 20
"""Maximum number of connections; the report and the JSON have all."""

BEHAVIOUR_CONNECTIONS = 3
"""Number of connections whose endpoints are described, the largest ones; the report and the JSON describe all."""

FINDING_ROWS = 10
"""Maximum number of findings; the report and the JSON have all."""

FINDINGS_SPELLED_OUT = 3
"""Number of findings shown with remedy and frames, the most expensive faults."""

LINE_ROWS, LINE_NOTES = 1_000, 5
"""Number of connections examined for the overhead of their link, and maximum number of lines about it (and of connections per line)."""

DIRECTION_LEGEND = "direction: the connection's number; → data from the client, ← data from the server"

_ENDPOINT_MIN, _ENDPOINT_MAX = 12, 47
"""Width of an address with its port: shortened, and of the longest IPv6 address."""

_SIDES = ("client", "server")
_FIGURES = (("time", 8), ("sent by client", 9), ("by server", 9), ("retransmits", 11))
"""Heading and width of the columns right of the addresses; a heading that is wider wraps."""


def show(analysis: Analysis) -> None:
    """Print the table of connections, the numbers left out, and the findings to stderr."""
    stderr = console()
    total, rows = _largest_rows(analysis)
    stderr.print(Text(headline(analysis, total)), soft_wrap=False)
    stderr.print(Text(f"\n{printable(verdict.sentence(analysis))}\n", style="bold"))
    stderr.print(Text(capture_quality.line(analysis.capture["quality"])))
    if total:
        stderr.print(_table(rows.to_dicts(), stderr.width))
    more = total - ROWS
    if more > 0:
        stderr.print(Text(f"and {more:,} more connection{'s' if more > 1 else ''} with fewer bytes"))
    refused = refusals(analysis.connections)
    if refused:
        stderr.print(Text(refused))
    if total:
        largest_rows = rows.head(BEHAVIOUR_CONNECTIONS)
        for words in behaviour_notes(largest_rows) + rate_notes(largest_rows):
            stderr.print(Text(words))
    for words in line_notes(analysis.connections.head(LINE_ROWS).collect()):
        stderr.print(Text(words))
    if total or analysis.findings:
        _show_findings(analysis.findings, rows, stderr)


def _largest_rows(analysis: Analysis) -> tuple[int, pl.DataFrame]:
    """Return the number of connections, and the rows of those with most payload."""
    total, (found,) = largest(analysis.connections, "conn", {"bytes": PAYLOAD}, [Ranking(("bytes",), ROWS)])
    return total, analysis.connections.filter(pl.col("conn").is_in(found)).collect().sort(PAYLOAD, "conn", descending=[True, False])


def show_findings_of_first(analysis: Analysis) -> None:
    """Print the findings of the first of two captures to stderr: those that decide the exit code."""
    stderr = console()
    stderr.print(Text(f"Findings in the first capture, {printable(analysis.capture['path'])} (the ones that --fail-on minds):"))
    _, rows = _largest_rows(analysis)
    _show_findings(analysis.findings, rows, stderr)


def _show_findings(findings: Sequence[Finding], rows: pl.DataFrame, stderr: Console) -> None:
    """Print the findings, or without any, facts on the largest connections."""
    if not findings:
        stderr.print(Text(nothing_to_report(rows)))
        return
    stderr.print()
    stderr.print(_findings(findings))
    unsaid = len(findings) - FINDING_ROWS
    if unsaid > 0:
        stderr.print(Text(f"and {unsaid} more finding{'s' if unsaid > 1 else ''}, in the report"))
    if any(finding.conn is not None for finding in findings[:FINDING_ROWS]):
        stderr.print(Text(DIRECTION_LEGEND))


def refusals(connections: pl.LazyFrame) -> str:
    """`connections 3, 7: refused (RST in answer to their SYN)`; empty if none was."""
    conns = connections.filter(behaviour.refused(pl.col)).select("conn").collect()["conn"].sort().to_list()
    many = len(conns) > 1
    return (
        f"connection{'s' if many else ''} {_numbers(conns)}: refused (RST in answer to {'their' if many else 'its'} SYN)" if conns else ""
    )


def headline(analysis: Analysis, kept: int) -> str:
    """`slow.pcap: 1,204 packets, 1,200 TCP segments, 2 connections in 3.21 s`.

    With selected connections, these are counted: `1,204 packets in 3.21 s; kept: 1 of 2 connections, 9 of 20 TCP segments`.
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
    """`connection 3: captured at the client (proved); server: …`: one line on the endpoints of each connection."""
    return [f"connection {row['conn']}: {' · '.join(behaviour.words(row))}" for row in rows.iter_rows(named=True)]


def rate_notes(rows: pl.DataFrame) -> list[str]:
    """`connection 3 →: the sender reached …`: one line on the rates of the larger direction of each connection."""
    rate_lines = ((row, rates.sentence(row)) for row in _larger_directions(rows))
    return [f"connection {row['conn']} {'→' if row['from_client'] else '←'}: {words}" for row, words in rate_lines if words]


def nothing_to_report(rows: pl.DataFrame) -> str:
    """The line if there is no finding: the bound of the largest of these rows of `schema.CONNECTIONS`, if known."""
    summary = "no finding: no fixable cause took 5% or more of any direction's time"
    reached = [rates.reached(row) for row in _larger_directions(rows.head(1))]
    return f"{summary}; connection {rows.item(0, 'conn')} reached {reached[0]}" if reached and reached[0] else summary


def _larger_directions(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the row of `schema.RATES` of the larger direction of each of these rows of `schema.CONNECTIONS`, in order."""
    by_direction = {(row["conn"], row["from_client"]): row for row in rates.table(rows.sort("conn")).iter_rows(named=True)}
    larger = ((row["conn"], row["client_payload_bytes"] >= row["server_payload_bytes"]) for row in rows.iter_rows(named=True))
    return [by_direction[direction] for direction in larger if direction in by_direction]


def line_notes(connections: pl.DataFrame) -> list[str]:
    """`connections 0, 3: ATM, VPI 0 VCI 32: at most 89.9% …` for connections over ATM: the first few different lines.

    Only the report and the JSON show the overhead of Ethernet, which is well known.
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


def _findings(findings: Sequence[Finding]) -> Table:
    """The most expensive findings, fixable ones first: severity, confidence, direction, share and title."""
    table = plain_table()
    for heading in ("finding", "", "direction", "share", ""):
        table.add_column(heading, justify="right" if heading == "share" else "left", no_wrap=bool(heading))
    spelled_out = 0
    for finding in fixable_first(findings)[:FINDING_ROWS]:
        direction = "" if finding.conn is None else f"{finding.conn} {'→' if finding.from_client else '←'}"
        share = "" if finding.cost_share is None else f"{finding.cost_share:.0%}"
        cells = (str(finding.severity), str(finding.confidence), direction, share, printable(finding.title))
        table.add_row(*(Text(cell) for cell in cells))
        if finding.severity > Severity.INFO and spelled_out < FINDINGS_SPELLED_OUT:
            spelled_out += 1
            gain = finding.predicted_gain if finding.modelled is not None else ""  # the title of the rule already has the share
            for name, words in (("remedy", "; or ".join(finding.remedy)), ("gain", gain), ("frames", finding.wireshark_filter)):
                if words:
                    table.add_row("", "", "", "", Text(f"{name}: {words}", style="dim", overflow="fold"))
    return table


def endpoint(address: str, port: int, width: int) -> str:
    """`10.0.0.1:80`, `[2001:db8::1]:443`; if it is too wide, the middle of the address is omitted."""
    tail = f"]:{port}" if ":" in address else f":{port}"
    text = ("[" if ":" in address else "") + address + tail
    if len(text) <= width:
        return text
    head = text.removesuffix(tail)
    room = max(width - len(tail) - 1, 2)
    return head[: room - room // 2] + "…" + head[len(head) - room // 2 :] + tail


def _table(largest_rows: list[dict[str, Any]], width: int) -> Table:
    number_width = max(len("conn"), *(len(str(row["conn"])) for row in largest_rows))
    fixed = number_width + sum(figure_width + 1 for _, figure_width in _FIGURES) + len(_SIDES)
    endpoint_width = min(max((width - fixed) // len(_SIDES), _ENDPOINT_MIN), _ENDPOINT_MAX)
    table = plain_table()
    table.add_column("conn", justify="right", width=number_width)
    for side in _SIDES:
        table.add_column(side, max_width=endpoint_width, no_wrap=True)
    for heading, figure_width in _FIGURES:
        table.add_column(heading, justify="right", width=figure_width)
    for row in largest_rows:
        table.add_row(*(Text(cell) for cell in _cells(row, endpoint_width)))
    return table


def _cells(row: dict[str, Any], endpoint_width: int) -> list[str]:
    known = row["first_ts_ns"] is not None and row["last_ts_ns"] is not None and row["first_ts_ns"] <= row["last_ts_ns"]
    return [
        str(row["conn"]),
        *(endpoint(row[f"{side}_addr"], row[f"{side}_port"], endpoint_width) for side in _SIDES),
        numbers.duration(row["last_ts_ns"] - row["first_ts_ns"] if known else None),
        *(numbers.size(row[f"{side}_unique_bytes"]) for side in _SIDES),
        numbers.count(sum(row[f"{side}_retransmitted_segments"] for side in _SIDES)),
    ]
