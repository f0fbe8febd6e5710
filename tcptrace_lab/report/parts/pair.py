"""The report's section on two captures of one transfer: the clocks, a table of directions, and delays and losses over time."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.connections.host_names import endpoint
from tcptrace_lab.pair.clocks import MAX_DRIFT
from tcptrace_lab.pair.document import PPM
from tcptrace_lab.pair.figures import directions
from tcptrace_lab.report.figures import downsampling, pair_ladder, plots
from tcptrace_lab.report.figures import words as figure_words
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from tcptrace_lab.pair import Pair
    from tcptrace_lab.pair.clocks import Clock
    from tcptrace_lab.report.data_types import Column, DrawnPair, Figure, PairSection, Value

LISTED_CONNECTIONS, DRAWN_CONNECTIONS = 100, 4
"""Maximum number of connections in the table, and maximum number with figures. The connections with the most data get figures."""

POINTS, MARKS = 3_000, 1_000
"""Maximum numbers of points per line, and of marks per kind. Each point and mark takes about 30 bytes of the report."""

_SIDES = ("client", "server")
_LABELS = ("client → server", "server → client")
_HOVER = "%{y:.4s}s<br>%{x:.6f} s, frame %{customdata}"


def section(pair: Pair) -> PairSection:
    """Return the contents of the section."""
    found = {row["direction"]: row for row in directions(pair.packets).iter_rows(named=True)}
    first = list(pair.endpoints[0].head(LISTED_CONNECTIONS).iter_rows(named=True))
    rows = [
        _row(row, side, found[number])
        for place, row in enumerate(first)
        for side, number in enumerate((2 * place, 2 * place + 1))
        if number in found
    ]
    amounts = pair.endpoints[0].select(bytes=pl.col("client_unique_bytes") + pl.col("server_unique_bytes"))["bytes"]
    largest = amounts.arg_sort(descending=True).head(DRAWN_CONNECTIONS).to_list()
    return {
        "answer": answer(pair, list(found.values())),
        "words": words(pair),
        "columns": _columns(),
        "rows": rows,
        "total": pair.connections.height,
        "drawn": [drawn for place in largest if (drawn := _drawn(pair, place))],
    }


def answer(pair: Pair, found: list[dict[str, Any]]) -> list[str]:
    """Return the result of the comparison: one sentence per direction, over all connections.

    The delays are those of the connection with the most packets.

    Args:
        pair: the two captures.
        found: rows of `directions`.
    """
    sentences = []
    for side, label in enumerate(_LABELS):
        own = [row for row in found if row["direction"] % 2 == side and row["sent"]]
        if not own:
            continue
        sent, lost, late, copies = (sum(row[name] for row in own) for name in ("sent", "lost", "reordered", "duplicated"))
        most = max(own, key=lambda row: row["sent"])
        which = f" of connection {pair.endpoints[0]['conn'][most['direction'] // 2]}" if len(own) > 1 else ""
        parts = [f"{numbers.count(lost)} of {numbers.counted(sent, 'packet')} lost ({numbers.share(lost / sent)})" if lost else
                 f"none of {numbers.counted(sent, 'packet')} lost"]  # fmt: skip
        parts += [f"{numbers.count(late)} out of order"] if late else []
        parts += [f"{numbers.count(copies)} {'copy' if copies == 1 else 'copies'}"] if copies else []
        if most["one_way_delay_p50_ns"] is not None:
            median, high = (numbers.duration(most[f"one_way_delay_{rank}_ns"]) for rank in ("p50", "p95"))
            parts.append(f"one-way delay{which} {median} (median), {high} (95th percentile)")
        if most["path_rtt_p50_ns"] is not None:
            path, held = (numbers.duration(most[name]) for name in ("path_rtt_p50_ns", "ack_delay_p50_ns"))
            parts.append(f"median RTT: {path} on the path, {held} until the receiving host ACKed")
        sentences.append(f"{label}: {'; '.join(parts)}.")
    return sentences


def words(pair: Pair) -> list[str]:
    """Return sentences on what was compared, and on the clocks."""
    paths = [PurePath(str(capture["path"])) for capture in pair.captures]
    first, second = (str(path) if paths[0].name == paths[1].name else path.name for path in paths)
    near = set(pair.connections["first_is_near_client"])
    nearer = f"; {first if near == {True} else second} is closer to the client" if len(near) == 1 else ""
    count = pair.connections.height
    return [f"{first} and {second}: {count:,} connection{'s' if count > 1 else ''} in both{nearer}.", *_clock_words(pair.clock, second)]


def _clock_words(clock: Clock | None, second: str) -> list[str]:
    if clock is None:
        return ["Clocks: not aligned, because too few packets of one direction are in both captures."]
    if clock.stepped:
        return ["Clocks: one clock was set during the capture; the delays here are unreliable."]
    ahead = f"{numbers.duration(abs(clock.offset_ns))} {'ahead' if clock.offset_ns >= 0 else 'behind'}"
    symmetric, any_case = numbers.duration(clock.symmetric_error_ns), numbers.duration(clock.error_ns)
    bound = f"±{symmetric} if both directions have equal delays, ±{any_case} in any case"
    return [f"Clocks: {second} is {ahead} ({bound}); {_drift_words(clock)}."]


def _drift_words(clock: Clock) -> str:
    drift, error = (numbers.formatted(value * PPM, "ratio")[0] for value in (clock.drift, clock.drift_error))
    if clock.drift:
        return f"it gains {drift} µs a second, ±{error}" if clock.drift > 0 else f"it loses {drift.removeprefix('-')} µs a second, ±{error}"
    if clock.drift_error >= MAX_DRIFT:
        return "drift unknown: too few packets"
    return f"no drift measured; it is less than {error} µs a second"


def _columns() -> list[Column]:
    return [
        _column("conn", "#", "integer", "Connection, as numbered in the first capture"),
        _column("from", "from", "text", "Sender of these packets"),
        _column("sent", "sent", "count", "Packets in the capture near the sender; a merged packet (offload) counts as several"),
        _column("lost", "lost", "count", "Lost: seen at the sender and not at the receiver"),
        _column(
            "not_captured",
            "not captured",
            "count",
            "Missing from the receiver's capture although they had arrived: they were ACKed, and no other packet carried their bytes",
        ),
        _column("duplicated", "copies", "count", "Further copies of packets that arrived"),
        _column("reordered", "late", "count", "Arrived after a packet that was sent later (RFC 4737)"),
        _column("one_way_delay_min_ns", "delay min", "duration", "Smallest one-way delay, as accurate as the clock alignment"),
        _column("one_way_delay_p50_ns", "p50", "duration", "Median one-way delay"),
        _column("one_way_delay_p95_ns", "p95", "duration", "95th percentile of the one-way delay"),
        _column("one_way_delay_max_ns", "max", "duration", "Largest one-way delay"),
        _column(
            "ack_delay_p50_ns",
            "ACK delay p50",
            "duration",
            "Delay added by the receiving host: median time from a packet to its ACK at the capture point near the receiver",
        ),
        _column("ack_delay_p95_ns", "p95", "duration", "95th percentile of the ACK delay"),
        _column(
            "path_rtt_p50_ns",
            "path RTT p50",
            "duration",
            "Median RTT minus ACK delay: the delay of the path in both directions; needs no aligned clocks",
        ),
    ]


def _column(key: str, label: str, kind: str, tooltip: str) -> Column:
    return {"key": key, "label": label, "kind": kind, "tooltip": tooltip}


def _row(connection: dict[str, Any], side: int, figures: dict[str, Any]) -> dict[str, Any]:
    return {"conn": connection["conn"], "from": endpoint(connection, _SIDES[side])} | {
        column["key"]: figures[column["key"]] for column in _columns() if column["key"] in figures
    }


def _drawn(pair: Pair, place: int) -> DrawnPair | None:
    """Return the figures of a connection that is in both captures; None if no packet is in both captures."""
    packets = pair.packets.filter(pl.col("direction") // 2 == place)
    matched = packets.filter(pl.col("fate") == "matched")
    if matched.is_empty():
        return None
    times = packets.select(
        pl.min_horizontal("sent_ns", "arrived_ns").min().alias("low"), pl.max_horizontal("sent_ns", "arrived_ns").max().alias("high")
    )
    start_ns, end_ns = times.row(0)
    resolution_ns = max(capture["quality"]["resolution_ns"] or 1 for capture in pair.captures)
    frame = plots.Frame(end_ns - start_ns, resolution_ns)
    moved = packets.with_columns(t_ns=pl.col("sent_ns") - start_ns, ack_ns=pl.col("arrived_ns") - start_ns)
    connection = pair.endpoints[0].row(place, named=True)
    return {
        "conn": connection["conn"],
        "client": endpoint(connection, "client"),
        "server": endpoint(connection, "server"),
        "facts": _facts(pair, place),
        "figures": [_ladder(moved, frame), _delays(moved, frame), _round_trips(moved, frame)],
    }


def _facts(pair: Pair, place: int) -> list[Value]:
    row = pair.connections.row(place, named=True)
    second = pair.endpoints[1].row(place, named=True)
    seen = [endpoint(second, side) for side in (_SIDES if not row["swapped"] else _SIDES[::-1])]
    return [
        {"label": "number in the second capture", "value": row["b"], "kind": "count"},
        {"label": "there", "value": " → ".join(seen), "kind": "text"},
        {
            "label": "packets in both",
            "value": row["shared"],
            "kind": "count",
            "tooltip": "Distinct packets that identify the connection in both captures",
        },
    ]


def _ladder(packets: pl.DataFrame, frame: plots.Frame) -> Figure:
    rows = pair_ladder.shown(packets)
    aligned = rows["delay_ns"].count() > 0
    part = f" It has {rows.height:,} consecutive packets of {packets.height:,}." if rows.height == pair_ladder.PACKETS else ""
    return {
        "key": "pair-ladder",
        "by": "both",
        "title": "From sender to receiver",
        "note": "Each line is a packet, from the time it was sent to the time it arrived; each cross is a lost packet. Zoom in to "
        f"see single packets.{part}",
        "without": "The clocks could not be aligned.",
        "text": pair_ladder.text(rows) if aligned else "",
        "figure": pair_ladder.figure(rows, frame) if aligned else {"data": [], "layout": {}},
    }


def _delays(packets: pl.DataFrame, frame: plots.Frame) -> Figure:
    traces = []
    for side, colour in enumerate((plots.BLUE, plots.PURPLE)):
        own = packets.filter(pl.col("direction") % 2 == side)
        on_time = own.filter(pl.col("delay_ns").is_not_null())
        traces.append(_points(on_time, "t_ns", "delay_ns", "sent_frame", _LABELS[side], colour, frame))
        late = on_time.filter("reordered")
        lost = own.filter(pl.col("fate") == "lost").with_columns(delay_ns=pl.lit(0, dtype=pl.Int64))
        traces += [
            _marks(late, f"{_LABELS[side]}: late", {"symbol": "square-open", "color": colour, "size": 9}, frame),
            _marks(lost, f"{_LABELS[side]}: lost", {"symbol": "x-thin-open", "color": plots.RED, "size": 9, "line": {"width": 1.5}}, frame),
        ]
    figure = _figure(traces, frame, "one-way delay")
    return {
        "key": "pair-delay",
        "by": "both",
        "title": "One-way delay",
        "note": "Delay of each packet between the two capture points, by the time when it was sent; lost packets are drawn at 0. The "
        "clocks are aligned so that the smallest delays of both directions are equal.",
        "without": "The clocks could not be aligned.",
        "text": figure_words.figure(figure),
        "figure": figure,
    }


def _round_trips(packets: pl.DataFrame, frame: plots.Frame) -> Figure:
    traces = []
    for side, (dark, light) in enumerate(((plots.BLUE, plots.GREEN), (plots.PURPLE, plots.AMBER))):
        acks = packets.filter(pl.col("direction") % 2 != side, pl.col("fate") == "matched", pl.col("received_rtt_ns").is_not_null())
        acks = acks.filter(pl.col("sent_rtt_ns").is_not_null()).with_columns(network_ns=pl.col("received_rtt_ns") - pl.col("sent_rtt_ns"))
        traces += [
            _points(acks, "ack_ns", "network_ns", "received_frame", f"path, data {_LABELS[side]}", dark, frame),
            _points(acks, "ack_ns", "sent_rtt_ns", "received_frame", f"ACK delay, data {_LABELS[side]}", light, frame),
        ]
    figure = _figure(traces, frame, "time")
    return {
        "key": "pair-round-trip",
        "by": "both",
        "title": "Parts of the RTT",
        "note": "For each RTT sample: the delay of the path in both directions, and how long the receiving host delayed the ACK. "
        "These times do not depend on the clocks.",
        "without": "No ACK that is in both captures gives an RTT sample.",
        "text": figure_words.figure(figure),
        "figure": figure,
    }


def _figure(traces: list[dict[str, Any] | None], frame: plots.Frame, title: str) -> plots.Figure:
    y_axis = {"title": {"text": title}, "tickformat": "~s", "ticksuffix": "s", "rangemode": "tozero"}
    return {
        "data": [trace for trace in traces if trace],
        "layout": {"xaxis": frame.axis(), "yaxis": y_axis, "hovermode": "closest", "dragmode": "zoom"},
    }


def _points(rows: pl.DataFrame, x: str, y: str, frame_column: str, name: str, colour: str, frame: plots.Frame) -> dict[str, Any] | None:
    if rows.is_empty():
        return None
    shown = downsampling.line(rows, x, y, POINTS)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "marker": {"symbol": "circle", "color": colour, "size": 5 if shown.height <= POINTS // 8 else 3},
        "x": frame.seconds(shown[x]),
        "y": (shown[y].cast(pl.Float64) / numbers.NS_PER_S).to_list(),
        "customdata": shown[frame_column].to_list(),
        "hovertemplate": _HOVER,
    }


def _marks(rows: pl.DataFrame, name: str, marker: dict[str, Any], frame: plots.Frame) -> dict[str, Any] | None:
    if rows.is_empty():
        return None
    shown = rows[downsampling.even(rows.height, MARKS)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name} ({rows.height:,})",
        "marker": marker,
        "x": frame.seconds(shown["t_ns"]),
        "y": (shown["delay_ns"].cast(pl.Float64) / numbers.NS_PER_S).to_list(),
        "customdata": shown["sent_frame"].to_list(),
        "hovertemplate": f"{name}<br>{_HOVER}",
    }
