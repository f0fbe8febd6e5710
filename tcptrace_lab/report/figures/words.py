"""Describes a figure in text for readers who cannot see it: the range, extremes and times of each trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.report.figures.plots import Figure


_COUNTED = re.compile(r"\([\d,]+( of [\d,]+)?\)$")
"""Pattern for the number of marks at the end of a trace's name."""


def figure(drawn: Figure) -> str:
    """Return one sentence per trace of a figure."""
    layout = drawn["layout"]
    across, up = (_unit(layout.get(axis, {})) for axis in ("xaxis", "yaxis"))
    return " ".join(words for trace in drawn["data"] if (words := _trace(trace, across, up)))


def ladder(drawn: Figure) -> str:
    """Return a text that lists the segments of a ladder in order, and the waits between them."""
    steps = [
        (y, f"{seconds:.6f} s {trace['name']}: {text}")
        for trace in drawn["data"]
        if "text" in trace
        for y, text, (_, _, seconds) in zip(trace["y"][1::4], trace["text"][1::4], trace["customdata"][1::4], strict=True)
    ]
    waits = [(note["y"], f"wait: {note['text']}") for note in drawn["layout"]["annotations"]]
    return "; ".join(words for _, words in sorted(steps + waits)) + "."


def _unit(axis: dict[str, Any]) -> Callable[[float], str]:
    """Return a function that formats the values of an axis. An axis without a suffix is in seconds."""
    named: dict[str, Callable[[float], str]] = {"B": lambda value: numbers.size(round(value)), "b/s": numbers.rate}
    return named.get(axis.get("ticksuffix", ""), numbers.duration_s)


def _trace(trace: dict[str, Any], across: Callable[[float], str], up: Callable[[float], str]) -> str:
    points = [(y, x) for x, y in zip(trace["x"], trace["y"], strict=True) if x is not None and y is not None]
    if not points or trace["type"] != "scatter":
        return ""
    name, (first, last) = trace["name"], (points[0][1], points[-1][1])
    if trace.get("hoverinfo") == "skip":
        return f"{name}."
    if _COUNTED.search(name):
        when = f"at {across(first)}" if first == last else f"from {across(first)} to {across(last)}"
        return f"{name}: {when}."
    low, high = min(points), max(points, key=lambda point: point[0])
    if low[0] == high[0]:
        return f"{name}: {up(low[0])}, from {across(first)} to {across(last)}."
    return f"{name}: from {up(low[0])} to {up(high[0])}, highest at {across(high[1])}, {up(points[-1][0])} at the end."
