"""Shows an analysis in a notebook: an HTML summary, and the figures as Plotly objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import verdict
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.connections.host_names import endpoint
from tcptrace_lab.errors import MissingTool, UsageError
from tcptrace_lab.findings.finding import fixable_first
from tcptrace_lab.report.figures import plots
from tcptrace_lab.report.largest import Ranking, largest
from tcptrace_lab.report.parts import connection_details, lost_time
from tcptrace_lab.report.parts.connection_table import row as table_row
from tcptrace_lab.report.render import fragment
from tcptrace_lab.report.selection import PAYLOAD
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from tcptrace_lab.analysis import Analysis

CONNECTIONS, FINDINGS = 8, 5
"""Maximum number of connections, and of findings, that are shown. The report has more."""

_ARROWS = {True: "client → server", False: "server → client", None: ""}


def html(analysis: Analysis) -> str:
    """Return HTML with the verdict, the ledger of its connection, the largest connections and the costliest findings (about 10 kB)."""
    verdict_found = verdict.of(analysis)
    total, (found,) = largest(analysis.connections, "conn", {"bytes": PAYLOAD}, [Ranking(("bytes",), CONNECTIONS)])
    rows = analysis.connections.filter(pl.col("conn").is_in(found)).collect().sort(PAYLOAD, "conn", descending=[True, False])
    conn = found[0] if verdict_found.conn is None and found else verdict_found.conn
    accounts = [] if conn is None else analysis.accounts.filter(pl.col("conn") == conn).collect().to_dicts()
    findings = fixable_first(analysis.findings)
    return fragment(
        "notebook.html.j2",
        path=analysis.capture["path"],
        verdict=verdict_found.sentence,
        quality=capture_quality.line(analysis.capture["quality"]),
        conn=conn,
        bars=lost_time.bars(accounts[0] if accounts else None),
        rows=[_row(row) for row in rows.iter_rows(named=True)],
        more_rows=total - rows.height,
        findings=[(finding, _ARROWS[finding.from_client]) for finding in findings[:FINDINGS]],
        more_findings=max(len(findings) - FINDINGS, 0),
    )


def _row(connection: dict[str, Any]) -> list[str]:
    row = table_row(connection, connection["first_ts_ns"])
    return [
        str(row["conn"]),
        *(endpoint(connection, side) for side in SIDES),
        numbers.duration(row["duration_ns"]),
        numbers.size(row["client_bytes"]),
        numbers.size(row["server_bytes"]),
        numbers.count(row["resent"]),
    ]


def figure(analysis: Analysis, name: str, connection: int, *, from_client: bool | None) -> Figure:
    """Return one figure of one connection, for `Analysis.figure`."""
    try:
        import plotly.graph_objects as go  # noqa: PLC0415  (takes most of a second to import, and only notebooks need it)
    except ImportError as error:
        raise MissingTool("not installed", where="plotly", remedy="pip install 'tcptrace-lab[notebook]'") from error

    chosen = analysis.connections.filter(pl.col("conn") == connection).collect()
    if chosen.is_empty():
        raise UsageError(f"no connection {connection}", remedy="use a number from the column `conn` of `analysis.connections`")
    time = connection_details.Spent(analysis.accounts, analysis.stalls)
    (shown,), _ = connection_details.connections(analysis, chosen, time, analysis.capture["quality"]["resolution_ns"])
    sides = [side for side, client in SIDES.items() if client == from_client] or [one["key"] for one in shown["sides"][:1]]
    directions = [one for one in shown["figures"] if one["by"] in {"both", *sides}]
    for one in directions:
        if one["key"] == name:
            strip = shown["ledger"][sides[0] if one["by"] == "both" else one["by"]]
            return go.Figure(plots.on_foot(one["figure"], strip))
    names = ", ".join(dict.fromkeys(one["key"] for one in shown["figures"]))
    raise UsageError(f"no figure {name!r} of connection {connection}", remedy=f"available: {names or 'none, because it carried no data'}")
