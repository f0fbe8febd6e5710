"""Connections with figures: facts on each connection, the figures of each direction with data, and notes on what the figures leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.connections import behaviour, host_names, link_overhead, rates
from tcptrace_lab.report import selection
from tcptrace_lab.report.figures import collector, congestion, plots, series, words
from tcptrace_lab.report.parts import connection_table, lost_time, statistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.engine.figures import Direction
    from tcptrace_lab.report.data_types import Analysed, Connection, Description, Drawings, Figure, Stall, Value
    from tcptrace_lab.report.figures.finding_windows import Window

_LABELS = {"client": "client → server", "server": "server → client"}

_TABLE_FACTS = {"duration_ns", "client_bytes", "server_bytes", "resent", "initial_rtt_ns", "rtt_min_ns", "throughput_bps", "closed_by"}
"""Columns of the connection table that also appear above a connection's figures."""


class Spent(NamedTuple):
    """Time by cause: rows of `schema.ACCOUNTS`, and the longest rows of `schema.STALLS`."""

    accounts: pl.LazyFrame
    stalls: pl.DataFrame


LABEL_MEANING = "What the connection was used for, by its first data"


def connections(
    analysis: Analysed,
    chosen: pl.DataFrame,
    time: Spent,
    resolution_ns: int,
    windows: Sequence[Window] = (),
    room: selection.Room = selection.ALONE,
) -> tuple[list[Connection], dict[tuple[int, bool], series.Whole]]:
    """Read and draw the chosen connections (rows of `schema.CONNECTIONS`), in their order.

    Args:
        analysis: the analysis of the connections.
        chosen: rows of `selection.Chosen.drawn`.
        time: time by cause.
        resolution_ns: resolution of the capture's clock.
        windows: windows of findings; they collect their rows in the same pass.
        room: limits of points in the figures.

    Returns:
        The connections, and (`conn`, `from_client`) → the directions that were read.
    """
    accounts = {row["conn"]: row for row in time.accounts.filter(pl.col("conn").is_in(chosen["conn"].to_list())).collect().to_dicts()}
    requests = selection.requests(chosen, room)
    found = series.read(analysis, requests, windows)
    by_conn = {request.conn: request for request in requests}
    fast = rate_sentences(chosen, analysis.rates)
    rows = chosen.to_dicts()
    wholes = {
        (row["conn"], from_client): series.Whole(direction, by_conn[row["conn"]].duration_ns, _is_at_sender(row, from_client=from_client))
        for row in rows
        for from_client, direction in found[row["conn"]].items()
    }
    drawn = [
        _connection(row, by_conn[row["conn"]], found[row["conn"]], accounts.get(row["conn"]), time, fast, resolution_ns) for row in rows
    ]
    for connection in drawn:
        if label := analysis.labels.get(connection["conn"]):
            connection["facts"].insert(0, {"label": "application", "value": label, "kind": "text", "tooltip": LABEL_MEANING})
    return drawn, wholes


def _is_at_sender(row: Mapping[str, Any], *, from_client: bool) -> bool:
    """Return whether the capture shows this direction's bytes in flight: it was made at the sender, or both ends are one host."""
    side = "client" if from_client else "server"
    return bool(row["vantage"] == side or row["vantage_known_by"] == "loopback")


def rate_sentences(chosen: pl.DataFrame, known: pl.DataFrame) -> dict[tuple[int, str], str]:
    """Return a text on the rates of each direction, by (`conn`, sender).

    `known` contains rows of `schema.RATES` for some connections.
    """
    keys = {from_client: side for side, from_client in schema.SIDES.items()}
    conns, known_conns = chosen["conn"].to_list(), {*known["conn"].to_list()}
    rows = known.filter(known["conn"].is_in(conns)).to_dicts()
    others = [place for place, conn in enumerate(conns) if conn not in known_conns]
    if others:
        rows += rates.table(chosen[others].sort("conn")).to_dicts()
    return {(own["conn"], keys[own["from_client"]]): rates.sentence(own) for own in rows}


def _connection(
    row: dict[str, Any],
    request: collector.Request,
    directions: dict[bool, Direction],
    account: dict[str, Any] | None,
    time: Spent,
    fast: Mapping[tuple[int, str], str],
    resolution_ns: int,
) -> Connection:
    return {
        **description(row, account, _stalls(time, row), fast),
        **drawings(row, directions, plots.Frame(request.duration_ns, resolution_ns), request.bin_ns),
    }


def _stalls(time: Spent, row: Mapping[str, Any]) -> list[Stall]:
    return lost_time.listed_stalls(time.stalls, row["conn"], row["first_ts_ns"])


def description(
    row: dict[str, Any], account: Mapping[str, Any] | None, stalls: list[Stall], fast: Mapping[tuple[int, str], str]
) -> Description:
    """Return everything about a connection that the page shows, except the figures.

    Args:
        row: the row of `schema.CONNECTIONS`.
        account: the row of `schema.ACCOUNTS`.
        stalls: the stalls to list.
        fast: see `rate_sentences`.
    """
    main = connection_table.main_side(row)
    return {
        "conn": row["conn"],
        "client": host_names.endpoint(row, "client"),
        "server": host_names.endpoint(row, "server"),
        "facts": _facts(row, main, fast),
        "behaviour": behaviour.words(row),
        "bars": lost_time.bars(account),
        "stalls": stalls,
        "statistics": statistics.table(row),
        "sides": [
            {"key": key, "label": _LABELS[key], "unique_bytes": row[f"{key}_unique_bytes"]}
            for key in _main_first(row)
            if row[f"{key}_data_segments"]
        ],
    }


def _main_first(row: Mapping[str, Any]) -> list[str]:
    main = connection_table.main_side(row)
    return sorted(schema.SIDES, key=lambda key: key != main)


def drawings(
    row: dict[str, Any],
    directions: Mapping[bool, Direction],
    frame: plots.Frame,
    bin_ns: int,
    window_ns: tuple[int, int] | None = None,
) -> Drawings:
    """Return the figures of a connection, and sentences on what the figures leave out.

    Args:
        row: the row of `schema.CONNECTIONS`.
        directions: the series of the directions with data.
        frame: the time axis.
        bin_ns: width of a throughput bin.
        window_ns: the window that the series cover; None for the whole connection.
    """
    by_key = {key: directions[schema.SIDES[key]] for key in _main_first(row) if schema.SIDES[key] in directions}
    named = {_LABELS[key]: direction for key, direction in by_key.items()}
    rate = plots.throughput(named, frame, bin_ns, window_ns)
    return {
        "ledger": {key: plots.ledger(direction.causes) for key, direction in by_key.items()},
        "figures": [
            *(
                figure
                for key, direction in by_key.items()
                for figure in _direction_figures(
                    key, direction, frame, row[f"{key}_full_segment_bytes"], at_sender=_is_at_sender(row, from_client=schema.SIDES[key])
                )
            ),
            _figure(
                "throughput",
                "both",
                "Throughput",
                "New payload per interval of time; retransmits are not counted again.",
                "No new payload.",
                rate,
            ),
        ],
        "omitted": [note for label, direction in named.items() for note in _omitted(label, direction)],
    }


def _figure(key: str, by: str, title: str, note: str, without: str, figure: plots.Figure) -> Figure:
    return {"key": key, "by": by, "title": title, "note": note, "without": without, "text": words.figure(figure), "figure": figure}


def _direction_figures(key: str, direction: Direction, frame: plots.Frame, full_bytes: int | None, *, at_sender: bool) -> list[Figure]:
    columns = schema.SEGMENTS
    path = schema.CONNECTIONS["client_rtt_min_ns"].limits.split(";", maxsplit=1)[0]
    estimated = congestion.estimate(direction) if at_sender and direction.marks.keys() & {*schema.RESENT} else None
    return [
        _figure(
            "time-sequence",
            key,
            "Time and sequence",
            "Each stroke is a segment from first to last byte; the lower line is what the receiver has ACKed, the upper line is the "
            "end of its window. SACK blocks are strokes at the time of their ACK.",
            "There is nothing to draw.",
            plots.time_sequence(direction, frame),
        ),
        _figure(
            "flight",
            key,
            "Bytes in flight and window",
            "Data sent and not yet ACKed, and the window offered at that time, as seen at the capture point."
            + (f" {congestion.MEANING}" if estimated else ""),
            "Bytes in flight are unknown: nothing was ACKed.",
            plots.flight(direction.lines, frame, estimated),
        ),
        _figure(
            "rtt",
            key,
            "Round-trip time",
            f"Dots: {_lower_first(columns['rtt_ns'].meaning)} ({path}). Rings, ACK lag: {_lower_first(columns['ack_lag_ns'].meaning)}.",
            "No sample: no ACK of new data was captured.",
            plots.round_trips(direction, frame),
        ),
        _figure(
            "segment-sizes",
            key,
            "Segment sizes",
            "Payload of each data segment, as captured: longer than a full segment where the network card merges or splits "
            "segments (offload).",
            "No segment carried data.",
            plots.segment_sizes(direction, frame, full_bytes),
        ),
    ]


def _omitted(label: str, direction: Direction) -> list[str]:
    """Return sentences on what the figures of a direction leave out."""
    notes = [
        f"{label}: {points.height:,} of {direction.mark_counts[name]:,} marks “{plots.MARKS[name].label}” drawn, evenly spaced."
        for name, points in direction.marks.items()
        if points.height < direction.mark_counts[name]
    ]
    if direction.merged:
        segments, strokes = direction.bursts["segments"].sum(), direction.bursts.height
        notes.append(f"{label}: {segments:,} data segments are drawn as {strokes:,} strokes: consecutive segments are merged.")
    longest = max(direction.line_counts, key=lambda name: direction.line_counts[name])
    drawn, counted = direction.lines[longest].height, direction.line_counts[longest]
    if drawn < counted:
        notes.append(
            f"{label}: lines are drawn with up to {drawn:,} of {counted:,} points; all extremes and the longest silences are kept."
        )
    if direction.lines["window_edge"].is_empty():
        notes.append(f"{label}: the receive window is unknown, because the capture has no SYN with its scale, or no ACK.")
    return notes


def _facts(row: dict[str, Any], main: str, fast: Mapping[tuple[int, str], str]) -> list[Value]:
    """Return the line of facts above a connection's figures."""
    table_row = connection_table.row(row, row["first_ts_ns"])
    facts: list[Value] = [
        {"label": column["label"], "value": table_row[column["key"]], "kind": column["kind"], "tooltip": column["tooltip"]}
        for column in connection_table.columns()
        if column["key"] in _TABLE_FACTS
    ]
    facts.append(
        {
            "label": "RTT median",
            "value": connection_table.median_rtt_ns(row),
            "kind": "duration",
            "tooltip": "Median RTT of the path: " + _MEDIAN,
        }
    )
    facts.append(_fact(row, f"{main}_max_in_flight_bytes", "most in flight", "size"))
    for side, other in (("client", "server"), ("server", "client")):
        facts.append(_fact(row, f"{side}_rtt_min_ns", f"RTT to the {other}", "duration"))
    for side in schema.SIDES:
        facts.append(_fact(row, f"{side}_mss_bytes", f"MSS of {side}", "bytes"))
        facts.append(_fact(row, f"{side}_window_scale", f"window scale of {side}", "integer"))
    facts.extend(_traffic_facts(row))
    facts.extend(_line_facts(row))
    facts.extend(_rate_facts(row["conn"], fast))
    facts.append({"label": "frames", "value": f"{row['first_frame']} to {row['last_frame']}", "kind": "text"})
    return facts


_MEDIAN = "the median RTT from the capture point to the receiver of most data, plus the smallest RTT from the capture point to its sender"


def _traffic_facts(row: dict[str, Any]) -> list[Value]:
    """Return the segments, retransmits and throughput of each direction with data."""
    tooltip = (
        "Retransmitted: share of the segments with data, SYN or FIN. This is not the share of lost segments: a segment may be "
        "retransmitted several times, or although it had arrived. A retransmit without its original in the capture: the original was lost "
        "before the capture point, or not captured"
    )
    return [
        {"label": f"traffic, {_LABELS[side]}", "value": connection_table.traffic(row, side), "kind": "sentence", "tooltip": tooltip}
        for side in schema.SIDES
        if row[f"{side}_payload_bytes"]
    ]


def _line_facts(row: dict[str, Any]) -> list[Value]:
    """Return the load and the payload bound of the link for each direction with data, if the overhead of the link type is known."""
    tooltip = schema.CONNECTIONS["client_best_payload_share"].limits
    sentences = {side: link_overhead.sentence(row, side) for side in schema.SIDES if row[f"{side}_payload_bytes"]}
    return [
        {"label": f"line, {_LABELS[side]}", "value": words, "kind": "sentence", "tooltip": tooltip}
        for side, words in sentences.items()
        if words
    ]


def _rate_facts(conn: int, fast: Mapping[tuple[int, str], str]) -> list[Value]:
    """Return the rates of both hosts, and the resulting bound, for each direction with data."""
    sentences = {side: fast.get((conn, side), "") for side in schema.SIDES}
    tooltip = "As in Abrams and Chen, 1991: rate of the sender in unlimited bursts, drain rate at the other end, and the lower of the two"
    return [
        {"label": f"rates, {_LABELS[side]}", "value": words, "kind": "sentence", "tooltip": tooltip}
        for side, words in sentences.items()
        if words
    ]


def _fact(row: dict[str, Any], name: str, label: str, kind: str) -> Value:
    column = schema.CONNECTIONS[name]
    return {"label": label, "value": row[name], "kind": kind, "tooltip": f"{column.meaning}; {column.limits}"}


def _lower_first(text: str) -> str:
    """Return the text with a lower-case first letter, unless the text begins with an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
