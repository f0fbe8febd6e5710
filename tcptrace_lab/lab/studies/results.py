"""The results of an experiment: a table with one row per transfer, and a document with mean and 95% confidence interval of each point."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.comparison.t_test import CONFIDENCE_LEVEL, of_numbers
from tcptrace_lab.lab.studies.capture_figures import CAUSE, CAUSE_AT_RECEIVER, column
from tcptrace_lab.lab.studies.experiment_keys import MEASURES
from tcptrace_lab.schema import CAUSES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.lab.studies.experiment_file import Declared, Point
    from tcptrace_lab.lab.studies.study import Run

SCHEMA_VERSION = 2
BITS_PER_BYTE = 8

_ROWS: Mapping[str, Any] = {
    "run": pl.Int64,
    "point": pl.Int64,
    "repetition": pl.Int64,
    "settings": pl.String,
    "captures": pl.String,
    "failure": pl.String,
    "client_port": pl.Int64,
    "elapsed_ns": pl.Int64,
    "payload_bytes": pl.Int64,
    "operations": pl.Int64,
    "throughput_bps": pl.Float64,
    "latency_ns": pl.Float64,
    "latency_max_ns": pl.Int64,
    "cpu_ns": pl.Int64,
    "connect_ns": pl.Float64,
    "request_ns": pl.Float64,
    "transfer_ns": pl.Float64,
    "lost_share": pl.Float64,
    "segments": pl.Int64,
    "retransmitted_segments": pl.Int64,
    "capture_bytes": pl.Int64,
    "capture_throughput_bps": pl.Float64,
    "findings": pl.List(pl.String),
    **{column(what, cause): pl.Int64 for what in (CAUSE, CAUSE_AT_RECEIVER) for cause in CAUSES},
}
"""Columns of a transfer: its identity, the measurements of its applications, and our analysis. Unknown values are null."""


def rows_of(runs: Sequence[Run], points: Sequence[Point], found: Mapping[int, Mapping[int, Mapping[str, Any]]]) -> pl.DataFrame:
    """Return one row per transfer. `found` contains the results of `capture_figures.figures_by_run`, by group and run."""
    rows = [_row(run, points[run.point]) | dict(found.get(run.group, {}).get(run.number, {})) for run in runs]
    empty = dict.fromkeys(_ROWS)
    return pl.DataFrame([{**empty, **row} for row in rows], schema=_ROWS)


def _row(run: Run, point: Point) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run": run.number,
        "point": run.point,
        "repetition": run.repetition,
        "settings": point.label,
        "captures": f"{run.group:03}",
    }
    measured = run.measured
    if measured is None:
        return {**row, "failure": run.failure}
    known = {
        "client_port": measured.port,
        "elapsed_ns": measured.elapsed_ns,
        "payload_bytes": measured.payload_bytes,
        "operations": len(measured.latencies_ns),
        "throughput_bps": measured.payload_bytes * BITS_PER_BYTE * NS_PER_S / measured.elapsed_ns if measured.elapsed_ns > 0 else None,
        "cpu_ns": measured.cpu_ns,
    }
    if measured.latencies_ns:
        known |= {"latency_ns": sum(measured.latencies_ns) / len(measured.latencies_ns), "latency_max_ns": max(measured.latencies_ns)}
    return {**row, **known, **measured.more}


def document(
    declared: Declared, points: Sequence[Point], rows: pl.DataFrame, environment: Mapping[str, Any], dropped: Mapping[str, int]
) -> dict[str, Any]:
    """Return the results as JSON values.

    They describe the experiment, its machine, and each point with its figures.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "experiment": {
            "name": declared.name,
            "title": declared.title or declared.name,
            "source": declared.source,
            "question": declared.question,
            "claims": list(declared.claims),
            "is_short": declared.is_short,
            "settings": {name: value.text for name, value in declared.settings.items()},
            "sweep": {name: [value.text for value in values] for name, values in declared.sweep.items()},
            "figures": [_figure(figure) for figure in declared.figures],
        },
        "environment": dict(environment),
        "confidence_level": CONFIDENCE_LEVEL,
        "measures": {name: {"kind": kind, "meaning": meaning} for name, (_, kind, meaning) in MEASURES.items()},
        "frames_not_captured": dict(dropped),
        "points": [_point(point, rows.filter(pl.col("point") == index)) for index, point in enumerate(points)],
    }


def _figure(figure: Any) -> dict[str, Any]:  # noqa: ANN401  (document.Figure, whose slots are its keys)
    return {name: getattr(figure, name) for name in figure.__slots__}


def _point(point: Point, rows: pl.DataFrame) -> dict[str, Any]:
    """Return the results of one point: means over its transfers, each with half the width of its confidence interval.

    The half width is null if there are fewer than three transfers.
    """
    good = rows.filter(pl.col("failure").is_null())
    measures = {name: found for name, (values, _, _) in MEASURES.items() if (found := _measure(good[values]))}
    ledger: dict[str, int] = {cause: sum(good[column(CAUSE, cause)].drop_nulls().to_list()) for cause in CAUSES}
    whole = sum(ledger.values())
    counted = Counter(name for names in good["findings"].to_list() for name in names or ())
    return {
        "label": point.label,
        "settings": {name: {"text": point.settings[name].text, "value": _plain(point.settings[name].value)} for name in point.swept},
        "runs": rows.height,
        "failures": Counter(rows["failure"].drop_nulls().to_list()),
        "measures": measures,
        "cause_shares": {cause: ns / whole for cause, ns in ledger.items() if ns} if whole else {},
        "findings": dict(counted),
        "retransmitted_segments": good["retransmitted_segments"].sum() if good["retransmitted_segments"].drop_nulls().len() else None,
    }


def _plain(value: Any) -> Any:  # noqa: ANN401
    return list(value) if isinstance(value, tuple) else value


def _measure(values: pl.Series) -> dict[str, Any] | None:
    known = values.drop_nulls().cast(pl.Float64).to_list()
    if not known:
        return None
    found = of_numbers(known)
    half = None if found.mean is None or found.interval is None else found.interval[1] - found.mean
    return {"transfers": len(known), "mean": found.mean, "ci95_half_width": half, "min": min(known), "max": max(known)}
