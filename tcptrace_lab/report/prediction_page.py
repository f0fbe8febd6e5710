"""Writes the page of a prediction: the message sizes that stall, and a table with the share of such sizes per pair of buffer sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.messages.prediction import grid_sign, lock_words
from tcptrace_lab.process.output import opened
from tcptrace_lab.report.figures import plots
from tcptrace_lab.report.parts import sizes
from tcptrace_lab.report.render import page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KIB = 1024


def write_page(document: Mapping[str, Any], path: str) -> None:
    """Write the page of a prediction (`prediction.document`) to `path`, completely or not at all.

    Raises:
        OutputUnwritable: the disk is full, or permission is denied.
    """
    table = grid(document["grid"]) if document["grid"] else None
    looks = {"ranges": ranges(document), "grid": table, "lock": lock_words(document["deadlock"])}
    text = page("predicted.html.j2", figures=True, prediction=document, looks=looks)
    with opened(path) as stream:
        stream.write(text.encode("utf-8"))


def ranges(document: Mapping[str, Any]) -> plots.Figure:
    """Draw a step line over message sizes: 1 if a size always stalls, 0.5 if the stall depends on timing.

    Measured slow ranges are shaded.
    """
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
    measured = (document["measured"] or {}).get("ranges") or []
    shades = [sizes.span(one["from_bytes"], one["to_bytes"], 0, 1, plots.AMBER, 0.18) for one in measured]
    traces = [trace, *([sizes.key("slow range, measured", plots.AMBER)] if measured else [])]
    return sizes.axes(traces, shades, (first, last), {"title": {"text": "stalls"}, **ticks})


def grid(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the table of buffer sizes, with one row per send buffer and one column per receive buffer.

    Returns:
        `receive` (names of the columns) and `rows`, each with `send` (its name) and `cells` (`share` of sizes that stall, `sign`).
    """
    buffers = list(dict.fromkeys(cell["send_buffer_bytes"] for cell in cells))
    count = len(buffers)
    rows = [cells[place * count : (place + 1) * count] for place in range(count)]
    shaded = [[{"share": cell["stalled_share"], "sign": grid_sign(cell)} for cell in row] for row in rows]
    return {
        "receive": [_size(value) for value in buffers],
        "rows": [{"send": _size(value), "cells": row} for value, row in zip(buffers, shaded, strict=True)],
    }


def _size(value_bytes: int) -> str:
    return f"{value_bytes // KIB}K" if value_bytes % KIB == 0 else f"{value_bytes:,}"
