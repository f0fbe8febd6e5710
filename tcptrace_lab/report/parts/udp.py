"""The table of UDP flows, for comparison with TCP: its columns, explained by `schema`, and its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.connections import host_names
from tcptrace_lab.report.largest import Ranking, largest
from tcptrace_lab.report.parts import connection_table
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from tcptrace_lab.report.data_types import Column

LISTED_FLOWS = 100
"""Maximum number of flows that are listed. Each flow takes about 600 bytes of HTML."""

_BYTES = pl.col("client_payload_bytes") + pl.col("server_payload_bytes")
_MAIN = "the direction with most data"


def columns() -> list[Column]:
    """Return the columns in order."""
    return [
        _column("flow", "#", "integer", "flow"),
        _column("client", "client", "text", "client_addr", ", and its port"),
        _column("server", "server", "text", "server_addr", ", and its port"),
        _column("client_datagrams", "datagrams →", "count", "client_datagrams"),
        _column("server_datagrams", "← datagrams", "count", "server_datagrams"),
        _column("client_bytes", "bytes →", "size", "client_payload_bytes"),
        _column("server_bytes", "← bytes", "size", "server_payload_bytes"),
        _column("rate_bps", "rate", "rate", "client_rate_bps", f", of {_MAIN}"),
        _column("sizes", "sizes", "text", "client_distinct_sizes", f", of {_MAIN}"),
        _column("gap_p50_ns", "gap", "duration", "client_gap_p50_ns", f", of {_MAIN}"),
        _column("gap_max_ns", "longest gap", "duration", "client_gap_max_ns", f", of {_MAIN}"),
        _column("gap_variation", "unevenness", "ratio", "client_gap_variation", f"; of {_MAIN}"),
        _column("missing", "missing", "count", "client_missing_datagrams", f"; of {_MAIN}"),
        _column("echo_p50_ns", "echo", "duration", "echo_p50_ns"),
    ]


def listed(flows: pl.LazyFrame) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of flows, and the rows of the table.

    The table has the `LISTED_FLOWS` flows with most data, largest first. Keys are those of `columns`.
    """
    total, (found,) = largest(flows, "flow", {"bytes": _BYTES}, [Ranking(("bytes",), LISTED_FLOWS)])
    if not total:
        return 0, []
    rows = flows.filter(pl.col("flow").is_in(found)).collect().sort(_BYTES, "flow", descending=[True, False])
    return total, [_row(flow) for flow in rows.iter_rows(named=True)]


def _row(flow: dict[str, Any]) -> dict[str, Any]:
    main = connection_table.main_side(flow)
    return {
        "flow": flow["flow"],
        "client": host_names.endpoint(flow, "client"),
        "server": host_names.endpoint(flow, "server"),
        "client_datagrams": flow["client_datagrams"],
        "server_datagrams": flow["server_datagrams"],
        "client_bytes": flow["client_payload_bytes"],
        "server_bytes": flow["server_payload_bytes"],
        "rate_bps": flow[f"{main}_rate_bps"],
        "sizes": _sizes(flow, main),
        "gap_p50_ns": flow[f"{main}_gap_p50_ns"],
        "gap_max_ns": flow[f"{main}_gap_max_ns"],
        "gap_variation": flow[f"{main}_gap_variation"],
        "missing": flow[f"{main}_missing_datagrams"],
        "echo_p50_ns": flow["echo_p50_ns"],
    }


def _sizes(flow: dict[str, Any], side: str) -> str:
    """Return the datagram sizes of a sender: `172 B`, or the range and the number of sizes, `60 to 1,472 B (12 sizes)`."""
    low, high, distinct = (flow[f"{side}_{name}"] for name in ("min_payload_bytes", "max_payload_bytes", "distinct_sizes"))
    if low == high:
        return f"{numbers.count(low)} B"
    several = f" ({numbers.count(distinct)} sizes)" if distinct is not None else ""
    return f"{numbers.count(low)} to {numbers.count(high)} B{several}"


def _column(key: str, label: str, kind: str, name: str, more: str = "") -> Column:
    """Return a column of the table, which shows the column `name` of `schema.FLOWS`. The label or `more` names the sender."""
    column = schema.FLOWS[name]
    tooltip = column.meaning.removesuffix(" (host: client)") if more else column.meaning
    return {"key": key, "label": label, "kind": kind, "tooltip": tooltip + more + (f"; {column.limits}" if column.limits else "")}
