"""The points of an experiment as a table in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from tcptrace_lab.cli.console import console
from tcptrace_lab.report.experiment_page import mean_text
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_POINTS = 40
"""Maximum number of points that are shown. The report has all points."""

_SHOWN = ("throughput", "latency", "lost")


def show(results: Mapping[str, Any]) -> None:
    """Print the table to stdout."""
    console().print(table(results))


def table(results: Mapping[str, Any]) -> Table:
    """Return a table with one row per point: its means, each ± half of the 95% confidence interval, and its main cause."""
    points = results["points"]
    measured = [name for name in _SHOWN if any(name in point["measures"] for point in points)]
    left = len(points) - MAX_POINTS
    shown = Table("point", *measured, "most time", box=None, caption=f"and {left} more points: see the report" if left > 0 else None)
    for point in points[:MAX_POINTS]:
        cells = [_mean(point["measures"].get(name), results["measures"][name]["kind"]) for name in measured]
        cause = max(point["cause_shares"].items(), key=lambda item: item[1], default=("", 0.0))
        failed = f" ({sum(point['failures'].values())} of {point['runs']} failed)" if point["failures"] else ""
        shown.add_row(printable(point["label"]) + failed, *cells, f"{cause[0]} {cause[1]:.0%}" if cause[0] else "")
    return shown


def _mean(measure: Mapping[str, Any] | None, kind: str) -> str:
    return "–" if measure is None else mean_text(measure, kind)
