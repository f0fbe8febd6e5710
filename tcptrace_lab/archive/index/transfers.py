"""Lists the transfers of an archive, for its index and for comparisons.

A transfer is a direction of a connection that carried data or lost time. Each transfer has the main cause of its lost time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.schema import SIDES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

PAIR = ("client_addr", "server_addr", "server_port")
"""Columns that identify a host pair. Each connection has another client port, so this port is not included."""

MIN_SEGMENTS = 10
"""Minimum number of data segments for a rate. The initial window of RFC 6928 has as many segments (a heuristic)."""

BITS_PER_BYTE = 8

_KEY = ("capture", "conn", "from_client")


def transfers(tables: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Return all directions in an archive that carried data or lost time. A connection attempt without an answer only loses time.

    Args:
        tables: tables of the archive (`query.opened`).

    Returns:
        `capture conn from_client client_addr server_addr server_port client_port first_ts_ns active_ns payload_bytes data_segments rate_bps
        rtt_ns syn_ns resent_share fixable_ns cause cause_ns`, sorted by the first three columns. `rate_bps` is null below ten data
        segments. `rtt_ns` is the median. `syn_ns` is the time from SYN to SYN/ACK, once for each connection. `cause` has the largest part
        of the lost time.
    """
    connections = tables["connections"]
    sides = [connections.select(_side(side, from_client=from_client)) for side, from_client in SIDES.items()]
    lost = (
        tables["ledger_totals"]
        .filter(pl.col("is_fixable"))
        .sort(*_KEY, "cause_ns", "cause")
        .group_by(_KEY, maintain_order=True)
        .agg(fixable_ns=pl.col("cause_ns").sum(), cause=pl.col("cause").last(), cause_ns=pl.col("cause_ns").last())
    )
    idle = tables["ledger_totals"].filter(pl.col("cause") == "idle").select(*_KEY, idle_ns="cause_ns")
    joined = pl.concat(sides).join(lost, on=_KEY, how="left").join(idle, on=_KEY, how="left")
    active = pl.col("active_ns") - pl.col("idle_ns").fill_null(0)
    rows = joined.with_columns(pl.col("fixable_ns", "cause_ns").fill_null(0), active_ns=active).drop("idle_ns")
    return rows.filter((pl.col("payload_bytes") > 0) | (pl.col("fixable_ns") > 0)).sort(_KEY)


def _side(side: str, *, from_client: bool) -> list[pl.Expr]:
    sent_ns = pl.col(f"{side}_last_data_ts_ns") - pl.col(f"{side}_first_data_ts_ns")
    rate_bps = pl.col(f"{side}_unique_bytes") * BITS_PER_BYTE / (sent_ns / NS_PER_S)
    syn_ns = pl.col("syn_to_synack_ns")
    is_listed = (sent_ns > 0) & (pl.col(f"{side}_data_segments") >= MIN_SEGMENTS)
    return [
        pl.col("capture", "conn"),
        pl.lit(from_client).alias("from_client"),
        pl.col(*PAIR, "client_port", "first_ts_ns"),
        (pl.col("last_ts_ns") - pl.col("first_ts_ns")).alias("active_ns"),
        pl.col(f"{side}_unique_bytes").alias("payload_bytes"),
        pl.col(f"{side}_data_segments").alias("data_segments"),
        pl.when(is_listed).then(rate_bps).alias("rate_bps"),
        pl.col(f"{side}_rtt_p50_ns").alias("rtt_ns"),
        (syn_ns if from_client else pl.when(pl.col("client_payload_bytes") == 0).then(syn_ns)).alias("syn_ns"),
        pl.when(pl.col(f"{side}_payload_bytes") > 0)
        .then(pl.col(f"{side}_retransmitted_bytes") / pl.col(f"{side}_payload_bytes"))
        .alias("resent_share"),
    ]
