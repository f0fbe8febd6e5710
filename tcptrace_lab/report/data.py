"""Collects the contents of a report from an analysis, as one plain dictionary, without HTML, rounding or layout.

Values are numbers in ns, bytes or bits per second; null is unknown. The `kind` of a value says how `numbers.formatted` formats it. Meanings
of columns come from `schema`.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import verdict
from tcptrace_lab.connections import capture_quality, host_names
from tcptrace_lab.findings.finding import fixable_first
from tcptrace_lab.report import selection
from tcptrace_lab.report.figures import finding_windows
from tcptrace_lab.report.parts import connection_details, connection_table, lost_time, sizes, transactions, udp, waterfall, zoom
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.findings.finding import Finding
    from tcptrace_lab.pair import Pair
    from tcptrace_lab.report.data_types import Analysed, Headline, PairSection, ReportData, Value

LISTED_PROBLEMS = 50
"""Maximum number of problems of the capture that are listed. Further problems are only counted."""


def data(analysis: Analysed, pair: Pair | None = None, room: selection.Room = selection.ALONE) -> ReportData:
    """Collect the contents of the report of `analysis`. With `pair`, whose first capture is `analysis`, add the section on both captures.

    The memory needed does not grow with the size of the capture. `room` limits the points in the figures.
    """
    capture = analysis.capture
    problems = list(capture["problems"])
    chosen = selection.chosen(analysis.connections, [finding.conn for finding in analysis.findings if finding.conn is not None], room)
    flows_total, flows = udp.listed(analysis.flows)
    resolution_ns = capture["quality"]["resolution_ns"]
    listed = fixable_first(analysis.findings)[: room.findings]
    begins_ns = dict(chosen.found.select("conn", "first_ts_ns").iter_rows())
    places = [finding_windows.place(finding, analysis.longest_waits, begins_ns) for finding in listed]
    looked_at = [None if place is None else finding_windows.Window(place) for place in places]
    time = connection_details.Spent(analysis.accounts, analysis.stalls)
    connections, wholes = connection_details.connections(
        analysis, chosen.drawn, time, resolution_ns, [window for window in looked_at if window is not None], room
    )
    figures = zoom.zooms([finding.id for finding in listed], looked_at, wholes, resolution_ns)
    found = _by_connection(analysis.findings)
    lanes = waterfall.lanes(chosen.listed, analysis.accounts, found, chosen.drawn["conn"].to_list(), capture["path"])
    listed_rows = chosen.listed.select(connection_table.ASKED).iter_rows(named=True)
    return {
        "name": analysis.name,
        "command": f"tcptrace-lab analyze {shlex.quote(capture['path'])}",
        "headline": _headline(analysis),
        "findings": lost_time.found(listed, figures, _ends(chosen.found), _direction_summaries(listed, chosen.found), capture["path"]),
        "findings_total": len(analysis.findings),
        "capture": _capture(capture, chosen.total),
        "complete": bool(capture["complete"]),
        "problems": problems[:LISTED_PROBLEMS],
        "problems_total": len(problems),
        "columns": connection_table.columns(),
        "rows": [connection_table.row(row, capture["first_ts_ns"], found.get(row["conn"], ())) for row in listed_rows],
        "connections_total": chosen.total,
        "lanes": lanes,
        "lane_causes": waterfall.legend(lanes),
        "finding_ids": _counted(found),
        "listed_rule": selection.LISTED_RULE,
        "sizes": sizes.figures(analysis.message_sizes),
        "flow_columns": udp.columns(),
        "flows": flows,
        "flows_total": flows_total,
        "transactions": transactions.section(analysis.transactions),
        "drawn_rule": selection.drawn_rule(room),
        "drawn": connections,
        "pair": None if pair is None else _pair(pair),
        "undrawn_reason": _undrawn_reason(analysis.connections, chosen.total) if chosen.drawn.is_empty() else "",
    }


def _pair(pair: Pair) -> PairSection:
    from tcptrace_lab.report.parts.pair import section  # noqa: PLC0415  (imports NumPy, which the report of one capture does not need)

    return section(pair)


def _headline(analysis: Analysed) -> Headline:
    """Return the verdict, and the ledger of the direction that the verdict describes."""
    verdict_found = verdict.of(analysis)
    ends, bars = "", []
    if verdict_found.conn is not None:
        bars = [bar for bar in lost_time.bars(verdict_found.account) if SIDES[bar["key"]] == verdict_found.from_client]
        sides = ("client", "server") if verdict_found.from_client else ("server", "client")
        ends = " → ".join(host_names.endpoint(verdict_found.row, side) for side in sides)
    quality = analysis.capture["quality"]
    return {
        "sentence": verdict_found.sentence,
        "quality": quality["rating"],
        "quality_words": capture_quality.line(quality),
        "ends": ends,
        "why": verdict_found.why,
        "bar": bars[0] if bars else None,
    }


def _direction_summaries(listed: Sequence[Finding], rows: pl.DataFrame) -> list[str]:
    """Return a text per finding, with figures of its direction; empty for a finding about no direction, or about several connections."""
    wanted = {one.conn for one in listed if one.conn is not None and one.from_client is not None and one.connections == 1}
    by_conn = {row["conn"]: row for row in rows.to_dicts() if row["conn"] in wanted}
    sides = ("client" if one.from_client else "server" for one in listed)
    return [
        connection_table.direction_summary(by_conn[one.conn], side) if one.conn in by_conn else ""
        for one, side in zip(listed, sides, strict=True)
    ]


def _by_connection(findings: Sequence[Finding]) -> dict[int, list[str]]:
    """Return, for each connection, the ids of its findings, the most expensive first."""
    found: dict[int, list[str]] = {}
    for finding in findings:
        if finding.conn is not None and finding.id not in found.setdefault(finding.conn, []):
            found[finding.conn].append(finding.id)
    return found


def _counted(found: Mapping[int, Sequence[str]]) -> dict[str, int]:
    """Return, for each finding id, the number of connections with this finding, the most frequent id first."""
    return dict(Counter(one for ids in found.values() for one in ids).most_common())


def _ends(rows: pl.DataFrame) -> dict[int, str]:
    """Return, for each connection, a text with its two endpoints."""
    named = rows.select("conn", *(f"{side}_{what}" for side in SIDES for what in ("addr", "port")))
    return {row["conn"]: " → ".join(host_names.endpoint(row, side) for side in SIDES) for row in named.iter_rows(named=True)}


def _capture(capture: Mapping[str, Any], kept: int) -> list[Value]:
    count = capture["connections"]
    quality = capture["quality"]
    first_ns, last_ns = capture["first_ts_ns"], capture["last_ts_ns"]
    facts = [
        _fact("Format", capture["format"], "text"),
        _fact("Link types", _link_types(capture["link_types"]), "text"),
        _fact("Packets", capture["packets"], "count"),
        _fact("TCP segments", capture["tcp_segments"], "count"),
        _fact("Connections", count, "count") if kept == count else _fact("Connections", f"{kept:,} of {count:,}", "text"),
        *([_fact("UDP datagrams", capture["udp_datagrams"], "count")] if capture["udp_datagrams"] else []),
        _fact("Duration", connection_table.difference(last_ns, first_ns), "duration"),
        _fact("First packet", first_ns, "utc"),
        _fact("Last packet", last_ns, "utc"),
        _fact("Timestamp resolution", quality["resolution_ns"], "duration", "Resolution of the timestamps in this capture"),
        _fact("Truncated packets", quality["truncated_packets"], "count", "Packets that were longer than the snaplen of the capture"),
    ]
    if backward := quality["backward_timestamps"]:
        facts.append(_fact("Backward timestamps", backward, "count", "Packets with an earlier timestamp than the previous packet"))
    return facts


def _fact(label: str, value: object, kind: str, tooltip: str = "") -> Value:
    fact: Value = {"label": label, "value": value, "kind": kind}
    return {**fact, "tooltip": tooltip} if tooltip else fact


def _link_types(links: Sequence[Mapping[str, Any]]) -> str:
    """Return the names of the link types. If there are several, each name is followed by its number of packets."""
    if len(links) == 1:
        return str(links[0]["name"])
    return ", ".join(f"{link['name']} ({numbers.count(link['packets'])} packets)" for link in links) or numbers.UNKNOWN


def _undrawn_reason(connections: pl.LazyFrame, total: int) -> str:
    if not total:
        return "This capture contains no TCP connection."
    if connections.filter(pl.col("first_ts_ns").is_not_null()).select("conn").head(1).collect().is_empty():
        return "This capture has no timestamps, so there is nothing to draw over time."
    return "No connection in this capture carried data."
