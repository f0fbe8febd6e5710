"""Draws figures that show a finding best: RTT against bytes in flight, the exchange as a ladder, and writes over time.

`plots` draws the other figures of a connection.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.engine.figures import FIN, RST, SYN
from tcptrace_lab.report.figures import downsampling, plots
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tcptrace_lab.engine.figures import Band, Direction
    from tcptrace_lab.report.figures.plots import Figure, Frame

SAMPLES = 1_000
"""Maximum number of RTT samples that are drawn against the bytes in flight."""

LADDER_ROWS = 24
"""Maximum number of segments in a ladder. More do not fit on a screen."""

_LADDER_BEFORE = 6
"""Maximum number of segments before the first frame of the finding's place (`finding_windows.Place`)."""

_SHORT = 0.1
"""Minimum length of a marked wait, as a share of the ladder's longest wait (a heuristic)."""

_GAP, _ROW = 2.2, 1.0
"""Vertical distance between two segments of a ladder, with and without a marked wait between them."""


def rtt_against_flight(direction: Direction) -> Figure:
    """Draw each RTT sample against the bytes in flight when its segment was sent. In a queue, the RTT rises with the bytes in flight."""
    rtt = direction.lines["rtt"]
    if rtt.is_empty():
        return {"data": [], "layout": {}}
    drawn = rtt[downsampling.even(rtt.height, SAMPLES)].with_columns(left_ns=pl.col("t_ns") - pl.col("y")).sort("left_ns")
    flights = direction.lines["flight"].select("t_ns", flight="y").sort("t_ns")
    points = drawn.join_asof(flights, left_on="left_ns", right_on="t_ns").filter(pl.col("flight").is_not_null())
    rtt_s = (points["y"].cast(float) / numbers.NS_PER_S).to_list()
    flight = points["flight"].to_list()
    least_ns: int = rtt.select(pl.col("y").min()).item()
    least_s = least_ns / numbers.NS_PER_S
    samples = {
        "type": "scatter",
        "mode": "markers",
        "name": "RTT sample",
        "marker": {"symbol": "circle", "color": plots.BLUE, "size": 5, "opacity": 0.7},
        "x": flight,
        "y": rtt_s,
        "customdata": list(zip(points["frame"].to_list(), [time_ns / numbers.NS_PER_S for time_ns in points["left_ns"]], strict=True)),
        "hovertemplate": "%{y:.4s}s with %{x:,} bytes in flight<br>ACK in frame %{customdata[0]}, data sent at %{customdata[1]:.6f} s",
    }
    base = {
        "type": "scatter",
        "mode": "lines",
        "name": f"smallest RTT, {numbers.duration(least_ns)}",
        "line": {"color": plots.AMBER, "width": 1.5, "dash": "dot"},
        "x": [0, max(flight, default=0)],
        "y": [least_s, least_s],
        "hoverinfo": "skip",
    }
    return {
        "data": [base, samples],
        "layout": {
            "xaxis": {
                "title": {"text": "bytes in flight when the segment was sent"},
                "tickformat": "~s",
                "ticksuffix": "B",
                "rangemode": "tozero",
            },
            "yaxis": {"title": {"text": "round-trip time"}, "tickformat": "~s", "ticksuffix": "s", "rangemode": "tozero"},
            "hovermode": "closest",
            "dragmode": "zoom",
        },
    }


def writes(rows: pl.DataFrame, pauses: Sequence[Band], frame: Frame) -> Figure:
    """Draw the application's writes over time. All new data between two pauses of the application counts as one write.

    Args:
        rows: rows of `engine.figures.Tracker`, in frame order.
        pauses: the pauses of the application.
        frame: the time axis.
    """
    data = rows.filter(pl.col("mine") & (pl.col("payload_bytes") > 0) & (pl.col("kind") == "new"))
    ends = pl.Series([pause["end_ns"] for pause in pauses], dtype=pl.Int64)
    number = ends.search_sorted(data["t_ns"], side="right")
    written = data.group_by(number.alias("number"), maintain_order=True).agg(
        pl.col("t_ns").first(),
        pl.col("payload_bytes").sum(),
        pl.len().alias("segments"),
        pl.col("frame").first(),
        pl.col("frame").last().alias("frame_end"),
    )
    if written.is_empty():
        return {"data": [], "layout": {}}
    sizes = written["payload_bytes"].to_list()
    stems = {
        "type": "scatter",
        "mode": "markers",
        "name": f"written between two pauses ({written.height:,})",
        "marker": {"symbol": "circle", "color": plots.BLUE, "size": 7},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0] * len(sizes),
            "arrayminus": sizes,
            "color": plots.BLUE,
            "thickness": 1.5,
            "width": 0,
        },
        "x": frame.seconds(written["t_ns"]),
        "y": sizes,
        "customdata": list(zip(*(written[name].to_list() for name in ("frame", "frame_end", "segments")), strict=True)),
        "hovertemplate": "%{y:,} bytes in %{customdata[2]:,} segments<br>frames %{customdata[0]} to %{customdata[1]}, from %{x:.6f} s",
    }
    return {
        "data": [stems],
        "layout": {
            "xaxis": frame.axis(),
            "yaxis": {"title": {"text": "bytes written"}, "tickformat": "~s", "ticksuffix": "B", "rangemode": "tozero"},
            "shapes": [plots.shade(pause) for pause in pauses],
            "hovermode": "closest",
            "dragmode": "zoom",
        },
    }


def ladder_rows(rows: pl.DataFrame, first_frame: int) -> pl.DataFrame:
    """Return the rows of a ladder in frame order, beginning a few segments before `first_frame`."""
    begin = max(rows["frame"].search_sorted(first_frame) - _LADDER_BEFORE, 0)
    return rows.slice(begin, LADDER_ROWS)


def ladder(rows: pl.DataFrame, bands: Sequence[Band], frames: Collection[int], causes: Collection[str], frame: Frame) -> Figure:
    """Draw the exchange as a ladder: one arrow per segment from its sender to its receiver, in order of time from top to bottom.

    Args:
        rows: rows of `engine.figures.Tracker` in frame order: at most `LADDER_ROWS`.
        bands: waits. A wait with one of `causes` is marked between the segment before it and the segment after it.
        frames: frames that prove the finding; each gets a ring.
        causes: causes of the waits to mark.
        frame: the time axis.
    """
    times_ns = rows["t_ns"].to_list()
    all_marked = [_within(bands, causes, begin_ns, end_ns) for begin_ns, end_ns in itertools.pairwise(times_ns)]
    lengths_ns = [wait["end_ns"] - wait["start_ns"] if wait else 0 for wait in all_marked]
    least_ns = max(lengths_ns, default=0) * _SHORT
    marked = [wait if length_ns >= least_ns else None for wait, length_ns in zip(all_marked, lengths_ns, strict=True)]
    places = [0.0]
    for wait in marked:
        places.append(places[-1] + (_GAP if wait else _ROW))
    traces = [
        _arrows(
            [place for place, own in zip(places, rows["from_client"].to_list(), strict=True) if own == from_client],
            rows.filter(pl.col("from_client") == from_client),
            frame,
        )
        for from_client in (True, False)
    ]
    proving = [place for place, number in zip(places, rows["frame"].to_list(), strict=True) if number in frames]
    own = rows.filter(pl.col("frame").is_in(list(frames)))
    rings = {
        "type": "scatter",
        "mode": "markers",
        "name": "frames that prove the finding",
        "marker": {"symbol": "circle-open", "size": 13, "color": plots.PURPLE, "line": {"width": 2, "color": plots.PURPLE}},
        "x": [0 if from_client else 1 for from_client in own["from_client"].to_list()],
        "y": proving,
        "customdata": own["frame"].to_list(),
        "hovertemplate": "proves the finding<br>frame %{customdata}",
    }
    gaps = [(places[row], wait) for row, wait in enumerate(marked) if wait]
    return {
        "data": [*(trace for trace in traces if trace), *([rings] if proving else [])],
        "layout": {
            "xaxis": {
                "range": [-0.08, 1.08],
                "tickvals": [0, 1],
                "ticktext": ["client", "server"],
                "side": "top",
                "fixedrange": True,
                "zeroline": False,
            },
            "yaxis": {
                "range": [places[-1] + 0.8, -0.9],
                "tickvals": places,
                "ticktext": [f"{seconds:.6f} s" for seconds in frame.seconds(rows["t_ns"])],
                "title": {"text": ""},
                "fixedrange": True,
                "showgrid": False,
                "zeroline": False,
            },
            "shapes": [_gap(place, wait) for place, wait in gaps],
            "annotations": [
                {
                    "x": 0.5,
                    "y": place + _GAP / 2 - 0.25,
                    "text": f"{wait['cause']}, {numbers.duration(wait['end_ns'] - wait['start_ns'])}",
                    "showarrow": False,
                    "font": {"size": 12},
                }
                for place, wait in gaps
            ],
            "hovermode": "closest",
            "dragmode": False,
        },
    }


def _within(bands: Sequence[Band], causes: Collection[str], begin_ns: int, end_ns: int) -> Band | None:
    """Return the longest wait with one of these causes between two segments; None if there is no such wait."""
    own: list[Band] = [
        {"start_ns": max(band["start_ns"], begin_ns), "end_ns": min(band["end_ns"], end_ns), "cause": band["cause"]}
        for band in bands
        if band["cause"] in causes and band["start_ns"] < end_ns and band["end_ns"] > begin_ns
    ]
    return max(own, key=lambda band: band["end_ns"] - band["start_ns"], default=None)


def _gap(place: float, wait: Band) -> dict[str, Any]:
    look = {"fillcolor": plots.CAUSE_COLOURS[wait["cause"]], "opacity": plots.SHADE, "line": {"width": 0}, "layer": "below"}
    return {"type": "rect", "xref": "x", "yref": "y", "x0": 0, "x1": 1, "y0": place + 0.25, "y1": place + _GAP - 0.75, **look}


def _arrows(places: Sequence[float], rows: pl.DataFrame, frame: Frame) -> dict[str, Any] | None:
    """Draw the segments of one host as arrows with labels. An arrow has three points: its sender, its middle and its receiver."""
    if rows.is_empty():
        return None
    from_client = rows.item(0, "from_client")
    colour = plots.BLUE if from_client else plots.GREEN
    head = "triangle-right" if from_client else "triangle-left"
    ends = (0, 0.5, 1) if from_client else (1, 0.5, 0)
    labels = [segment_words(row) for row in rows.iter_rows(named=True)]
    numbers_of = list(zip(rows["frame"].to_list(), rows["payload_bytes"].to_list(), frame.seconds(rows["t_ns"]), strict=True))
    return {
        "type": "scatter",
        "mode": "lines+markers+text",
        "name": "client → server" if from_client else "server → client",
        "line": {"color": colour, "width": 1.5},
        "marker": {
            "color": colour,
            "symbol": [mark for _ in places for mark in ("circle", "circle", head, "circle")],
            "size": [size for _ in places for size in (4, 0, 9, 0)],
        },
        "x": [x for _ in places for x in (*ends, None)],
        "y": [y for place in places for y in (place, place, place, None)],
        "text": [text for label in labels for text in ("", label, "", "")],
        "textposition": "top center",
        "textfont": {"size": 11},
        "customdata": [one for each in numbers_of for one in (each, each, each, None)],
        "hovertemplate": "frame %{customdata[0]}, %{customdata[1]:,} bytes<br>%{customdata[2]:.6f} s",
    }


def segment_words(row: dict[str, Any]) -> str:
    """Return a segment in a few words, such as `100 B (frame 40)`."""
    flags = [name for bit, name in ((SYN, "SYN"), (FIN, "FIN"), (RST, "RST")) if row["flags"] & bit]
    data = [numbers.size(row["payload_bytes"])] if row["payload_bytes"] else []
    again = [row["kind"].replace("_", " ")] if row["kind"] not in {"new", "ack", "window_update"} else []
    return f"{', '.join([*flags, *data, *again]) or 'ACK'} (frame {row['frame']})"
