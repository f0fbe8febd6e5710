"""Converts series to Plotly figures, as plain dictionaries that `plotly.graph_objects.Figure(figure)` accepts.

The dictionaries are built by hand, because importing and validating with `plotly.graph_objects` costs more than the rest of a small report.
A script of the page adds the colours of text, grid and background, for a light and a dark theme. Trace colours have a contrast of at least
3 : 1 against both themes, and come from a palette for colour-blind readers. No meaning depends on colour alone: every mark also has a
symbol, and every line a name.

Titles and notes are built from the columns of `schema`, which defines what the axes show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tcptrace_lab import causes, schema
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.engine.figures import Band, Direction
    from tcptrace_lab.report.figures.congestion import Estimate

Figure = dict[str, Any]

BLUE, GREEN, AMBER, RED, PURPLE, GREY = "#1f78b4", "#0a8f6c", "#b27800", "#d5451b", "#8e5bb5", "#7a7f87"
"""Colours of Okabe and Ito (Color Universal Design, 2008), darkened or lightened to be readable on white and on black."""


class Mark(NamedTuple):
    """The appearance of one kind of mark (`engine.figures.MARKS`)."""

    label: str
    symbol: str
    colour: str
    size: int = 8


MARKS = {
    "retransmit": Mark("retransmission", "x-thin-open", RED, 9),
    "fast_retransmit": Mark("fast retransmission", "triangle-up", RED),
    "rto_retransmit": Mark("retransmission after timeout", "diamond", RED, 9),
    "tail_probe": Mark("tail-loss probe", "triangle-right", RED),
    "spurious": Mark("spurious retransmission", "x-open", RED),
    "recovery_retransmit": Mark("retransmission in recovery", "triangle-up-open", RED),
    "syn_retransmit": Mark("SYN retransmission", "triangle-down", RED, 9),
    "out_of_order": Mark("out of order", "square-open", PURPLE),
    "network_duplicate": Mark("duplicated by the network", "hash", PURPLE),
    "capture_duplicate": Mark("captured twice", "hash-open", GREY),
    "keepalive": Mark("keepalive", "star-open", AMBER),
    "zero_window_probe": Mark("zero-window probe", "cross-open", AMBER),
    "reset": Mark("RST by the sender", "hexagram", RED, 12),
    "syn": Mark("SYN", "triangle-down-open", BLUE, 9),
    "fin": Mark("FIN", "triangle-left-open", BLUE, 9),
    "zero_window": Mark("zero window", "circle-x-open", AMBER, 10),
    "peer_reset": Mark("RST by the receiver", "hexagram-open", RED, 12),
    "duplicate_ack": Mark("duplicate ACK", "line-ew-open", GREEN, 7),
    "sack": Mark("SACK block", "line-ns-open", PURPLE, 5),
}

_FEW_POINTS = 400
"""A figure with at most this many points has larger points, and end caps on the strokes of data."""

_NS_PER_US, _US_PER_S = 1000, 1_000_000
_FINE_CLOCK_NS = _NS_PER_US
"""Times have nine decimals if the capture's clock has a finer resolution than this, otherwise six."""

_MERGED_HOVER = (
    "%{customdata[2]:,} segments, %{customdata[3]:,} bytes<br>frames %{customdata[0]} to %{customdata[1]}<br>%{x:.6f} s, offset %{y:,}"
)
_SINGLE_HOVER = "frame %{customdata[0]}, %{customdata[3]:,} bytes<br>%{x:.6f} s, offset %{y:,}"
_MARK_HOVER = "frame %{customdata[0]}, %{customdata[1]:,} bytes<br>%{x:.6f} s, offset %{y:,}"
_BYTES_HOVER = "%{y:,} bytes<br>%{x:.6f} s, frame %{customdata}"
_TIME_HOVER = "%{y:.4s}s<br>%{x:.6f} s, frame %{customdata}"
_RATE_HOVER = "%{y:.4s}b/s<br>from %{x:.6f} s"


class Frame(NamedTuple):
    """The time axis that all figures of one connection share.

    Attributes:
        duration_ns: length of the axis, from the connection's first segment to its last.
        resolution_ns: resolution of the capture's clock. Times are shown no more precisely than this.
    """

    duration_ns: int
    resolution_ns: int

    def seconds(self, t_ns: pl.Series) -> list[float]:
        """Convert ns since the start of the connection to seconds, rounded to the clock's resolution."""
        if self.resolution_ns < _FINE_CLOCK_NS:
            return [time_ns / numbers.NS_PER_S for time_ns in t_ns.to_list()]
        return [round(time_ns / _NS_PER_US) / _US_PER_S for time_ns in t_ns.to_list()]

    def axis(self) -> dict[str, Any]:
        """Return the layout of the time axis."""
        whole_s = max(self.duration_ns, 1000) / numbers.NS_PER_S
        margin_s = whole_s * 0.015
        short = whole_s < 1
        return {
            "title": {"text": "seconds since the connection's first segment"},
            "range": [-margin_s, whole_s + margin_s],
            "tickformat": "~s" if short else "",
            "ticksuffix": "s" if short else "",
        }


CAUSE_COLOURS = {cause: causes.OURS[cause].colour for cause in schema.CAUSES}
"""Cause → its colour in figures and in bars. A pale colour means that TCP delays no data."""

CAUSE_PATTERNS = {cause: causes.OURS[cause].pattern for cause in schema.CAUSES}
"""Cause → Plotly's name of its pattern. Causes whose colours are hard to distinguish have different patterns."""

_BAND_HEIGHT = 0.035
"""Height of a band, as a share of the figure's height."""

SHADE = 0.16
"""Opacity of a band over the whole height."""


def ledger(bands: Sequence[Band]) -> list[dict[str, Any]]:
    """Draw the ledger as a strip of bars, one trace per cause, on a second y axis. The page puts the strip along the bottom of a figure."""
    return [_strip(cause, [band for band in bands if band["cause"] == cause]) for cause in dict.fromkeys(band["cause"] for band in bands)]


def _strip(cause: str, bands: Sequence[Band]) -> dict[str, Any]:
    lengths_ns = [band["end_ns"] - band["start_ns"] for band in bands]
    pattern = {"shape": CAUSE_PATTERNS[cause], "fgcolor": "rgba(255,255,255,0.35)", "fillmode": "overlay", "size": 6, "solidity": 0.25}
    return {
        "type": "bar",
        "name": cause,
        "x": [round(band["start_ns"] / numbers.NS_PER_S, 9) for band in bands],
        "width": [round(length_ns / numbers.NS_PER_S, 9) for length_ns in lengths_ns],
        "y": [1] * len(bands),
        "offset": 0,
        "yaxis": "y2",
        "marker": {"color": CAUSE_COLOURS[cause], "pattern": pattern, "line": {"width": 0}},
        "customdata": [numbers.duration(length_ns) for length_ns in lengths_ns],
        "hovertemplate": f"<b>{cause}</b> for %{{customdata}}<br>from %{{x:.6f}} s<br>{schema.CAUSES[cause]}<extra></extra>",
        "showlegend": False,
    }


STRIP = 0.055
"""Height of the ledger strip, as a share of the figure's height. `figures.js` has the same value."""


def on_foot(figure: Figure, strip: Sequence[dict[str, Any]]) -> Figure:
    """Return a figure with the strip of `ledger` along its bottom, for use outside of our pages. In our pages, a script adds the strip."""
    if not strip:
        return figure
    layout = figure["layout"]
    axes = {
        "xaxis": {**layout["xaxis"], "anchor": "y2"},
        "yaxis": {**layout["yaxis"], "domain": [STRIP * 1.6, 1]},
        "yaxis2": {"domain": [0, STRIP], "range": [0, 1], "fixedrange": True, "visible": False},
    }
    return {"data": [*figure["data"], *strip], "layout": {**layout, **axes, "barmode": "overlay"}}


def time_sequence(direction: Direction, frame: Frame, bands: Sequence[Band] = ()) -> Figure:
    """Draw the time-sequence graph: data segments from first to last byte, the receiver's ACKs and window, and marks of special segments.

    Args:
        direction: the series to draw.
        frame: the time axis.
        bands: the longest waits with their causes, drawn along the lower edge.
    """
    traces = [
        _line(direction.lines["window_edge"], frame, "window (right edge)", AMBER, dash="dot", backdrop=1.5),
        _line(direction.lines["acked"], frame, "acknowledged", GREEN),
        _bursts(direction, frame),
        *(_mark(name, direction, frame) for name in direction.marks),
    ]
    figure = _figure(traces, frame, {"title": {"text": schema.Unit.OFFSET.value}, "tickformat": "~s", "ticksuffix": "B"})
    figure["layout"]["shapes"] = [_band(band) for band in bands]
    return figure


def _band(band: Band) -> dict[str, Any]:
    span = {"x0": band["start_ns"] / numbers.NS_PER_S, "x1": band["end_ns"] / numbers.NS_PER_S, "y0": 0, "y1": _BAND_HEIGHT}
    look = {"fillcolor": CAUSE_COLOURS[band["cause"]], "line": {"width": 0}, "layer": "above"}
    return {"type": "rect", "xref": "x", "yref": "paper", **span, **look}


def shade(band: Band) -> dict[str, Any]:
    """Draw a translucent band over the whole height of the figure."""
    return {**_band(band), "y1": 1, "opacity": SHADE, "layer": "below"}


def rings(rows: pl.DataFrame, frame: Frame) -> dict[str, Any]:
    """Draw a ring around each of these segments (rows of `engine.figures.Tracker`)."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "frames that prove the finding",
        "marker": {"symbol": "circle-open", "size": 15, "color": PURPLE, "line": {"width": 2, "color": PURPLE}},
        "x": frame.seconds(rows["t_ns"]),
        "y": rows.select(_offset()).to_series().to_list(),
        "customdata": list(zip(rows["frame"].to_list(), rows["payload_bytes"].to_list(), strict=True)),
        "hovertemplate": f"proves the finding<br>{_MARK_HOVER}",
    }


def named_frame(number: int, x: float, y: int) -> dict[str, Any]:
    """Return an annotation with a frame's number, beside the ring of the frame."""
    look = {"showarrow": False, "xanchor": "right", "xshift": -7, "yshift": 12, "font": {"size": 11}}
    return {"x": x, "y": y, "text": f"frame {number}", **look}


def _offset() -> pl.Expr:
    """Return the position of each segment on the sequence axis: the end of its data if the sender sent it, else its ACK number."""
    sent = pl.when(pl.col("mine")).then(pl.col("seq") + pl.col("payload_bytes")).otherwise(pl.col("ack"))
    return pl.coalesce(sent, "acked", "sent", pl.lit(0))


def flight(lines: Mapping[str, pl.DataFrame], frame: Frame, estimated: Estimate | None = None) -> Figure:
    """Draw the bytes in flight, the receiver's window, and the congestion window and slow-start threshold if they were estimated."""
    traces = [
        _line(lines["offered"], frame, "window offered", AMBER, dash="dot", backdrop=3.0 if estimated is None else 1.3),
        *([] if estimated is None else [_line(estimated.window, frame, "congestion window, estimated", GREEN, width=4)]),
        _line(lines["flight"], frame, "bytes in flight", BLUE),
        *([] if estimated is None else [_line(estimated.threshold, frame, "slow-start threshold, estimated", PURPLE, dash="dash")]),
    ]
    return _figure(traces, frame, {"title": {"text": "bytes in flight"}, "tickformat": "~s", "ticksuffix": "B", "rangemode": "tozero"})


def round_trips(direction: Direction, frame: Frame) -> Figure:
    """Draw the RTT samples by Karn's rule and, in the background, the age of the data that each ACK acknowledges."""
    traces = [
        _samples(direction.lines["ack_lag"], frame, "ACK lag", {"symbol": "circle-open", "color": GREY, "opacity": 0.5}, larger=3),
        _samples(direction.lines["rtt"], frame, "round-trip time", {"symbol": "circle", "color": BLUE}),
    ]
    return _figure(traces, frame, {"title": {"text": "round-trip time"}, "tickformat": "~s", "ticksuffix": "s", "rangemode": "tozero"})


def segment_sizes(direction: Direction, frame: Frame, full_bytes: int | None) -> Figure:
    """Draw the payload of each data segment, with a dotted line at the size of a full segment, if known."""
    points = direction.lines["payload"]
    if points.is_empty():
        return _figure([], frame, {})
    size = 5 if points.height <= _FEW_POINTS else 3
    trace = {
        "type": "scatter",
        "mode": "markers",
        "name": "payload of a segment",
        "marker": {"symbol": "circle", "color": BLUE, "size": size},
        "x": frame.seconds(points["t_ns"]),
        "y": points["y"].to_list(),
        "customdata": points["frame"].to_list(),
        "hovertemplate": _BYTES_HOVER,
    }
    ends = [0.0, max(frame.duration_ns, 1000) / numbers.NS_PER_S]
    full = {
        "type": "scatter",
        "mode": "lines",
        "name": f"full segment, {full_bytes:,} bytes" if full_bytes else "",
        "line": {"color": AMBER, "width": 1.5, "dash": "dot"},
        "x": ends,
        "y": [full_bytes, full_bytes],
        "hoverinfo": "skip",
    }
    axis = {"title": {"text": "payload of a segment"}, "tickformat": "~s", "ticksuffix": "B", "rangemode": "tozero"}
    return _figure([full if full_bytes else None, trace], frame, axis)


def throughput(directions: dict[str, Direction], frame: Frame, bin_ns: int, window_ns: tuple[int, int] | None = None) -> Figure:
    """Draw the new payload per time bin and direction, as a rate. The keys of `directions` are the names of the traces.

    With `window_ns`, only the bins within this window are drawn.
    """
    looks = ((BLUE, "solid"), (PURPLE, "dash"))
    traces = [
        _rate(name, direction, bin_ns, window_ns or (0, max(frame.duration_ns, 0)), colour, dash, is_all=window_ns is None)
        for (name, direction), (colour, dash) in zip(directions.items(), looks, strict=False)
    ]
    title = f"new payload per {numbers.duration(bin_ns)}"
    return _figure(traces, frame, {"title": {"text": title}, "tickformat": "~s", "ticksuffix": "b/s", "rangemode": "tozero"})


def _figure(traces: Sequence[dict[str, Any] | None], frame: Frame, y_axis: dict[str, Any]) -> Figure:
    return {
        "data": [trace for trace in traces if trace],
        "layout": {"xaxis": frame.axis(), "yaxis": y_axis, "hovermode": "closest", "dragmode": "zoom"},
    }


def _line(
    points: pl.DataFrame, frame: Frame, name: str, colour: str, dash: str = "solid", width: float = 1.5, backdrop: float | None = None
) -> dict[str, Any] | None:
    """Draw a step line: each value holds until the next value.

    With `backdrop`, the line is background: the page cuts it at `backdrop` times the height of the other lines, so that it does not
    compress them.
    """
    if points.is_empty():
        return None
    return {
        **({"meta": {"backdrop": backdrop}} if backdrop else {}),
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "line": {"shape": "hv", "color": colour, "width": width, "dash": dash},
        "x": frame.seconds(points["t_ns"]),
        "y": points["y"].to_list(),
        "customdata": points["frame"].to_list(),
        "hovertemplate": _BYTES_HOVER,
    }


def _samples(points: pl.DataFrame, frame: Frame, name: str, marker: dict[str, Any], larger: int = 0) -> dict[str, Any] | None:
    if points.is_empty():
        return None
    size = (5 if points.height <= _FEW_POINTS else 3) + larger
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "marker": {**marker, "size": size},
        "x": frame.seconds(points["t_ns"]),
        "y": (points["y"].cast(float) / numbers.NS_PER_S).to_list(),
        "customdata": points["frame"].to_list(),
        "hovertemplate": _TIME_HOVER,
    }


def _bursts(direction: Direction, frame: Frame) -> dict[str, Any] | None:
    """Draw one stroke per segment, from its first to its last byte, or one stroke per run of merged segments."""
    bursts = direction.bursts
    if bursts.is_empty():
        return None
    details = list(zip(*(bursts[name].to_list() for name in ("frame", "frame_end", "segments", "payload_bytes")), strict=True))
    return {
        "type": "scatter",
        "mode": "lines+markers" if bursts.height <= _FEW_POINTS else "lines",
        "marker": {"symbol": "line-ew-open", "size": 6, "color": BLUE},
        "name": "data (runs of segments)" if direction.merged else "data",
        "connectgaps": False,
        "line": {"color": BLUE, "width": 2 if direction.merged or bursts.height <= _FEW_POINTS else 3},
        "x": strokes(frame.seconds(bursts["t_ns"]), frame.seconds(bursts["t_end_ns"])),
        "y": strokes(bursts["low"].to_list(), bursts["high"].to_list()),
        "customdata": strokes(details, details),
        "hovertemplate": _MERGED_HOVER if direction.merged else _SINGLE_HOVER,
    }


def strokes(starts: list[Any], ends: list[Any]) -> list[Any]:
    """Interleave starts, ends and None: `start, end, None, start, end, None, …`. None separates the strokes."""
    return [value for start, end in zip(starts, ends, strict=True) for value in (start, end, None)]


def _mark(name: str, direction: Direction, frame: Frame) -> dict[str, Any]:
    """Draw one kind of mark: a symbol at the first byte of each segment, and a stroke over its bytes."""
    mark, points, count = MARKS[name], direction.marks[name], direction.mark_counts[name]
    shown = f"{count:,}" if count == points.height else f"{points.height:,} of {count:,}"
    payload = points["payload_bytes"].to_list()
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": f"{mark.label} ({shown})",
        "marker": {"symbol": mark.symbol, "color": mark.colour, "size": mark.size, "line": {"width": 1.5, "color": mark.colour}},
        "x": frame.seconds(points["t_ns"]),
        "y": points["low"].to_list(),
        "customdata": list(zip(points["frame"].to_list(), payload, strict=True)),
        "hovertemplate": f"{mark.label}<br>{_MARK_HOVER}",
    }
    if any(payload) and name not in {"zero_window", "duplicate_ack", "fin"}:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": payload,
            "arrayminus": [0] * len(payload),
            "color": mark.colour,
            "thickness": 1.5,
            "width": 0,
        }
    return trace


def _rate(
    name: str, direction: Direction, bin_ns: int, window_ns: tuple[int, int], colour: str, dash: str, *, is_all: bool
) -> dict[str, Any]:
    """Draw the throughput of every bin of a window, including empty bins.

    If the window is the whole connection (`is_all`), data before or after the window counts in the first or last bin. In a smaller window,
    incomplete bins at the edges are left out, because only a part of their data is known.
    """
    first = window_ns[0] // bin_ns if is_all else -(-window_ns[0] // bin_ns)
    bins = window_ns[1] // bin_ns + 1 - first if is_all else max(window_ns[1] // bin_ns - first, 0)
    totals = [0] * (bins + 1)
    for t_ns, unique_bytes in direction.throughput.iter_rows():
        place = t_ns // bin_ns - first
        if is_all:
            place = min(max(place, 0), bins - 1)
        if 0 <= place < bins:
            totals[place] += unique_bytes
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "line": {"shape": "hv", "color": colour, "width": 1.5, "dash": dash},
        "x": [(first + place) * bin_ns / numbers.NS_PER_S for place in range(bins + 1)],
        "y": [round(total * 8 * (numbers.NS_PER_S / bin_ns)) for total in totals],
        "hovertemplate": f"{_RATE_HOVER}, {numbers.duration(bin_ns)} long",
    }
