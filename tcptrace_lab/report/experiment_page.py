"""Writes the page of an experiment: its question and claims, figures with confidence intervals, and the time by cause at each point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.process.output import opened
from tcptrace_lab.report.figures import plots
from tcptrace_lab.report.render import page
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_COLOURS = (plots.BLUE, plots.RED, plots.GREEN, plots.PURPLE, plots.AMBER, plots.GREY)
_DASHES = ("solid", "dash", "dot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star")
_SCALES = {"duration": 1e-9, "rate": 1.0, "share": 1.0, "ratio": 1.0}
"""Kind of number → factor that converts its values to the unit of an axis."""
_AXES = {
    "duration": {"tickformat": "~s", "ticksuffix": "s"},
    "rate": {"tickformat": "~s", "ticksuffix": "b/s"},
    "share": {"tickformat": ".0%"},
    "ratio": {"tickformat": "~s"},
}

_MAX_TICKS = 12
"""Maximum number of a setting's values for which each value is a tick on the axis."""
_MIN_SHARE = 0.005
"""Minimum share of a bar for a part that is shown."""


def write_report(results: Mapping[str, Any], path: str) -> None:
    """Write the page of an experiment's results (`lab.results.document`) to `path`, completely or not at all.

    Raises:
        OutputUnwritable: the disk is full, or permission is denied.
    """
    shown = data(results)
    text = page("lab.html.j2", figures=any(one["figure"] for one in shown["drawn"]), **shown)
    with opened(path) as stream:
        stream.write(text.encode("utf-8"))


def data(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of the page, as plain values."""
    experiment = results["experiment"]
    figures = [figure for asked in experiment["figures"] for figure in _figures(asked, results)]
    shown = [name for name in results["measures"] if any(name in point["measures"] for point in results["points"])]
    return {
        "results": results,
        "experiment": experiment,
        "drawn": figures,
        "columns": [{"label": _short(name), "meaning": ""} for name in experiment["sweep"]]
        + [{"label": name, "meaning": results["measures"][name]["meaning"]} for name in shown],
        "rows": [_row(point, list(experiment["sweep"]), shown, results["measures"]) for point in results["points"]],
        "transfers": sum(point["runs"] for point in results["points"]),
        "failures": [
            {"label": point["label"], "what": what, "times": times}
            for point in results["points"]
            for what, times in point["failures"].items()
        ],
    }


def _row(point: Mapping[str, Any], swept: Sequence[str], shown: Sequence[str], measures: Mapping[str, Any]) -> dict[str, Any]:
    cells = [{"text": point["settings"][name]["text"] if name in point["settings"] else "", "exact": ""} for name in swept]
    cells += [_cell(point["measures"].get(name), measures[name]["kind"]) for name in shown]
    causes = sorted(point["cause_shares"].items(), key=lambda item: -item[1])
    return {
        "cells": cells,
        "resent": point["retransmitted_segments"],
        "findings": ", ".join(f"{name} ({times} of {point['runs']})" for name, times in sorted(point["findings"].items())),
        "parts": [{"cause": cause, "share": share} for cause, share in causes if share >= _MIN_SHARE],
    }


def mean_text(measure: Mapping[str, Any], kind: str) -> str:
    """Return a mean as text: `8.31 Mb/s ± 0.2 Mb/s`, or for two transfers `8 Mb/s to 8.5 Mb/s`."""
    if measure["ci95_half_width"] is None and measure["min"] < measure["max"]:
        return f"{format_value(measure['min'], kind)} to {format_value(measure['max'], kind)}"
    return format_value(measure["mean"], kind) + (
        "" if measure["ci95_half_width"] is None else f" ± {format_value(measure['ci95_half_width'], kind)}"
    )


def _cell(measure: Mapping[str, Any] | None, kind: str) -> dict[str, str]:
    """Return the text of a cell, such as `8.31 Mb/s ± 0.2 Mb/s`, and the exact values for its tooltip."""
    if measure is None:
        return {"text": numbers.UNKNOWN, "exact": "unknown"}
    span = f"{measure['transfers']} transfers, from {format_value(measure['min'], kind)} to {format_value(measure['max'], kind)}"
    return {"text": mean_text(measure, kind), "exact": span}


def format_value(value: float, kind: str) -> str:
    """Return a mean with its unit."""
    if kind == "duration":
        return numbers.duration(round(value))
    if kind == "rate":
        return numbers.rate(value)
    return numbers.share(value) if kind == "share" else numbers.formatted(value, "ratio")[0]


def _figures(asked: Mapping[str, Any], results: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    measure = results["measures"][asked["measure"]]
    points = [point for point in results["points"] if asked["measure"] in point["measures"] and asked["x"] in point["settings"]]
    if not points:
        return
    over = _short(asked["x"])
    if not asked["y"]:
        title = f"{asked['measure'].capitalize()} by {over}"
        yield {
            "title": title,
            "note": measure["meaning"],
            "alt": f"{title}, with 95% confidence intervals",
            "figure": _lines(asked, points, measure["kind"]),
        }
        return
    for label, members in _apart(points, (asked["x"], asked["y"])).items():
        title = f"{asked['measure'].capitalize()} by {over} and {_short(asked['y'])}" + (f": {label}" if label else "")
        yield {"title": title, "note": measure["meaning"], "alt": title, "figure": None, "grid": _grid(asked, members, measure)}


def _short(name: str) -> str:
    """Return the short name of a setting: `transfer.write` → write; `sockets.send_buffer` → send buffer."""
    return name.partition(".")[2].replace("_", " ")


def _apart(points: Sequence[Mapping[str, Any]], without: Sequence[str]) -> dict[str, list[Mapping[str, Any]]]:
    """Group the points by the values of all settings that are not in `without`. The keys are these values as text."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for point in points:
        words = ", ".join(_worded(name, value["text"]) for name, value in point["settings"].items() if name not in without)
        found.setdefault(words, []).append(point)
    return found


def _worded(name: str, words: str) -> str:
    """Return a setting's value as text. A number is preceded by the setting's name."""
    return words if name in {"transfer.kind", "transfer.method", "path.medium"} else f"{_short(name)} {words}"


def _lines(asked: Mapping[str, Any], points: Sequence[Mapping[str, Any]], kind: str) -> plots.Figure:
    """Draw one line with 95% confidence intervals for each combination of the other settings."""
    scale = _SCALES[kind]
    traces = []
    for index, (label, members) in enumerate(_apart(points, (asked["x"],)).items()):
        means = [point["measures"][asked["measure"]] for point in members]
        colour = _COLOURS[index % len(_COLOURS)]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": label or asked["measure"],
                "line": {"color": colour, "width": 1.5, "dash": _DASHES[index // len(_COLOURS) % len(_DASHES)]},
                "marker": {"color": colour, "symbol": _SYMBOLS[index % len(_SYMBOLS)], "size": 7},
                "x": [_place(point["settings"][asked["x"]]) for point in members],
                "y": [mean["mean"] * scale for mean in means],
                "error_y": {
                    "type": "data",
                    "array": [(mean["ci95_half_width"] or 0) * scale for mean in means],
                    "color": colour,
                    "thickness": 1.2,
                },
                "customdata": [[_cell(mean, kind)["text"], mean["transfers"]] for mean in means],
                "hovertemplate": "%{x}: %{customdata[0]} (%{customdata[1]})<extra>%{fullData.name}</extra>",
            }
        )
    numeric = all(isinstance(place, (int, float)) for trace in traces for place in trace["x"])
    x_axis: plots.Figure = {
        "title": {"text": _short(asked["x"])},
        "type": "log" if asked["log_x"] and numeric else "-" if numeric else "category",
    }
    ticks = {_place(point["settings"][asked["x"]]): point["settings"][asked["x"]]["text"] for point in points}
    if numeric and len(ticks) <= _MAX_TICKS:
        x_axis |= {"tickvals": list(ticks), "ticktext": list(ticks.values())}
    y_axis = {"title": {"text": asked["measure"]}, **_AXES[kind], **({"type": "log"} if asked["log_y"] else {"rangemode": "tozero"})}
    return {"data": traces, "layout": {"xaxis": x_axis, "yaxis": y_axis, "hovermode": "closest", "dragmode": "zoom"}}


def _place(setting: Mapping[str, Any]) -> Any:  # noqa: ANN401  (an axis has numbers or words)
    value = setting["value"]
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else setting["text"]


def _grid(asked: Mapping[str, Any], points: Sequence[Mapping[str, Any]], measure: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with one setting across and another down.

    A cell has the mean, its interval (tooltip), and its rank between best and worst.
    """
    across = list(dict.fromkeys(point["settings"][asked["x"]]["text"] for point in points))
    down = list(dict.fromkeys(point["settings"][asked["y"]]["text"] for point in points))
    found = {
        (point["settings"][asked["y"]]["text"], point["settings"][asked["x"]]["text"]): point["measures"][asked["measure"]]
        for point in points
    }
    means = [one["mean"] for one in found.values()]
    best, worst = (max(means), min(means)) if measure["kind"] == "rate" else (min(means), max(means))
    rows = []
    for row in down:
        cells = []
        for column in across:
            one, share = found.get((row, column)), 0.0
            if one is not None:
                share = (one["mean"] - best) / (worst - best) if worst != best else 0.0
            cell = _cell(one, measure["kind"])
            cells.append(
                {
                    "text": numbers.UNKNOWN if one is None else format_value(one["mean"], measure["kind"]),
                    "exact": cell["text"],
                    "share": share,
                }
            )
        rows.append({"head": row, "cells": cells})
    return {"corner": f"{_short(asked['y'])} ↓ {_short(asked['x'])} →", "across": across, "rows": rows}
