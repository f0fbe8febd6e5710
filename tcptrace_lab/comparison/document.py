"""The published JSON of a comparison (`compare.schema.json` in the package). Unknown values are null."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcptrace_lab.comparison.figures import DIRECTION_KEYS, FIGURES
from tcptrace_lab.comparison.t_test import CONFIDENCE_LEVEL
from tcptrace_lab.comparison.texts import group_name, headline
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.comparison.comparison import Comparison
    from tcptrace_lab.comparison.findings import InGroup, Kind
    from tcptrace_lab.comparison.match import Lane
    from tcptrace_lab.comparison.run import Run
    from tcptrace_lab.comparison.significance import Change, Compared
    from tcptrace_lab.comparison.t_test import Sample

SCHEMA_VERSION = 2

_UNITS = {"duration": "s", "rate": "b/s", "share": "share"}


def document(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON values. Times are in seconds, rates are in bits per second, and shares are from 0 to 1."""
    return {
        "schema_version": SCHEMA_VERSION,
        "confidence_level": CONFIDENCE_LEVEL,
        "groups": [
            {
                "name": group_name(comparison, place),
                "captures": [_capture(run) for run in runs],
                "against_first": headline(comparison, place) if place else None,
            }
            for place, runs in enumerate(comparison.groups)
        ],
        "services": [_service(*parts) for parts in zip(comparison.lanes, comparison.figures, comparison.ledger, strict=True)],
        "unmatched": [
            {"group": one.group, "capture": one.capture, "server_port": one.server_port, "connections": one.connections}
            for one in comparison.unmatched
        ],
        "findings": [_kind(kind) for kind in comparison.findings],
    }


def _capture(run: Run) -> dict[str, Any]:
    capture = run.capture
    return {
        "path": capture["path"],
        "verdict": run.verdict,
        "duration_s": capture["duration_s"],
        "complete": capture["complete"],
        "quality": capture["quality"]["rating"],
        "connections": capture["connections"],
        "connections_without_data": run.connections_without_data,
        "services_left_out": run.services_left_out,
        "vantages": list(run.vantages),
    }


def _service(lane: Lane, figures: Sequence[Compared], ledger: Sequence[Compared]) -> dict[str, Any]:
    return {
        "server_ports": list(lane.server_ports),
        "matched_by": lane.matched_by,
        "connections": [[0 if service is None else service.connections for service in group] for group in lane.services],
        "figures": [_figure(one) for one in figures],
        "ledger": [_cause(one) for one in ledger],
        "paired_connections": _in_step(lane) if lane.in_step else None,
    }


def _figure(one: Compared) -> dict[str, Any]:
    figure = FIGURES[one.key]  # type: ignore[index]
    scale = NS_PER_S if figure.kind == "duration" else 1
    return {
        "name": figure.name,
        "direction": figure.direction and DIRECTION_KEYS[figure.direction],
        "unit": _UNITS[figure.kind],
        "less_is_better": figure.less_is_better,
        "sample_unit": one.level and str(one.level),
        "groups": [_sample(sample, scale) for sample in one.samples],
        "against_first": [_change(change, scale) for change in one.changes],
    }


def _cause(one: Compared) -> dict[str, Any]:
    side, cause = one.key  # type: ignore[misc]
    shares = zip(one.samples, one.shares, strict=True)
    return {
        "direction": DIRECTION_KEYS[side],
        "cause": cause,
        "sample_unit": one.level and str(one.level),
        "groups": [{**_sample(sample, NS_PER_S), "share": share} for sample, share in shares],
        "against_first": [_change(change, NS_PER_S) for change in one.changes],
    }


def _sample(sample: Sample, scale: float) -> dict[str, Any]:
    return {
        "samples": sample.count,
        "effective_samples": sample.effective_count,
        "mean": None if sample.mean is None else sample.mean / scale,
        "interval": None if sample.interval is None else [end / scale for end in sample.interval],
    }


def _change(change: Change, scale: float) -> dict[str, Any]:
    tested = change.tested
    return {
        "change": None if change.change is None else change.change / scale,
        "change_share": change.share,
        "verdict": str(change.verdict),
        "test": None
        if tested is None
        else {
            "method": str(change.method),
            "interval": [end / scale for end in tested.interval],
            "t": _finite(tested.t),
            "degrees_of_freedom": _finite(tested.degrees_of_freedom),
            "p": tested.p,
            "p_adjusted": change.p_adjusted,
        },
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _in_step(lane: Lane) -> list[list[list[dict[str, Any]]]]:
    """Return connections side by side: `result[order][group]` lists connection number `order` of each capture of the group."""
    count = max(len(service.listed) for group in lane.services for service in group if service is not None)
    return [
        [
            [
                {
                    "id": service.listed[order].conn,
                    **{
                        side: {"addr": end[0], "port": end[1]}
                        for side, end in (("client", service.listed[order].client), ("server", service.listed[order].server))
                    },
                    "duration_s": service.listed[order].duration_ns / NS_PER_S,
                }
                for service in group
                if service is not None
            ]
            for group in lane.services
        ]
        for order in range(count)
    ]


def _kind(kind: Kind) -> dict[str, Any]:
    return {
        "id": kind.id,
        "server_ports": list(kind.server_ports),
        "direction": kind.direction and DIRECTION_KEYS[kind.direction],
        "groups": [_in_group(group) for group in kind.groups],
        "against_first": list(kind.states),
    }


def _in_group(group: InGroup) -> dict[str, Any]:
    return {
        "captures": group.captures,
        "severity": None if group.severity is None else str(group.severity),
        "cost_s": None if group.cost_ns is None else group.cost_ns / NS_PER_S,
        "title": None if group.finding is None else group.finding.title,
    }
