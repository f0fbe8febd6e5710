"""The table behind the list of connections: one row per connection, with the columns that people search, sort and filter by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.engine.spill import COMPRESSION
from tcptrace_lab.report.selection import PAYLOAD, RESENT
from tcptrace_lab.schema import CAUSES, SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FILE = "listing.parquet"

GROUP_ROWS = 16_384

CAUSE = pl.Enum(list(CAUSES))

SCHEMA: dict[str, pl.DataType] = {
    "id": pl.UInt32(),
    "client": pl.String(),
    "server": pl.String(),
    "client_addr": pl.String(),
    "client_port": pl.UInt16(),
    "server_addr": pl.String(),
    "server_port": pl.UInt16(),
    "label": pl.String(),
    "start_ns": pl.Int64(),
    "end_ns": pl.Int64(),
    "duration_ns": pl.Int64(),
    "active_ns": pl.Int64(),
    "client_bytes": pl.Int64(),
    "server_bytes": pl.Int64(),
    "bytes": pl.Int64(),
    "retransmitted": pl.Int64(),
    "rtt_min_ns": pl.Int64(),
    "dominant_cause": CAUSE,
    **{f"{cause}_ns": pl.Int64() for cause in CAUSES},
    "findings": pl.List(pl.String()),
    "cost_ns": pl.Int64(),
    "segments": pl.Int64(),
    "first_frame": pl.UInt64(),
    "last_frame": pl.UInt64(),
}
"""Columns. Times are since the first packet. The main direction of a connection is the direction with more payload. `*_bytes` is the
payload that a host sent, retransmits included. `CAUSE_ns` is the time of a cause in the main direction, and `active_ns` the duration of
the main direction without `idle`. `cost_ns` is the cost of the most expensive finding."""


def write(
    folder: Path,
    connections: pl.LazyFrame,
    first_ts_ns: int,
    labels: Mapping[int, str],
    findings: Sequence[tuple[int, str, int | None]],
) -> None:
    """Write the table.

    Args:
        folder: the capture's folder in the cache.
        connections: rows of `schema.CONNECTIONS` with the columns of `schema.ACCOUNTS`, by `conn`.
        first_ts_ns: time of the capture's first packet.
        labels: number of a connection → its purpose.
        findings: connection, id and cost of each finding on one connection, most expensive first.
    """
    named = _by_connection(labels, findings).lazy()
    listed = _listed(connections, first_ts_ns).join(named, on="id", how="left", maintain_order="left")
    rows = listed.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())
    rows.sink_parquet(folder / FILE, compression=COMPRESSION, row_group_size=GROUP_ROWS, engine="streaming")


def _by_connection(labels: Mapping[int, str], findings: Sequence[tuple[int, str, int | None]]) -> pl.DataFrame:
    """Return `id label findings cost_ns` of the connections that have a label or findings."""
    found: dict[int, list[str]] = {}
    costs: dict[int, int] = {}
    for conn, name, cost_ns in findings:
        if name not in found.setdefault(conn, []):
            found[conn].append(name)
        costs[conn] = max(costs.get(conn, 0), cost_ns or 0)
    conns = sorted({*found, *labels})
    data = {
        "id": conns,
        "label": [labels.get(conn) for conn in conns],
        "findings": [found.get(conn, []) for conn in conns],
        "cost_ns": [costs.get(conn) for conn in conns],
    }
    return pl.DataFrame(data, schema={name: SCHEMA[name] for name in data})


def _endpoint(side: str) -> pl.Expr:
    address, port = pl.col(f"{side}_addr"), pl.col(f"{side}_port").cast(pl.String)
    bracketed = pl.when(address.str.contains(":", literal=True)).then(pl.lit("[") + address + pl.lit("]")).otherwise(address)
    return bracketed + pl.lit(":") + port


def _rtt() -> pl.Expr:
    """Return the minimum RTT of the path, as `connection_table.path_rtt_ns` does; null if it is below the tick of the capture's clock."""
    halves = [pl.min_horizontal(f"{side}_rtt_min_ns", f"{other}_reaction_min_ns") for side, other in (tuple(SIDES), tuple(SIDES)[::-1])]
    rtt = halves[0] + halves[1]
    return pl.when(rtt >= pl.col("clock_tick_ns").fill_null(0)).then(rtt)


def _listed(rows: pl.LazyFrame, first_ts_ns: int) -> pl.LazyFrame:
    of_client = pl.col("client_payload_bytes") >= pl.col("server_payload_bytes")
    spent = (
        pl.when(of_client)
        .then(f"client_{cause.replace('-', '_')}_ns")
        .otherwise(f"server_{cause.replace('-', '_')}_ns")
        .alias(f"{cause}_ns")
        for cause in CAUSES
    )
    active = [f"{cause}_ns" for cause in CAUSES if cause != "idle"]
    listed = rows.select(
        pl.col("conn").alias("id"),
        _endpoint("client").alias("client"),
        _endpoint("server").alias("server"),
        *(f"{side}_{name}" for side in SIDES for name in ("addr", "port")),
        (pl.col("first_ts_ns") - first_ts_ns).alias("start_ns"),
        (pl.col("last_ts_ns") - first_ts_ns).alias("end_ns"),
        (pl.col("last_ts_ns") - pl.col("first_ts_ns")).alias("duration_ns"),
        *(pl.col(f"{side}_payload_bytes").alias(f"{side}_bytes") for side in SIDES),
        PAYLOAD.alias("bytes"),
        RESENT.alias("retransmitted"),
        _rtt().alias("rtt_min_ns"),
        (pl.col("client_segments") + pl.col("server_segments")).alias("segments"),
        "first_frame",
        "last_frame",
        *spent,
    )
    most = pl.max_horizontal(active)
    dominant = pl.coalesce(
        *(pl.when((pl.col(name) == most) & (most > 0)).then(pl.lit(name.removesuffix("_ns"))) for name in active),
        pl.when(pl.col("idle_ns") > 0).then(pl.lit("idle")),
    )
    return listed.with_columns(active_ns=pl.sum_horizontal(active), dominant_cause=dominant)
