"""Writes an analysis as GitHub Markdown for a ticket: verdict, capture quality, connections, and findings with frames and remedies.

External text (file names, problems of the capture) is escaped or in code spans, so that it appears literally, without links or mentions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import verdict
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.connections.host_names import endpoint
from tcptrace_lab.findings.finding import fixable_first
from tcptrace_lab.report.largest import Ranking, largest
from tcptrace_lab.report.markdown_table import table
from tcptrace_lab.report.parts.connection_table import row as table_row
from tcptrace_lab.report.selection import PAYLOAD
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import markdown, markdown_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.findings.finding import Finding

CONNECTIONS = 10
"""Maximum number of connections in the table, those with the most payload first."""

FINDINGS = 10
"""Maximum number of findings that are described in full, the most expensive first."""

PROBLEMS = 10

_ARROWS = {True: "client → server", False: "server → client"}


def text(analysis: Analysis) -> str:
    """Return the Markdown document, which ends with a newline."""
    return "\n".join(_blocks(analysis)).rstrip("\n") + "\n"


def _blocks(analysis: Analysis) -> Iterator[str]:
    capture = analysis.capture
    yield f"## TCP: {markdown_code(str(capture['path']))}\n"
    yield f"**{markdown(verdict.sentence(analysis))}**\n"
    yield f"{_counts(capture)}; {markdown(capture_quality.line(capture['quality']))}.\n"
    for problem in capture["problems"][:PROBLEMS]:
        place = "" if problem["frame"] is None else f" (frame {problem['frame']})"
        yield f"- Not read correctly: {markdown(problem['what'])}{place}"
    yield from _connections(analysis)
    yield from _findings(analysis)


def _counts(capture: Mapping[str, Any]) -> str:
    lasting = "" if capture["duration_s"] is None else f" in {numbers.duration_s(capture['duration_s'])}"
    words = (("packets", "packet"), ("tcp_segments", "TCP segment"), ("connections", "connection"))
    return ", ".join(f"{capture[key]:,} {word}{'' if capture[key] == 1 else 's'}" for key, word in words) + lasting


def _connections(analysis: Analysis) -> Iterator[str]:
    total, (found,) = largest(analysis.connections, "conn", {"bytes": PAYLOAD}, [Ranking(("bytes",), CONNECTIONS)])
    if not found:
        return
    rows = analysis.connections.filter(pl.col("conn").is_in(found)).collect().sort(PAYLOAD, "conn", descending=[True, False])
    headings = ["connection", "client → server", "time", "client sent", "server sent", "retransmits", "RTT min", "throughput"]
    yield table(headings, [_row(one) for one in rows.iter_rows(named=True)])
    if total > len(found):
        yield f"and {total - len(found):,} more with fewer bytes\n"


def _row(connection: dict[str, Any]) -> list[str]:
    row = table_row(connection, connection["first_ts_ns"])
    ends = " → ".join(markdown_code(endpoint(connection, side), in_table=True) for side in ("client", "server"))
    sentence = (
        numbers.duration(row["duration_ns"]),
        numbers.size(row["client_bytes"]),
        numbers.size(row["server_bytes"]),
        numbers.count(row["resent"]),
        numbers.duration(row["rtt_min_ns"]),
        numbers.rate(row["throughput_bps"]),
    )
    return [str(row["conn"]), ends, *sentence]


def _findings(analysis: Analysis) -> Iterator[str]:
    found = fixable_first(analysis.findings)
    yield "### Findings\n"
    if not found:
        yield "None: no fixable cause took 5% or more of any direction's time.\n"
    for number, finding in enumerate(found[:FINDINGS], start=1):
        yield from _finding(number, finding)
    if len(found) > FINDINGS:
        yield f"and {len(found) - FINDINGS} more, in the report"


def _finding(number: int, finding: Finding) -> Iterator[str]:
    about = [str(finding.severity), str(finding.confidence)]
    if finding.conn is not None:
        about.append(f"connection {finding.conn}" + ("" if finding.from_client is None else f", {_ARROWS[finding.from_client]}"))
    if finding.cost_share and finding.active_ns:
        about.append(f"{numbers.share(finding.cost_share)} of {numbers.duration(finding.active_ns)}")
    yield f"{number}. **{markdown(finding.title)}** ({', '.join(about)}; {markdown_code(finding.id)})"
    yield f"   - {markdown(finding.mechanism)}"
    if finding.remedy:
        yield f"   - Remedy: {'; or '.join(map(markdown, finding.remedy))}"
    if finding.predicted_gain:
        yield f"   - Gain: {markdown(finding.predicted_gain)}"
    if finding.wireshark_filter:
        yield f"   - Frames: {markdown_code(finding.wireshark_filter)}"
    if finding.limits:
        yield f"   - Limits: {markdown(finding.limits)}"
