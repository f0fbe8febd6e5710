"""Reduces one capture to the data that are compared: services with their figures and the time per cause, and findings.

A service is a server port. All connections to a port are assumed to do the same work, whatever their addresses are. Connections without
data or without timestamps are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcptrace_lab import verdict
from tcptrace_lab.comparison.figures import ANSWER_TIME, FIGURES, MESSAGE_TIME, Level, of_connections
from tcptrace_lab.comparison.t_test import MIN_SAMPLES, Sample
from tcptrace_lab.messages import messages
from tcptrace_lab.schema import CAUSES, SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.findings.finding import Finding

MAX_SERVICES = 100
"""Maximum number of services that are compared. Services with most payload are compared."""

LISTED_CONNECTIONS = 50
"""The connections of a service are shown side by side only up to this number."""

_TIMES_KNOWN = pl.col("first_ts_ns").is_not_null() & (pl.col("last_ts_ns") >= pl.col("first_ts_ns"))
_PAYLOAD = pl.sum_horizontal(*(pl.col(f"{side}_payload_bytes") for side in SIDES))


@dataclass(frozen=True, slots=True)
class Listed:
    """One connection: its number, its endpoints (address, port), and its duration."""

    conn: int
    client: tuple[str, int]
    server: tuple[str, int]
    duration_ns: int


@dataclass(frozen=True, slots=True)
class Service:
    """The connections to one port in one capture.

    Attributes:
        server_port: the port.
        connections: number of connections with data and timestamps.
        payload_bytes: payload of these connections in both directions.
        figures: index in `FIGURES` → sample, for figures with at least one value.
        ledger: (sender, cause) → sample of the nanoseconds per connection.
        life_ns: mean life of a connection.
        listed: all connections in order of time; empty if they are more than `LISTED_CONNECTIONS`.
    """

    server_port: int
    connections: int
    payload_bytes: int
    figures: Mapping[int, Sample]
    ledger: Mapping[tuple[str, str], Sample]
    life_ns: float
    listed: tuple[Listed, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A finding and its server port; the port is None if the finding concerns the whole capture."""

    finding: Finding
    server_port: int | None


@dataclass(frozen=True, slots=True)
class Run:
    """One capture, reduced.

    Attributes:
        name: `Analysis.name`.
        capture: the object `capture` of the analysis JSON.
        verdict: the verdict sentence.
        services: server port → service. Services with most payload come first.
        services_left_out: number of services beyond the `MAX_SERVICES` largest; they are not compared.
        connections_without_data: number of connections that are only counted.
        vantages: capture points of the compared connections.
        findings: findings, most expensive first.
    """

    name: str
    capture: Mapping[str, Any]
    verdict: str
    services: Mapping[int, Service]
    services_left_out: int
    connections_without_data: int
    vantages: tuple[str, ...]
    findings: tuple[Found, ...]


def of_analysis(analysis: Analysis) -> Run:
    """Reduce one capture. Its segments are read again to find the messages.

    Raises OutputUnwritable if temporary files do not fit.
    """
    ledger = [f"{side}_{cause.replace('-', '_')}_ns" for side in SIDES for cause in CAUSES]
    joined = analysis.connections.join(analysis.accounts.select("conn", *ledger), on="conn", how="left")
    rows = (
        joined.filter((_PAYLOAD > 0) & _TIMES_KNOWN)
        .select("conn", *_ends(), "first_ts_ns", "last_ts_ns", "vantage", *ledger, payload=_PAYLOAD, **of_connections())
        .collect()
    )
    total = analysis.connections.select(pl.len()).collect().item()
    ports = rows.group_by("server_port").agg(pl.col("payload").sum()).sort("payload", "server_port", descending=[True, False])
    kept = ports["server_port"].head(MAX_SERVICES).to_list()
    message_rows = _messages(analysis, rows)
    parts = {port: part.sort("first_ts_ns", "conn") for (port,), part in rows.partition_by("server_port", as_dict=True).items()}
    port_of = dict(
        analysis.connections.filter(pl.col("conn").is_in(_concerned(analysis))).select("conn", "server_port").collect().iter_rows()
    )
    return Run(
        name=analysis.name,
        capture=analysis.capture,
        verdict=verdict.sentence(analysis),
        services={port: _service(port, parts[port], message_rows.get(port)) for port in kept},
        services_left_out=ports.height - len(kept),
        connections_without_data=total - rows.height,
        vantages=tuple(rows["vantage"].cast(pl.String).unique().sort().to_list()),
        findings=tuple(Found(finding, None if finding.conn is None else port_of[finding.conn]) for finding in analysis.findings),
    )


def _ends() -> tuple[str, ...]:
    return tuple(f"{side}_{part}" for side in SIDES for part in ("addr", "port"))


def _concerned(analysis: Analysis) -> list[int]:
    return sorted({finding.conn for finding in analysis.findings if finding.conn is not None})


def _messages(analysis: Analysis, rows: pl.DataFrame) -> dict[int, pl.DataFrame]:
    """Return the durations of the complete messages of each server port, by direction and in order of time."""
    if rows.is_empty():
        return {}
    count = int(rows["conn"].max()) + 1  # type: ignore[arg-type]
    found = messages.messages(analysis.segments, analysis.notes, count).filter(pl.col("state") == "whole")
    times = found.select("conn", "from_client", "first_ts_ns", "transfer_ns", answer_ns=pl.col("answer_ts_ns") - pl.col("first_ts_ns"))
    with_port = times.collect().join(rows.select("conn", "server_port"), on="conn", how="inner")
    ordered = with_port.sort("server_port", "from_client", "first_ts_ns")
    return {port: part for (port,), part in ordered.partition_by("server_port", as_dict=True).items()}


def _service(port: int, rows: pl.DataFrame, message_rows: pl.DataFrame | None) -> Service:
    known = {place: own for place, own in _figures(rows, message_rows) if own.count}
    sums = {(side, cause): f"{side}_{cause.replace('-', '_')}_ns" for side in SIDES for cause in CAUSES}
    return Service(
        server_port=port,
        connections=rows.height,
        payload_bytes=int(rows["payload"].sum()),
        figures=known,
        ledger={key: sample(rows[name].drop_nulls().to_numpy()) for key, name in sums.items()},
        life_ns=float((rows["last_ts_ns"] - rows["first_ts_ns"]).mean()),  # type: ignore[arg-type]
        listed=tuple(map(_listed, rows.iter_rows(named=True))) if rows.height <= LISTED_CONNECTIONS else (),
    )


def _listed(row: dict[str, Any]) -> Listed:
    client, server = ((row[f"{side}_addr"], row[f"{side}_port"]) for side in SIDES)
    return Listed(row["conn"], client, server, row["last_ts_ns"] - row["first_ts_ns"])


def _figures(rows: pl.DataFrame, message_rows: pl.DataFrame | None) -> Iterator[tuple[int, Sample]]:
    columns = {MESSAGE_TIME: "transfer_ns", ANSWER_TIME: "answer_ns"}
    for place, figure in enumerate(FIGURES):
        if figure.within is Level.CONNECTIONS:
            yield place, sample(rows[str(place)].drop_nulls().to_numpy())
        elif message_rows is not None and figure.direction is not None:
            own = message_rows.filter(pl.col("from_client") == SIDES[figure.direction])
            yield place, sample(own[columns[figure.name]].drop_nulls().to_numpy())


def sample(values: NDArray[Any]) -> Sample:
    """Return the sample of values that are in order of time. Neighbouring values are possibly correlated.

    The effective number of values is that of a first-order autoregressive process, n (1 − r) / (1 + r), where n is the number of values and
    r is the lag-1 autocorrelation (Bayley and Hammersley, 1946). A negative r counts as 0. The effective number is at least 2.
    """
    count = len(values)
    numbers = values.astype(np.float64)
    mean = float(numbers.mean()) if count else None
    if count < MIN_SAMPLES:
        return Sample(count, mean, None, float(count))
    away = numbers - numbers.mean()
    square = float(away @ away)
    alike = max(float(away[1:] @ away[:-1]) / square, 0.0) if square > 0 else 0.0
    return Sample(count, mean, square / (count - 1), max(float(MIN_SAMPLES), count * (1 - alike) / (1 + alike)))
