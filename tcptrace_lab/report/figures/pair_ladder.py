"""Draws the ladder of a pair of captures: each packet is a line from its sender to its receiver, with time to the right.

The sending time comes from one capture, and the arrival time from the other. So the slope of the line shows the one-way delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.report.figures import plots
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from tcptrace_lab.report.figures.plots import Figure, Frame

PACKETS = 1_500
"""Maximum number of packets that are drawn, at about 40 bytes of the report each. The packets are consecutive, because a gap would look
like lost packets."""

BEFORE_LOSS = 50
"""Number of packets before the first loss, if not all packets are drawn (a heuristic)."""

_LEVELS = (1, 0)
"""Vertical position of the client, and of the server."""

_HOVER = "%{customdata[2]:,} bytes, frame %{customdata[0]}, arrived as frame %{customdata[1]}<br>%{customdata[3]} on the path, %{x:.6f} s"
_LOST_HOVER = "lost: %{customdata[1]:,} bytes, frame %{customdata[0]}<br>%{x:.6f} s"


def shown(packets: pl.DataFrame) -> pl.DataFrame:
    """Return the packets to draw, in order of sending: packets with a sending and an arrival time, and lost packets.

    If there are too many packets, those around the first loss are drawn.

    Args:
        packets: rows of `packet_fates.packets` of one connection. `t_ns` (time of sending) and `ack_ns` (time of arrival) are since the
            start of the time axis.
    """
    lost = pl.col("fate") == "lost"
    drawn = packets.filter(pl.col("delay_ns").is_not_null() | lost).sort("t_ns", maintain_order=True)
    first = drawn.select(lost.arg_max()).item() if drawn.height > PACKETS and drawn.select(lost.any()).item() else 0
    return drawn.slice(max(min(first - BEFORE_LOSS, drawn.height - PACKETS), 0), PACKETS)


def figure(rows: pl.DataFrame, frame: Frame) -> Figure:
    """Draw the rows that `shown` returns."""
    traces = []
    for side, (label, colour) in enumerate((("client → server", plots.BLUE), ("server → client", plots.PURPLE))):
        own = rows.filter(pl.col("direction") % 2 == side)
        traces += [_arrived(own.filter(pl.col("fate") != "lost"), side, label, colour, frame), _lost(own, side, label, frame)]
    return {
        "data": [trace for trace in traces if trace],
        "layout": {
            "xaxis": frame.axis(),
            "yaxis": {
                "title": {"text": ""},
                "tickvals": sorted(_LEVELS),
                "ticktext": ["server", "client"],
                "range": [-0.08, 1.08],
                "fixedrange": True,
                "zeroline": False,
            },
            "hovermode": "closest",
            "dragmode": "zoom",
        },
    }


def text(rows: pl.DataFrame) -> str:
    """Describe the figure for screen readers."""
    said = []
    for side, label in enumerate(("client to server", "server to client")):
        own = rows.filter(pl.col("direction") % 2 == side)
        lost = own.filter(pl.col("fate") == "lost").height
        if own.height:
            delays = own["delay_ns"].drop_nulls()
            spread = f", {numbers.duration(delays.min())} to {numbers.duration(delays.max())} on the path" if len(delays) else ""  # type: ignore[arg-type]
            said.append(f"{label}: {numbers.counted(own.height - lost, 'packet')} arrived{spread}, {numbers.count(lost)} lost.")
    return " ".join(said)


def _arrived(rows: pl.DataFrame, side: int, label: str, colour: str, frame: Frame) -> dict[str, Any] | None:
    if rows.is_empty():
        return None
    details = [
        (*one, numbers.duration(delay_ns))
        for *one, delay_ns in rows.select("sent_frame", "received_frame", "length", "delay_ns").iter_rows()
    ]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label,
        "connectgaps": False,
        "line": {"color": colour, "width": 1},
        "x": plots.strokes(frame.seconds(rows["t_ns"]), frame.seconds(rows["ack_ns"])),
        "y": plots.strokes([_LEVELS[side]] * rows.height, [_LEVELS[1 - side]] * rows.height),
        "customdata": plots.strokes(details, details),
        "hovertemplate": _HOVER,
    }


def _lost(rows: pl.DataFrame, side: int, label: str, frame: Frame) -> dict[str, Any] | None:
    """Draw a cross at the sender for each lost packet."""
    lost = rows.filter(pl.col("fate") == "lost")
    if lost.is_empty():
        return None
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{label}: lost ({lost.height:,})",
        "marker": {"symbol": "x-thin-open", "color": plots.RED, "size": 10, "line": {"width": 2}},
        "x": frame.seconds(lost["t_ns"]),
        "y": [_LEVELS[side]] * lost.height,
        "customdata": list(lost.select("sent_frame", "length").iter_rows()),
        "hovertemplate": _LOST_HOVER,
    }
