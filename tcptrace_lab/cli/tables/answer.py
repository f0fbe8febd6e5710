"""The answer of `analyze` in the terminal: the verdict, where the time went, the findings, the connections that matter, the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from rich.text import Text

from tcptrace_lab import verdict
from tcptrace_lab.cli.console import console, paragraph
from tcptrace_lab.cli.tables import connections, flows, time_bar
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.findings.finding import Severity, fixable_first
from tcptrace_lab.report.selection import PAYLOAD
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.findings.finding import Finding
    from tcptrace_lab.verdict import Verdict

FINDINGS = 6
"""Maximum number of findings that are printed without `--verbose`. The report and the JSON have all findings."""

ROWS = 5
"""Maximum number of connections that are printed without `--verbose`."""

DESCRIBED = 3
"""Maximum number of connections whose endpoints and rates `--verbose` describes, largest first. The report and the JSON describe all
connections."""

STYLES = {Severity.HIGH: "bold red", Severity.MEDIUM: "bold yellow", Severity.LOW: "cyan", Severity.INFO: "dim"}

_INDENT = " " * (len(max(map(str, Severity), key=len)) + 1)


def show(analysis: Analysis, *, verbose: bool = False) -> None:
    """Print the answer to stdout. With `verbose`, print all findings in full, and the behaviour of the endpoints."""
    out, said = console(), verdict.of(analysis)
    paragraph(out, printable(said.sentence), style="bold")
    out.print()
    total, largest = connections.largest_rows(analysis)
    _show_time(said, out)
    if total or analysis.findings:
        show_findings(analysis.findings, largest, out, verbose=verbose)
    _show_connections(analysis, said, largest, total, out, verbose=verbose)
    if not analysis.capture["connections"]:
        flows.show(analysis.flows, out)
    paragraph(out, capture_quality.line(analysis.capture["quality"]))
    paragraph(out, connections.headline(analysis, total))


def show_findings_of_first(analysis: Analysis, *, verbose: bool = False) -> None:
    """Print the findings of the first of two captures to stdout. These findings decide the exit code."""
    out = console()
    out.print()
    paragraph(out, f"Findings in the first capture, {printable(analysis.capture['path'])} (these decide --fail-on):")
    out.print()
    show_findings(analysis.findings, connections.largest_rows(analysis)[1], out, verbose=verbose)


def _show_time(said: Verdict, out: Console) -> None:
    """Print the time by cause for the direction that the verdict describes."""
    if said.from_client is None or not said.account:
        return
    why = f", chosen for {said.why}" if said.why else ""
    if time_bar.show(out, said.account, said.row, why, from_client=said.from_client):
        out.print()


def show_findings(findings: Sequence[Finding], largest: pl.DataFrame, out: Console, *, verbose: bool = False) -> None:
    """Print the findings, fixable ones first. If there are none, print facts about the largest connection."""
    if not findings:
        paragraph(out, connections.nothing_to_report(largest))
        out.print()
        return
    shown = fixable_first(findings)[: None if verbose else FINDINGS]
    for finding in shown:
        _show_finding(finding, out, verbose=verbose)
    more = len(findings) - len(shown)
    if more > 0:
        paragraph(out, f"and {numbers.counted(more, 'more finding')}, in the report and with --verbose")
    out.print()


def _show_finding(finding: Finding, out: Console, *, verbose: bool) -> None:
    style = STYLES[finding.severity]
    paragraph(out, printable(finding.title), f"{finding.severity!s:{len(_INDENT)}}", style="bold", head_style=style)
    paragraph(out, " · ".join(_about(finding)), _INDENT)
    is_fault = finding.severity > Severity.INFO
    if verbose:
        paragraph(out, printable(finding.mechanism), _INDENT)
    if finding.remedy and (is_fault or verbose):
        paragraph(out, printable("; or ".join(finding.remedy)), f"{_INDENT}fix: ")
    if verbose and finding.limits:
        paragraph(out, printable(finding.limits), f"{_INDENT}limits: ")
    if finding.wireshark_filter and (is_fault or verbose):
        out.print(Text(f"{_INDENT}{finding.wireshark_filter}", "dim"), soft_wrap=True)


def _about(finding: Finding) -> list[str]:
    """Return facts about a finding, such as `91% of 527 ms active`, `saves up to 477 ms`, `proved`, `connection 0 →`."""
    words = []
    if finding.cost_share and finding.active_ns:
        words.append(f"{numbers.share(finding.cost_share)} of {numbers.duration(finding.active_ns)} active")
    if finding.modelled is not None and finding.predicted_gain:
        words.append(finding.predicted_gain)
    elif finding.severity > Severity.INFO and finding.gain_ns:
        words.append(f"saves up to {numbers.duration(finding.gain_ns)}")
    words.append(str(finding.confidence))
    if finding.conn is not None:
        arrow = "" if finding.from_client is None else " →" if finding.from_client else " ←"
        others = f" and {numbers.counted(finding.connections - 1, 'other')}" if finding.connections > 1 else ""
        words.append(f"connection {finding.conn}{arrow}{others}")
    return words


def _show_connections(analysis: Analysis, said: Verdict, largest: pl.DataFrame, total: int, out: Console, *, verbose: bool) -> None:
    """Print the connection of the verdict, the connections with fixable findings, and the largest connections."""
    if not total:
        return
    rows = largest if verbose else _that_matter(analysis, said, largest)
    out.print(connections.table(rows.to_dicts(), out.width))
    for conn in rows["conn"]:
        if conn in analysis.labels:
            paragraph(out, f"{conn}: {analysis.labels[conn]}", "connection ")
    more = total - rows.height
    if more > 0:
        paragraph(out, f"and {numbers.counted(more, 'more connection')}, in the report")
    for words in connections.line_notes(analysis.connections.head(connections.LINE_ROWS).collect()):
        paragraph(out, words)
    if refused := connections.refusals(analysis.connections):
        paragraph(out, refused)
    if verbose:
        described = largest.head(DESCRIBED)
        for words in connections.behaviour_notes(described) + connections.rate_notes(described):
            paragraph(out, words)
    out.print()


def _that_matter(analysis: Analysis, said: Verdict, largest: pl.DataFrame) -> pl.DataFrame:
    named = [said.conn, *(one.conn for one in analysis.findings if one.severity > Severity.INFO), *largest["conn"].to_list()]
    chosen = list(dict.fromkeys(conn for conn in named if conn is not None))[:ROWS]
    absent = set(chosen) - set(largest["conn"].to_list())
    found = [largest.filter(pl.col("conn").is_in(chosen))]
    if absent:
        found.append(analysis.connections.filter(pl.col("conn").is_in(sorted(absent))).collect())
    return pl.concat(found).sort(PAYLOAD, "conn", descending=[True, False])
