"""A prediction as a page: the sizes that stall, and how many of them for each pair of buffers, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.output import opened
from tcptrace_lab.report import plots, sizes
from tcptrace_lab.report.render import page

if TYPE_CHECKING:
    from collections.abc import Mapping

KIB = 1024

_COLOURS = [[0, "#2f7fb8"], [0.5, "#f2e3b3"], [1, "#b3261e"]]
"""From no size that stalls to all of them; told apart without red and green."""


def write_page(document: Mapping[str, Any], path: str) -> None:
    """Write the page of a prediction (`prediction.document`) to `path`, whole or not at all.

    Raises:
        OutputUnwritable: no room, no rights.
    """
    looks = {"ranges": _ranges(document), "grid": _grid(document["grid"]) if document["grid"] else None}
    text = page("predicted.html.j2", figures=True, prediction=document, looks=looks)
    with opened(path) as stream:
        stream.write(text.encode("utf-8"))


def _ranges(document: Mapping[str, Any]) -> plots.Figure:
    """A step for each range: 1 where a size always stalls, a half where that depends."""
    heights = {"always": 1.0, "timing-dependent": 0.5}
    first, last = document["sizes"]["from_bytes"], document["sizes"]["to_bytes"]
    points: list[tuple[int, float]] = [(first, 0.0)]
    for one in document["ranges"]:
        points += [(one["from_bytes"], heights[one["stalls"]]), (one["to_bytes"] + 1, 0.0)]
    points.append((last, points[-1][1]))
    trace = {
        "type": "scatter",
        "mode": "lines",
        "name": "stalls",
        "line": {"shape": "hv", "color": plots.RED, "width": 1.5},
        "fill": "tozeroy",
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "hovertemplate": "from %{x:,} bytes<extra></extra>",
    }
    ticks = {"tickvals": [0, 0.5, 1], "ticktext": ["never", "depends", "always"]}
    return sizes.axes([trace], [], (first, last), {"title": {"text": "stalls"}, **ticks})


def _grid(cells: list[Mapping[str, Any]]) -> plots.Figure:
    """Send buffers upwards, receive buffers to the right; a cell says which share of the sizes always stalls."""
    buffers = list(dict.fromkeys(cell["send_buffer_bytes"] for cell in cells))
    count = len(buffers)
    rows = [cells[place * count : (place + 1) * count] for place in range(count)]
    heat = {
        "type": "heatmap",
        "name": "sizes that always stall",
        "x": list(range(count)),
        "y": list(range(count)),
        "z": [[round(cell["stalled_share"], 4) for cell in row] for row in rows],
        "zmin": 0,
        "zmax": 1,
        "colorscale": _COLOURS,
        "colorbar": {"tickformat": ".0%", "thickness": 14},
        "text": [[f"{cell['stalled_share']:.0%}{'!' if cell['deadlock_possible'] else ''}" for cell in row] for row in rows],
        "texttemplate": "%{text}" if count <= 12 else "",  # noqa: PLR2004  (text of a cell has room in so many)
        "customdata": [[[_size(cell["send_buffer_bytes"]), _size(cell["receive_buffer_bytes"])] for cell in row] for row in rows],
        "hovertemplate": "send %{customdata[0]}, receive %{customdata[1]}: %{text}<extra></extra>",
    }
    corners = {
        "type": "scatter",
        "mode": "markers",
        "showlegend": False,
        "marker": {"opacity": 0},
        "x": [-0.5, count - 0.5],
        "y": [-0.5, count - 0.5],
        "hoverinfo": "skip",
    }
    labels = {"tickvals": list(range(count)), "ticktext": [_size(value) for value in buffers]}
    return {
        "data": [heat, corners],
        "layout": {
            "xaxis": {"title": {"text": "receive buffer"}, "range": [-0.5, count - 0.5], **labels},
            "yaxis": {"title": {"text": "send buffer"}, **labels},
            "hovermode": "closest",
            "dragmode": False,
            "annotations": [],
        },
    }


def _size(value_bytes: int) -> str:
    return f"{value_bytes // KIB}K" if value_bytes % KIB == 0 else f"{value_bytes:,}"
