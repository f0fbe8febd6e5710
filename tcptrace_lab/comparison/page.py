"""The HTML page of a comparison: verdict, figures and confidence intervals of each service, time by cause, and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.comparison import texts
from tcptrace_lab.process.output import opened
from tcptrace_lab.report.figures.plots import BLUE, GREEN, PURPLE, RED
from tcptrace_lab.report.render import page
from tcptrace_lab.schema import CAUSES, SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.comparison import Comparison
    from tcptrace_lab.comparison.significance import Compared
    from tcptrace_lab.comparison.t_test import Sample

SERVICES = 50
"""Maximum number of services that are shown. Services with most data are shown. The JSON contains all services."""

OPEN_SERVICES = 3
"""Number of services that are expanded. These are the services with most data; all others are collapsed."""

LISTED = 50
"""Maximum number of connections listed side by side."""

_COLOURS = (BLUE, RED, GREEN, PURPLE)
_MIN_SHARE = 0.005
"""Only parts of at least this share of a bar have a label."""


def write_page(comparison: Comparison, path: str, sentences: Sequence[str] = ()) -> None:
    """Write the page to `path`, completely or not at all.

    Args:
        comparison: the comparison to show.
        path: the output file.
        sentences: text below the heading. It states facts that the captures do not show, for example whether a replay reproduced a stall.

    Raises:
        OutputUnwritable: the disk is full, or permission is denied.
    """
    text = page("compared.html.j2", figures=False, compared=data(comparison) | {"said": list(sentences)})
    with opened(path) as stream:
        stream.write(text.encode("utf-8"))


def data(comparison: Comparison) -> dict[str, Any]:
    """Return the contents of the page as a plain dictionary."""
    later = range(1, len(comparison.groups))
    return {
        "headlines": [texts.headline(comparison, group) for group in later],
        "groups": [
            {
                "letter": texts.letter(place),
                "colour": _colour(place),
                "captures": [{"path": str(run.capture["path"]), "verdict": run.verdict} for run in runs],
            }
            for place, runs in enumerate(comparison.groups)
        ],
        "notes": texts.notes(comparison),
        "services": [_service(comparison, place) for place in range(min(len(comparison.lanes), SERVICES))],
        "services_total": len(comparison.lanes),
        "open": OPEN_SERVICES,
        "findings": [
            {
                "name": texts.kind_name(kind),
                "groups": [texts.in_group_words(group, len(runs)) for group, runs in zip(kind.groups, comparison.groups, strict=True)],
                "states": list(kind.states),
                "title": next(group.finding.title for group in kind.groups if group.finding is not None),
            }
            for kind in comparison.findings
        ],
        "methods": [f"{texts.letter(group)} against A: {' '.join(texts.method(comparison, group))}" for group in later],
    }


def _colour(group: int) -> str:
    return _COLOURS[group % len(_COLOURS)]


def _service(comparison: Comparison, place: int) -> dict[str, Any]:
    lane = comparison.lanes[place]
    return {
        "name": texts.service_name(lane),
        "connections": list(texts.connections_of(lane)),
        "figures": [_row(one) for one in comparison.figures[place] if any(sample.mean for sample in one.samples)],
        "ledger": [_row(one) for one in comparison.ledger[place]],
        "bars": _bars(comparison, place),
        "in_step": _in_step(comparison, place),
    }


def _row(one: Compared) -> dict[str, Any]:
    kind = texts.kind_of(one)
    shares = one.shares or (None,) * len(one.samples)
    return {
        "name": texts.figure_name(one),
        "cells": [
            {"text": texts.cell(sample, kind) + ("" if share is None else f" ({numbers.share(share)})"), "exact": _exact(sample, kind)}
            for sample, share in zip(one.samples, shares, strict=True)
        ],
        "changes": [
            {"text": texts.change_words(change, kind), "verdict": texts.verdict_words(change), "kind": str(change.verdict)}
            for change in one.changes
        ],
        "strip": _strip(one),
        "sampled": texts.sampled_words(one),
    }


def _exact(sample: Sample, kind: str) -> str:
    if sample.mean is None:
        return "unknown"
    unit, scale = {"duration": ("s", 1e9), "rate": ("b/s", 1.0), "share": ("", 1.0)}[kind]
    interval = "" if sample.interval is None else " from {:.9g} to {:.9g}".format(*(end / scale for end in sample.interval))
    return f"{sample.mean / scale:.9g} {unit}{interval}, {sample.count} samples"


def _strip(one: Compared) -> list[dict[str, Any]]:
    """Scale each group's mean and confidence interval to 0–100, for drawing. The list is empty if no group has a mean."""
    ends = [
        end
        for sample in one.samples
        if sample.mean is not None
        for end in (sample.interval or sample.range_of_two or (sample.mean, sample.mean))
    ]
    least, most = min(0.0, *ends, 0.0), max(0.0, *ends, 0.0)
    if most == least:
        return []
    scale = 100 / (most - least)
    marks = []
    for place, sample in enumerate(one.samples):
        if sample.mean is not None:
            low, high = sample.interval or sample.range_of_two or (sample.mean, sample.mean)
            mean, low, high = ((value - least) * scale for value in (sample.mean, low, high))
            marks.append({"group": place, "mean": mean, "low": low, "high": high, "colour": _colour(place)})
    return marks


def _bars(comparison: Comparison, place: int) -> list[dict[str, Any]]:
    """Return one bar of causes for each direction and group.

    The length of a bar is the mean active time of the connections, relative to the longest bar.
    """
    directions: list[dict[str, Any]] = []
    for side in SIDES:
        of_side = [one for one in comparison.ledger[place] if isinstance(one.key, tuple) and one.key[0] == side]
        causes = [one for one in of_side if one.key != (side, "idle")]
        means = [[(one.key[1], one.samples[group].mean or 0) for one in causes] for group in range(len(comparison.groups))]  # type: ignore[index]
        longest = max((sum(ns for _, ns in parts) for parts in means), default=0)
        if not longest:
            continue
        directions.append({"way": texts.ARROWS[side], "bars": []})
        for group, parts in enumerate(means):
            life_ns = sum(ns for _, ns in parts)
            if not life_ns:
                continue
            directions[-1]["bars"].append(
                {
                    "letter": texts.letter(group),
                    "life": numbers.duration(round(life_ns)),
                    "width": 100 * life_ns / longest,
                    "parts": [_part(cause, ns, life_ns) for cause, ns in sorted(parts, key=lambda part: -part[1]) if ns > 0],
                }
            )
    return directions


def _part(cause: str, ns: float, life_ns: float) -> dict[str, Any]:
    share = ns / life_ns
    return {"cause": cause, "means": CAUSES[cause], "share": share, "time": numbers.duration(round(ns)), "named": share >= _MIN_SHARE}


def _in_step(comparison: Comparison, place: int) -> list[dict[str, Any]]:
    lane = comparison.lanes[place]
    if not lane.in_step:
        return []
    services = [service for group in lane.services for service in group if service is not None]
    return [
        {
            "number": order + 1,
            "connections": [
                {"conn": listed.conn, "client": f"{listed.client[0]}:{listed.client[1]}", "time": numbers.duration(listed.duration_ns)}
                for listed in (service.listed[order] for service in services)
            ],
        }
        for order in range(min(len(services[0].listed), LISTED))
    ]
