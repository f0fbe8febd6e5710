"""Analysis → everything the page says, as one plain dictionary. No HTML here, no rounding, no opinion about looks.

Numbers stay numbers (nanoseconds, bytes, bits per second, null for unknown); `kind` says how people read them (see `numbers.said`).
What a column means is taken from `schema.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict

from tcptrace_lab import schema
from tcptrace_lab.report import choose, numbers, plots, series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

LISTED_PROBLEMS = 50
"""Problems of the capture that are spelled out; the rest is counted."""

_ENDS = {"fin": "FIN", "reset": "RST", "reuse": "ports used again", "end": "end of capture"}
"""`schema.CLOSED_BY` in words short enough for a cell."""


class Analysed(Protocol):
    """What a report needs of an `Analysis`."""

    @property
    def name(self) -> str:
        """The capture's name, as people know it."""

    @property
    def capture(self) -> Mapping[str, Any]:
        """What was captured and what could not be read: the "capture" object of the JSON output."""

    @property
    def connections(self) -> pl.DataFrame:
        """`schema.CONNECTIONS`."""

    @property
    def segments(self) -> pl.LazyFrame:
        """`schema.SEGMENTS`, in frame order; possibly larger than memory."""

    @property
    def findings(self) -> Sequence[Any]:
        """Findings, most expensive first."""


class Value(TypedDict):
    """One fact: its name, its value, and how to read it."""

    label: str
    value: Any
    kind: str
    tooltip: NotRequired[str]


class Column(TypedDict):
    """One column of the connection table."""

    key: str
    label: str
    kind: str
    tooltip: str


class Figure(TypedDict):
    """One figure: `by` is the direction it belongs to ("client", "server") or "both"."""

    key: str
    by: str
    title: str
    note: str
    figure: plots.Figure


class Side(TypedDict):
    """One direction of a drawn connection, named by its sender."""

    key: str
    label: str
    payload_bytes: int


class Connection(TypedDict):
    """A drawn connection. `sides` has the direction with most payload first."""

    conn: int
    client: str
    server: str
    facts: list[Value]
    sides: list[Side]
    figures: list[Figure]
    omitted: list[str]


class ReportData(TypedDict):
    """All of it."""

    name: str
    capture: list[Value]
    complete: bool
    problems: list[Mapping[str, Any]]
    problems_total: int
    columns: list[Column]
    rows: list[dict[str, Any]]
    connections_total: int
    listed_rule: str
    drawn_rule: str
    drawn: list[Connection]
    undrawn_reason: str


def data(analysis: Analysed) -> ReportData:
    """Collect what the report shows of `analysis`."""
    capture = analysis.capture
    problems = list(capture["problems"])
    chosen = choose.drawn(analysis.connections)
    return {
        "name": analysis.name,
        "capture": _capture(capture),
        "complete": bool(capture["complete"]),
        "problems": problems[:LISTED_PROBLEMS],
        "problems_total": len(problems),
        "columns": _columns(),
        "rows": [_row(row, capture["first_ts_ns"]) for row in choose.listed(analysis.connections).iter_rows(named=True)],
        "connections_total": analysis.connections.height,
        "listed_rule": choose.LISTED_RULE,
        "drawn_rule": choose.DRAWN_RULE,
        "drawn": _drawn(analysis, chosen),
        "undrawn_reason": _undrawn_reason(analysis.connections) if chosen.is_empty() else "",
    }


def _capture(capture: Mapping[str, Any]) -> list[Value]:
    trust = capture.get("trust", {})
    facts: list[Value] = [
        {"label": "Format", "value": capture["format"], "kind": "text"},
        {"label": "Link types", "value": _link_types(capture["link_types"]), "kind": "text"},
        {"label": "Packets", "value": capture["packets"], "kind": "count"},
        {"label": "TCP segments", "value": capture["tcp_segments"], "kind": "count"},
        {"label": "Connections", "value": capture["connections"], "kind": "count"},
        {"label": "Duration", "value": _difference(capture["last_ts_ns"], capture["first_ts_ns"]), "kind": "duration"},
        {"label": "First packet", "value": capture["first_ts_ns"], "kind": "utc"},
        {"label": "Last packet", "value": capture["last_ts_ns"], "kind": "utc"},
        {
            "label": "Clock resolution",
            "value": trust.get("resolution_ns"),
            "kind": "duration",
            "tooltip": "The finest step that time stamps of this capture can show",
        },
        {
            "label": "Packets cut short",
            "value": trust.get("snaplen_cut"),
            "kind": "count",
            "tooltip": "Packets that were longer than the capture's snapshot length",
        },
    ]
    if trust.get("clock_steps"):
        facts.append(
            {
                "label": "Clock steps back",
                "value": trust["clock_steps"],
                "kind": "count",
                "tooltip": "Packets with an earlier time than the packet before them",
            }
        )
    return facts


def _link_types(links: Sequence[Mapping[str, Any]]) -> str:
    """Names, and where there are several, how many packets each has."""
    if len(links) == 1:
        return str(links[0]["name"])
    return ", ".join(f"{link['name']} ({numbers.count(link['packets'])} packets)" for link in links) or numbers.UNKNOWN


def _columns() -> list[Column]:
    columns = schema.CONNECTIONS
    return [
        {"key": "conn", "label": "#", "kind": "integer", "tooltip": columns["conn"].meaning},
        {"key": "client", "label": "client", "kind": "text", "tooltip": f"{columns['client_addr'].meaning}, and its port"},
        {"key": "server", "label": "server", "kind": "text", "tooltip": f"{columns['server_addr'].meaning}, and its port"},
        {
            "key": "start_ns",
            "label": "start",
            "kind": "offset",
            "tooltip": f"{columns['first_ts_ns'].meaning}, after the first packet of the capture",
        },
        {"key": "duration_ns", "label": "duration", "kind": "duration", "tooltip": "From the first segment to the last"},
        {"key": "client_bytes", "label": "bytes →", "kind": "size", "tooltip": columns["client_unique_bytes"].meaning},
        {"key": "server_bytes", "label": "← bytes", "kind": "size", "tooltip": columns["server_unique_bytes"].meaning},
        {
            "key": "resent",
            "label": "resent",
            "kind": "count",
            "tooltip": f"{columns['client_retransmitted_segments'].meaning.removesuffix(' (by the client)')}, both directions",
        },
        {
            "key": "rtt_min_ns",
            "label": "RTT min",
            "kind": "duration",
            "tooltip": f"Smallest round-trip sample of the direction with most payload, {columns['client_rtt_min_ns'].limits}",
        },
        {
            "key": "throughput_bps",
            "label": "throughput",
            "kind": "rate",
            "tooltip": "New payload of the direction with most data, over the time from its first data segment to its last",
        },
        {"key": "closed_by", "label": "ended by", "kind": "text", "tooltip": columns["closed_by"].meaning},
    ]


def _row(row: dict[str, Any], origin_ns: int | None) -> dict[str, Any]:
    """One row of the connection table; keys as in `_columns`, and what the text of a cell hides."""
    duration_ns = _difference(row["last_ts_ns"], row["first_ts_ns"])
    main = _main_side(row)
    return {
        "conn": row["conn"],
        "client": _endpoint(row["client_addr"], row["client_port"]),
        "server": _endpoint(row["server_addr"], row["server_port"]),
        "start_ns": _difference(row["first_ts_ns"], origin_ns),
        "duration_ns": duration_ns,
        "client_bytes": row["client_unique_bytes"],
        "server_bytes": row["server_unique_bytes"],
        "resent": row["client_retransmitted_segments"] + row["server_retransmitted_segments"],
        "rtt_min_ns": row[f"{main}_rtt_min_ns"],
        "throughput_bps": _throughput_bps(row, main),
        "closed_by": _ENDS[row["closed_by"]],
    }


def _throughput_bps(row: dict[str, Any], side: str) -> float | None:
    """As in the JSON: new payload over the time from the first data segment to the last."""
    sent_ns = _difference(row[f"{side}_last_data_ts_ns"], row[f"{side}_first_data_ts_ns"])
    return row[f"{side}_unique_bytes"] * 8 * numbers.NS_PER_S / sent_ns if sent_ns and sent_ns > 0 else None


def _drawn(analysis: Analysed, chosen: pl.DataFrame) -> list[Connection]:
    requests = choose.requests(chosen)
    found = series.read(analysis.segments, requests)
    resolution_ns = analysis.capture.get("trust", {}).get("resolution_ns") or 1
    by_conn = {request.conn: request for request in requests}
    return [_connection(row, by_conn[row["conn"]], found[row["conn"]], resolution_ns) for row in chosen.iter_rows(named=True)]


def _connection(row: dict[str, Any], request: series.Request, directions: dict[bool, series.Direction], resolution_ns: int) -> Connection:
    main = _main_side(row)
    keys = [key for key in sorted(schema.SIDES, key=lambda key: key != main) if schema.SIDES[key] in directions]
    labels = {"client": "client → server", "server": "server → client"}
    by_key = {key: directions[schema.SIDES[key]] for key in keys}
    frame = plots.Frame(request.duration_ns, resolution_ns)
    return {
        "conn": row["conn"],
        "client": _endpoint(row["client_addr"], row["client_port"]),
        "server": _endpoint(row["server_addr"], row["server_port"]),
        "facts": _facts(row, main),
        "sides": [{"key": key, "label": labels[key], "payload_bytes": row[f"{key}_payload_bytes"]} for key in keys],
        "figures": [
            *(figure for key, direction in by_key.items() for figure in _direction_figures(key, direction, frame)),
            {
                "key": "throughput",
                "by": "both",
                "title": "Throughput",
                "note": "New payload per slice of time, resent bytes not counted again.",
                "figure": plots.throughput({labels[key]: direction for key, direction in by_key.items()}, frame, request.bin_ns),
            },
        ],
        "omitted": [note for key, direction in by_key.items() for note in _omitted(labels[key], direction)],
    }


def _direction_figures(key: str, direction: series.Direction, frame: plots.Frame) -> list[Figure]:
    columns = schema.SEGMENTS
    return [
        {
            "key": "time-sequence",
            "by": key,
            "title": "Time and sequence",
            "note": "Each stroke is data from its first byte to its last; below it what the receiver has acknowledged, above it where its window ends.",
            "figure": plots.time_sequence(direction, frame),
        },
        {
            "key": "flight",
            "by": key,
            "title": "Bytes in flight and window",
            "note": "Sent and not yet acknowledged, against the window offered at that time, seen from the capture point.",
            "figure": plots.flight(direction, frame),
        },
        {
            "key": "rtt",
            "by": key,
            "title": "Round-trip time",
            "note": f"{columns['rtt_ns'].meaning} (dots). Faint rings, ACK lag: {_lower_first(columns['ack_lag_ns'].meaning)}.",
            "figure": plots.round_trips(direction, frame),
        },
    ]


def _omitted(label: str, direction: series.Direction) -> list[str]:
    """What the figures leave away, in words."""
    notes = [
        f"{label}: {points.height:,} of {direction.mark_counts[name]:,} marks “{plots.MARKS[name].label}” drawn, evenly chosen."
        for name, points in direction.marks.items()
        if points.height < direction.mark_counts[name]
    ]
    longest = max(direction.line_counts, key=lambda name: direction.line_counts[name])
    drawn_points, all_points = direction.lines[longest].height, direction.line_counts[longest]
    if direction.merged:
        notes.append(f"{label}: segments that left within the same moment are drawn as one stroke ({direction.bursts.height:,} strokes).")
    if drawn_points < all_points:
        notes.append(
            f"{label}: lines are drawn with up to {drawn_points:,} of {all_points:,} points; extremes and the longest silences are all there."
        )
    return notes


def _facts(row: dict[str, Any], main: str) -> list[Value]:
    """The line of facts above a connection's figures."""
    columns = schema.CONNECTIONS
    table_row = _row(row, row["first_ts_ns"])
    facts: list[Value] = [
        {"label": column["label"], "value": table_row[column["key"]], "kind": column["kind"], "tooltip": column["tooltip"]}
        for column in _columns()
        if column["key"] in {"duration_ns", "client_bytes", "server_bytes", "resent", "rtt_min_ns", "throughput_bps", "closed_by"}
    ]
    for name, label, kind in (
        ("max_in_flight_bytes", "most in flight", "size"),
        ("mss_bytes", "MSS", "size"),
        ("window_scale", "window scale", "integer"),
    ):
        column = columns[f"{main}_{name}"]
        facts.append({"label": label, "value": row[column.name], "kind": kind, "tooltip": column.meaning})
    facts.append({"label": "frames", "value": f"{row['first_frame']}–{row['last_frame']}", "kind": "text"})
    return facts


def _undrawn_reason(connections: pl.DataFrame) -> str:
    if connections.is_empty():
        return "There is no TCP connection in this capture."
    if connections["first_ts_ns"].null_count() == connections.height:
        return "This capture stores no times, so there is nothing to draw over time."
    return "No connection in this capture carried data."


def _main_side(row: dict[str, Any]) -> str:
    return "client" if row["client_payload_bytes"] > row["server_payload_bytes"] else "server"


def _endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _difference(later_ns: int | None, earlier_ns: int | None) -> int | None:
    return None if later_ns is None or earlier_ns is None else later_ns - earlier_ns


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
