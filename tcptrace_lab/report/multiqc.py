"""Writes custom content for MultiQC: files that `multiqc` finds by their names and combines into one report of many captures.

Each capture has three files, because MultiQC reads one section per file (https://docs.seqera.io/multiqc/custom_content): general
statistics, a table of connections, and bars of the time by cause. Files of several captures with the same `id` become one section.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import verdict
from tcptrace_lab.connections.host_names import endpoint
from tcptrace_lab.findings.finding import Severity
from tcptrace_lab.process.output import opened
from tcptrace_lab.report.figures.plots import CAUSE_COLOURS
from tcptrace_lab.report.largest import Ranking, largest
from tcptrace_lab.report.parts.connection_table import row as table_row
from tcptrace_lab.report.selection import PAYLOAD
from tcptrace_lab.schema import CAUSES, SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.analysis import Analysis

CONNECTIONS = 20
"""Maximum number of connections in the table, those with the most payload first."""

_UNSAFE = re.compile(r"[^\w.:+-]+")
"""Characters that are replaced in sample names, because MultiQC inserts the names into its page without escaping."""

_S_DECIMALS = 9
_SECONDS = "{:,.3f}"


def _header(
    title: str, description: str, *, suffix: str = "", scale: str = "", form: str = "", most: float | None = None
) -> dict[str, Any]:
    header: dict[str, Any] = {"title": title, "description": description, "min": 0}
    optional = {"suffix": suffix, "scale": scale, "format": form, "max": most}
    return header | {key: value for key, value in optional.items() if value}


GENERAL_HEADERS: dict[str, Any] = {
    "cost_share": _header(
        "Time lost",
        "Time lost to the problem that the verdict names, as a share of the active time",
        suffix="%",
        scale="OrRd",
        most=100,
    ),
    "cost_s": _header("Lost", "Time lost to the problem that the verdict names", suffix=" s", scale="OrRd", form=_SECONDS),
    "severity": _header("Worst finding", "Severity of the worst finding: high, medium, low, info"),
    "connections": _header("Connections", "TCP connections in the capture", form="{:,.0f}"),
    "duration_s": _header("Duration", "Time from the first packet to the last", suffix=" s", form=_SECONDS),
    "quality": _header("Capture quality", "Capture quality: good, limited or poor"),
}
"""Column of the general statistics → how MultiQC shows the column."""

CONNECTION_TABLE: dict[str, Any] = {
    "section_name": "TCP connections",
    "description": f"For each capture, the {CONNECTIONS} connections with the most data. The last column describes the larger direction.",
    "pconfig": {"id": "tcptrace_lab_connections_table", "title": "TCP connections", "col1_header": "Connection", "no_violin": True},
    "headers": {
        "client": {"title": "Client"},
        "server": {"title": "Server"},
        "duration_s": _header("Duration", "Time from the first segment to the last", suffix=" s", form=_SECONDS),
        "client_bytes": _header("Client sent", "Each byte counted once", suffix=" B", form="{:,.0f}"),
        "server_bytes": _header("Server sent", "Each byte counted once", suffix=" B", form="{:,.0f}"),
        "throughput_bps": _header("Throughput", "Throughput of the direction with more data", suffix=" b/s", form="{:,.0f}"),
        "rtt_min_ms": _header("RTT min", "Base RTT, from end to end", suffix=" ms", form="{:,.3f}"),
        "retransmits": _header("Retransmits", "Data segments, both directions", form="{:,.0f}", scale="OrRd"),
        "cause": {"title": "Largest cause"},
    },
}
"""Title, description and columns of the table of connections."""

TIME_BARS: dict[str, Any] = {
    "section_name": "TCP: time by cause",
    "description": "Why the next byte was not sent: seconds by cause, over all directions that carried data.",
    "pconfig": {
        "id": "tcptrace_lab_time_plot",
        "title": "TCP: time by cause",
        "ylab": "seconds",
        "cpswitch_counts_label": "Seconds",
    },
    "categories": {cause: {"name": cause, "color": CAUSE_COLOURS[cause]} for cause in CAUSES},
}
"""Texts and categories of the bars."""


def write(analysis: Analysis, folder: str) -> list[str]:
    """Write `<capture>_general_mqc.json`, `<capture>_connections_mqc.json` and `<capture>_time_mqc.json`. Return their paths.

    Raises:
        OutputUnwritable: the disk is full, or permission is denied.
    """
    name = safe(analysis.name)
    sections = {"general": general(analysis), "connections": connections(analysis), "time": time(analysis)}
    paths = [str(Path(folder) / f"{name}_{section}_mqc.json") for section in sections]
    for path, section in zip(paths, sections.values(), strict=True):
        with opened(path) as stream:
            stream.write(json.dumps(section, indent=1, allow_nan=False).encode() + b"\n")
    return paths


def safe(name: str) -> str:
    """Return the name after replacing characters that are unsafe in file names or in unescaped HTML."""
    return _UNSAFE.sub("_", name) or "_"


def general(analysis: Analysis) -> dict[str, Any]:
    """Return the general statistics of the capture."""
    verdict_found = verdict.of(analysis)
    worst = max((finding.severity for finding in analysis.findings), default=None)
    cost_share = (
        None if verdict_found.cost_ns is None or not verdict_found.active_ns else 100 * verdict_found.cost_ns / verdict_found.active_ns
    )
    row = {
        "cost_share": 0.0 if cost_share is None else cost_share,
        "cost_s": _seconds(verdict_found.cost_ns or 0),
        "severity": "none" if worst is None or worst == Severity.INFO else str(worst),
        "connections": analysis.capture["connections"],
        "duration_s": analysis.capture["duration_s"],
        "quality": analysis.capture["quality"]["rating"],
    }
    return {
        "id": "tcptrace_lab_general",
        "plot_type": "generalstats",
        "headers": GENERAL_HEADERS,
        "data": {safe(analysis.name): {key: value for key, value in row.items() if value is not None}},
    }


def connections(analysis: Analysis) -> dict[str, Any]:
    """Return the table of the connections with the most payload."""
    _, (found,) = largest(analysis.connections, "conn", {"bytes": PAYLOAD}, [Ranking(("bytes",), CONNECTIONS)])
    rows = analysis.connections.filter(pl.col("conn").is_in(found)).collect().sort(PAYLOAD, "conn", descending=[True, False])
    accounts = {row["conn"]: row for row in analysis.accounts.filter(pl.col("conn").is_in(found)).collect().iter_rows(named=True)}
    return {
        "id": "tcptrace_lab_connections",
        "plot_type": "table",
        **CONNECTION_TABLE,
        "data": {
            f"{safe(analysis.name)} {row['conn']}": {
                key: value for key, value in _connection(row, accounts[row["conn"]]).items() if value is not None
            }
            for row in rows.iter_rows(named=True)
        },
    }


def _connection(connection: dict[str, Any], accounts: Mapping[str, Any]) -> dict[str, Any]:
    row = table_row(connection, connection["first_ts_ns"])
    side = "client" if connection["client_payload_bytes"] >= connection["server_payload_bytes"] else "server"
    ns = {cause: accounts[_column(side, cause)] or 0 for cause in CAUSES}
    return {
        "client": safe(endpoint(connection, "client")),
        "server": safe(endpoint(connection, "server")),
        "duration_s": None if row["duration_ns"] is None else _seconds(row["duration_ns"]),
        "client_bytes": row["client_bytes"],
        "server_bytes": row["server_bytes"],
        "throughput_bps": row["throughput_bps"],
        "rtt_min_ms": None if row["rtt_min_ns"] is None else row["rtt_min_ns"] / 1e6,
        "retransmits": row["resent"],
        "cause": max(ns, key=lambda cause: ns[cause]) if any(ns.values()) else "unknown",
    }


def time(analysis: Analysis) -> dict[str, Any]:
    """Return the seconds that each cause takes in all directions that carried data."""
    carried = {side: pl.when(pl.col(f"{side}_payload_bytes") > 0) for side in SIDES}
    joined = analysis.accounts.join(analysis.connections.select("conn", *(f"{side}_payload_bytes" for side in SIDES)), on="conn")
    sums = joined.select(
        pl.sum_horizontal(*(carried[side].then(pl.col(_column(side, cause))).sum() for side in SIDES)).alias(cause) for cause in CAUSES
    ).collect()
    return {
        "id": "tcptrace_lab_time",
        "plot_type": "bargraph",
        **TIME_BARS,
        "data": {safe(analysis.name): {cause: _seconds(sums.item(0, cause) or 0) for cause in CAUSES}},
    }


def _column(side: str, cause: str) -> str:
    return f"{side}_{cause.replace('-', '_')}_ns"


def _seconds(time_ns: int) -> float:
    return round(time_ns / numbers.NS_PER_S, _S_DECIMALS)
