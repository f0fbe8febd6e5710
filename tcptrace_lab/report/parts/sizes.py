"""Draws message time by message size. Measured slow ranges are shaded, and predicted slow ranges are drawn along the bottom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.report.figures import plots
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tcptrace_lab.messages.size_groups import GroupSizes
    from tcptrace_lab.report.data_types import SizeFigure

MAX_FIGURES = 4
"""Maximum number of groups with a figure, those with the most time in slow ranges first. 3,000 messages take about 30 kB of the report."""

FOOT = 0.04
"""Height of the predicted ranges along the bottom, as a share of the figure's height."""

_HOVER = "%{x:,} bytes<br>%{y:.4s}s, from frame %{customdata}"
_SHADE = {"always": 0.75, "timing-dependent": 0.35}
"""Kind of prediction → opacity of the size range with this prediction in the figure."""


def figures(groups: Sequence[GroupSizes]) -> list[SizeFigure]:
    """Return one figure per group with slow ranges, the most expensive group first."""
    return [_figure(group) for group in groups if group.measured][:MAX_FIGURES]


def _figure(group: GroupSizes) -> SizeFigure:
    settings = group.parameters
    slow_sizes = [
        f"{name} {numbers.size(value)}"
        for name, value in (
            ("full segment", settings.mss_bytes),
            ("send buffer", settings.send_buffer_bytes),
            ("receive buffer", settings.receive_buffer_bytes),
            ("writes of", settings.copy_bytes),
        )
        if value is not None
    ]
    return {
        "title": f"{group.name}, {'client → server' if group.from_client else 'server → client'}",
        "messages": group.messages,
        "ranges": [
            {
                "from_bytes": one.from_bytes,
                "to_bytes": one.to_bytes,
                "messages": one.messages,
                "stalled_share": one.stalled_share,
                "stalled_median_ns": one.stalled_median_ns,
                "normal_median_ns": one.normal_median_ns,
                "cause": cause,
            }
            for one, cause in zip(group.measured, group.causes, strict=True)
        ],
        "predicted": len(group.predicted),
        "known": slow_sizes,
        "assumed": list(settings.assumed.values()),
        "figure": _drawn(group),
    }


def _drawn(group: GroupSizes) -> plots.Figure:
    points = group.drawn
    last = int(points["payload_bytes"].cast(pl.Int64).to_list()[-1])
    traces = [
        _points(points.filter(~pl.col("stalled")), "not delayed", {"symbol": "circle", "color": plots.BLUE, "size": 5}),
        _points(points.filter("stalled"), "stalled", {"symbol": "x-thin-open", "color": plots.RED, "size": 8, "line": {"width": 1.5}}),
        key("slow range, measured", plots.AMBER),
        *([key("stalls predicted for the stack", plots.GREEN)] if group.predicted else []),
    ]
    shapes = [
        *(span(one.from_bytes, one.to_bytes, 0, 1, plots.AMBER, 0.18) for one in group.measured),
        *(span(one.from_bytes, one.to_bytes, 0, FOOT, plots.GREEN, _SHADE[str(one.stalls)]) for one in group.predicted),
    ]
    return axes(traces, shapes, (0, last), {"title": {"text": "first to last segment"}, "tickformat": "~s", "ticksuffix": "s"})


def axes(
    traces: Iterable[dict[str, Any] | None], shapes: list[dict[str, Any]], span: tuple[int, int], y_axis: Mapping[str, Any]
) -> plots.Figure:
    """Return a figure whose x axis is the message size."""
    margin = max((span[1] - span[0]) * 0.015, 1)
    x_axis = {"title": {"text": "bytes of the message"}, "range": [span[0] - margin, span[1] + margin], "tickformat": ",d"}
    return {
        "data": [trace for trace in traces if trace],
        "layout": {
            "xaxis": x_axis,
            "yaxis": {"rangemode": "tozero", **y_axis},
            "hovermode": "closest",
            "dragmode": "zoom",
            "shapes": shapes,
            "annotations": [],
        },
    }


def _points(rows: pl.DataFrame, name: str, marker: dict[str, Any]) -> dict[str, Any] | None:
    if rows.is_empty():
        return None
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name} ({rows.height:,})",
        "marker": marker,
        "x": rows["payload_bytes"].to_list(),
        "y": (rows["transfer_ns"] / numbers.NS_PER_S).round(9).to_list(),
        "customdata": rows["first_frame"].to_list(),
        "hovertemplate": _HOVER,
    }


def key(name: str, colour: str) -> dict[str, Any]:
    """Return an empty trace that serves as the legend entry of shapes, because Plotly gives shapes no legend entries."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "marker": {"symbol": "square", "color": colour, "size": 10, "opacity": 0.6},
        "x": [None],
        "y": [None],
        "hoverinfo": "skip",
    }


def span(low: int, high: int, foot: float, head: float, colour: str, opacity: float) -> dict[str, Any]:
    """Return a shape that covers a range of sizes. `foot` and `head` are its lower and upper edge, as shares of the figure's height."""
    look = {"fillcolor": colour, "opacity": opacity, "line": {"width": 0}, "layer": "below"}
    return {"type": "rect", "xref": "x", "yref": "paper", "x0": low - 0.5, "x1": high + 0.5, "y0": foot, "y1": head, **look}
