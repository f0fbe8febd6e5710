"""The published JSON of an analysis (`analysis.schema.json` beside this file), written in batches of connections and flows.

One Polars expression defines the JSON of a connection, and another that of a UDP flow. Polars converts one slice of rows at a time to text,
so that a capture with a million connections does not need a million dicts in memory. Unknown values are null.
"""

from __future__ import annotations

import io
import json
import os
from functools import cache
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.connections import ack_policy, capture_quality, loss_before_capture
from tcptrace_lab.engine import memory
from tcptrace_lab.engine.sorting import beside
from tcptrace_lab.ledger import snd_lim
from tcptrace_lab.schema import CAUSES, FLOW_DIRECTION_NAMES, MORE_STATISTICS_NAMES, SIDES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tcptrace_lab._core import Problem
    from tcptrace_lab.engine.segments import Tables
    from tcptrace_lab.findings.finding import Finding

SCHEMA_VERSION = 2

SLICE_CONNECTIONS = 4_096
"""Number of connections or UDP flows that are converted to text at a time. Their text takes about 10 MB."""

NS_PER_MS = 1e6
_S_DECIMALS, _MS_DECIMALS = 9, 6
"""Number of decimals for nanosecond resolution. Polars divides by a constant inexactly, by multiplying with its inverse. Rounding removes
the error."""

BITS_PER_BYTE = 8

_SHARE_DECIMALS = 3

_COUNTS = (
    "segments",
    "data_segments",
    "payload_bytes",
    "unique_bytes",
    "retransmitted_segments",
    "retransmitted_bytes",
    "spurious_retransmissions",
    "out_of_order_segments",
    "duplicate_acks",
    "zero_window_advertisements",
    "mss_bytes",
    "window_scale",
    "max_window_bytes",
    "max_in_flight_bytes",
)
_LINE_COSTS = ("full_segment_bytes", "header_bytes", "cells", "cell_payload_share", "best_payload_share")
_RATES = (
    "send_bps",
    "send_samples",
    "drain_bps",
    "drain_samples",
    "read_bps",
    "read_samples",
    "receive_bps",
    "ratio",
    "link_bps",
    "link_bound_bps",
    "bound_bps",
    "bound_by",
    "reached_share",
    "idle_share",
)
_BUFFERS = ("send_buffer_needed_bytes", "receive_buffer_needed_bytes", "window_segments", "window_full_share")
_RATES_BPS = frozenset(name for name in _RATES if name.endswith("_bps"))
_RATE_DECIMALS = 3

_BEHAVIOUR = (
    "wire_data_segments",
    "super_segments",
    "missing_segments",
    "initial_flight_bytes",
    "initial_flight_segments",
    "min_window_scale",
    "syn_options",
    "stack_guess",
)


def capture_object(path: str, tables: Tables, quality: capture_quality.CaptureQuality) -> dict[str, Any]:
    """Return the object `capture` of the JSON.

    Args:
        path: the path as the caller gave it. Bytes that are not UTF-8 are escaped.
        tables: the tables of the capture.
        quality: quality of the capture.
    """
    info = tables.info
    first_ns, last_ns = info["first_ts_ns"], info["last_ts_ns"]
    return {
        "path": _as_unicode(path),
        "format": info["format"],
        "link_types": [{"id": link["id"], "name": link["name"], "packets": link["packets"]} for link in info["link_types"]],
        "packets": info["packets"],
        "tcp_segments": info["tcp_segments"],
        "connections": info["connections"],
        "udp_datagrams": info["udp_datagrams"],
        "first_ts_ns": first_ns,
        "last_ts_ns": last_ns,
        "duration_s": None if first_ns is None or last_ns is None else (last_ns - first_ns) / NS_PER_S,
        "complete": tables.complete,
        "problems": [_problem(problem) for problem in tables.problems],
        "quality": quality.to_dict(info),
    }


def _as_unicode(path: str) -> str:
    r"""Escape the bytes of a name that are not UTF-8, because JSON text is Unicode: `latin-\xe9.pcap`."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _problem(problem: Problem) -> dict[str, Any]:
    times = "" if problem["count"] == 1 else f" ({problem['count']} times)"
    return {"what": problem["what"] + times, "frame": problem["frame"], "offset": problem["offset"]}


def write(
    stream: IO[bytes],
    capture: dict[str, Any],
    connections: pl.LazyFrame,
    accounts: pl.LazyFrame,
    flows: pl.LazyFrame,
    findings: Sequence[Finding],
    message_sizes: Sequence[dict[str, Any]] = (),
    verdict: Mapping[str, Any] | None = None,
    transactions: pl.DataFrame | None = None,
    progress: Callable[[int], None] | None = None,
    labels: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Write one JSON document and a newline.

    Args:
        stream: receives the bytes (UTF-8).
        capture: result of `capture_object`.
        connections: rows of `schema.CONNECTIONS`.
        accounts: rows of `schema.ACCOUNTS`.
        flows: rows of `schema.FLOWS`.
        findings: most expensive first.
        message_sizes: results of `GroupSizes.to_dict`.
        verdict: result of `Verdict.to_dict`; None is written as null.
        transactions: rows of `schema.TRANSACTIONS`.
        progress: called at intervals with the number of connections written so far.
        labels: number of a connection → its purpose.
    """
    stream.write(f'{{"schema_version": {SCHEMA_VERSION},\n"capture": {json.dumps(capture)},\n"verdict": '.encode())
    stream.write(json.dumps(verdict).encode() + b',\n"connections": [')
    known = pl.col("conn").replace_strict(list(labels), list(labels.values()), default=None, return_dtype=pl.String).alias("label")
    _write_items(stream, (rows.select(*_connection(), known) for rows in beside(connections, accounts, "conn")), progress)
    stream.write(b'],\n"message_sizes": [')
    stream.write(b",".join(b"\n" + json.dumps(sizes).encode() for sizes in message_sizes))
    stream.write(b'],\n"findings": [')
    stream.write(b",".join(b"\n" + json.dumps(finding.to_dict()).encode() for finding in findings))
    stream.write(b'],\n"transactions": [')
    if transactions is not None:
        _write_items(stream, iter([transactions.select(_transaction())]))
    stream.write(b'],\n"udp_flows": [')
    _write_items(stream, memory.batches(flows.select(_flow()), SLICE_CONNECTIONS))
    stream.write(b"]}\n")


def _write_items(stream: IO[bytes], items: Iterable[pl.DataFrame], progress: Callable[[int], None] | None = None) -> None:
    """Write rows as items of a JSON list, one per line, separated by commas."""
    separator, written = b"\n", 0
    for batch in items:
        for rows in batch.iter_slices(SLICE_CONNECTIONS):
            lines = io.BytesIO()
            rows.write_ndjson(lines)
            stream.write(separator + lines.getvalue().rstrip(b"\n").replace(b"\n", b",\n"))  # newlines inside strings are escaped
            separator = b",\n"
            written += rows.height
            if progress is not None:
                progress(written)


@cache
def _connection() -> list[pl.Expr]:
    """Return the JSON object of one connection: each expression has the name of its key."""
    handshake = {
        "seen": pl.col("syn_to_synack_ns").is_not_null(),
        "syn_to_synack_s": _seconds(pl.col("syn_to_synack_ns")),
        "synack_to_ack_s": _seconds(pl.col("synack_to_ack_ns")),
    }
    evidence = {
        "known_by": pl.col("vantage_known_by"),
        "confidence": pl.col("vantage_confidence"),
        "rtt_to_client_ms": _milliseconds(pl.col("rtt_to_client_ns")),
        "rtt_to_server_ms": _milliseconds(pl.col("rtt_to_server_ns")),
    }
    fields = {
        "id": pl.col("conn"),
        **_endpoints(),
        "first_frame": pl.col("first_frame"),
        "last_frame": pl.col("last_frame"),
        "duration_s": _life_s(),
        "vantage": pl.col("vantage"),
        "vantage_evidence": _object(evidence),
        "quality": _object({"factor": pl.col("quality_factor").round(_SHARE_DECIMALS), "reasons": pl.col("quality_reasons")}),
        "handshake": _object(handshake),
        "link": _object({"kind": pl.col("link").cast(pl.String).fill_null("unknown"), "vpi": pl.col("vpi"), "vci": pl.col("vci")}),
        "client_to_server": _direction("client"),
        "server_to_client": _direction("server"),
    }
    return _named(fields)


def _direction(side: str) -> pl.Expr:
    """Return the JSON object of one direction, named by its sender."""
    sent_ns = pl.col(f"{side}_last_data_ts_ns") - pl.col(f"{side}_first_data_ts_ns")
    rate_bps = pl.col(f"{side}_unique_bytes") * BITS_PER_BYTE / (sent_ns / NS_PER_S)
    rtt_columns = {"min": "rtt_min_ns", "mean": "rtt_mean_ns", "p50": "rtt_p50_ns", "p95": "rtt_p95_ns", "max": "rtt_max_ns"}
    rtt_ms = {name: _milliseconds(pl.col(f"{side}_{column}")) for name, column in rtt_columns.items()}
    counts = {name: pl.col(f"{side}_{name}") for name in _COUNTS}
    fields = {
        **counts,
        **{name: pl.col(f"{side}_{name}") for name in _LINE_COSTS},
        "throughput_bps": pl.when(sent_ns > 0).then(rate_bps),
        "rtt_ms": _object({"samples": pl.col(f"{side}_rtt_samples"), **rtt_ms}),
        "sender_rtt_min_ms": _sender_rtt_min(side),
        "send_buffer_estimate_bytes": pl.col(f"{side}_send_buffer_estimate_bytes"),
        "rates": _rates(side),
        "delayed_ack": _delayed_ack("server" if side == "client" else "client"),
        "nagle": pl.col(f"{side}_nagle"),
        "nagle_evidence": _object(
            {
                "confidence": pl.col(f"{side}_nagle_confidence"),
                "frame": pl.col(f"{side}_nagle_frame"),
                "violations": pl.col(f"{side}_small_in_flight"),
                "holds": ack_policy.holds(lambda name: pl.col(f"{side}_{name}")),
            }
        ),
        **{name: pl.col(f"{side}_{name}") for name in _BEHAVIOUR},
        "sender_retransmits": _sender_retransmits(side),
        "statistics": _object({name: pl.col(f"{side}_{name}") for name in MORE_STATISTICS_NAMES}),
        "ledger_s": _object({cause: _seconds(pl.col(f"{side}_{cause.replace('-', '_')}_ns")) for cause in CAUSES}),
        "snd_lim_s": _object(
            {term: _seconds(pl.sum_horizontal(snd_lim.columns(causes, side), ignore_nulls=False)) for term, causes in snd_lim.TERMS.items()}
        ),
        "life_s": _life_s(),
    }
    return _object(fields)


def _rates(side: str) -> pl.Expr:
    """Return the JSON object for the rates of both endpoints and the upper bound that follows."""
    columns = {name: pl.col(f"{side}_{name}") for name in (*_RATES, "base_rtt_ns", *_BUFFERS)}
    rounded = {name: columns[name].round(_RATE_DECIMALS) for name in _RATES_BPS}
    fields = {
        **{name: rounded.get(name, columns[name]) for name in _RATES},
        "base_rtt_ms": _milliseconds(columns["base_rtt_ns"]),
        **{name: columns[name] for name in _BUFFERS},
    }
    return _object(fields)


def _sender_rtt_min(side: str) -> pl.Expr:
    """Return the JSON object for the minimum RTT as the sender measures it, whatever the capture point is."""
    estimate_ns = pl.col("rtt_to_client_ns") + pl.col("rtt_to_server_ns")
    return _object(
        {
            "samples": pl.col(f"{side}_rtt_samples"),
            "lower_bound": _milliseconds(pl.col(f"{side}_rtt_min_ns")),
            "estimate": _milliseconds(pl.when(pl.col(f"{side}_rtt_samples") > 0).then(estimate_ns)),
        }
    )


def _sender_retransmits(side: str) -> pl.Expr:
    """Return the JSON object for the retransmitted segments and bytes, including those that the capture lacks."""
    min_segments, max_segments = loss_before_capture.resent_segments(side)
    min_bytes, max_bytes = loss_before_capture.resent_bytes(side)
    return _object({"min_segments": min_segments, "max_segments": max_segments, "min_bytes": min_bytes, "max_bytes": max_bytes})


def _delayed_ack(acker: str) -> pl.Expr:
    """Return the JSON object for how `acker`, the receiver of the direction, sends ACKs."""
    lag_ms = {name: _milliseconds(pl.col(f"{acker}_ack_lag_{name}_ns")) for name in ("min", "mean", "p50", "p95", "max")}
    fields = {
        "policy": pl.col(f"{acker}_ack_policy"),
        "timer_ms": pl.col(f"{acker}_ack_timer_ms"),
        "timer_kind": pl.col(f"{acker}_ack_timer_kind"),
        "samples": pl.col(f"{acker}_ack_policy_samples"),
        "delayed_samples": pl.col(f"{acker}_delayed_acks"),
        "delay_from_ms": pl.col(f"{acker}_ack_delay_from_ms"),
        "delay_to_ms": pl.col(f"{acker}_ack_delay_to_ms"),
        "acks_by_segments": pl.col(f"{acker}_acks_by_segments"),
        "stretch_acks": pl.col(f"{acker}_stretch_acks"),
        "lag_ms": _object({"samples": pl.col(f"{acker}_ack_lag_samples"), **lag_ms}),
    }
    return _object(fields)


@cache
def _transaction() -> list[pl.Expr]:
    """Return the JSON object of one transaction: each expression has the name of its key."""
    same = ("index", "protocol", "method", "target", "status", "state")
    fields = {
        "connection": pl.col("conn"),
        **{name: pl.col(name) for name in same},
        "data_connection": pl.col("data_conn"),
        **{name: pl.col(name) for name in ("request_bytes", "answer_bytes", "body_bytes")},
        "frames": _object({name: pl.col(f"{name}_frame") for name in ("request", "answer", "last")}),
        "request_ts_ns": pl.col("request_ts_ns"),
        **{
            f"{name}_s": _seconds(pl.col(f"{name}_ns"))
            for name in ("connect", "client_think", "request", "server_think", "transfer", "total")
        },
    }
    return _named(fields)


@cache
def _flow() -> list[pl.Expr]:
    """Return the JSON object of one UDP flow: each expression has the name of its key."""
    echo_ms = {name: _milliseconds(pl.col(f"echo_{name}_ns")) for name in ("min", "p50", "p95", "max")}
    fields = {
        "id": pl.col("flow"),
        **_endpoints(),
        "echo_ms": _object({"samples": pl.col("echo_samples"), **echo_ms}),
        "client_to_server": _flow_direction("client"),
        "server_to_client": _flow_direction("server"),
    }
    return _named(fields)


def _flow_direction(side: str) -> pl.Expr:
    """Return the JSON object of one direction of a UDP flow, named by its sender."""
    own = {name: pl.col(f"{side}_{name}") for name in FLOW_DIRECTION_NAMES}
    sizes = {name: own[f"{name}_payload_bytes"] for name in ("min", "mean", "max")}
    gap_ms = {name: _milliseconds(own[f"gap_{name}_ns"]) for name in ("p50", "p95", "max")}
    fields = {
        **{name: own[name] for name in ("datagrams", "payload_bytes", "fragmented_datagrams")},
        "size_bytes": _object({**sizes, "distinct": own["distinct_sizes"]}),
        **{name: own[name] for name in ("first_ts_ns", "last_ts_ns", "rate_bps")},
        "gap_ms": _object(gap_ms),
        **{name: own[name] for name in ("gap_variation", "missing_datagrams", "reordered_datagrams", "loss_known_by")},
    }
    return _object(fields)


def _endpoints() -> dict[str, pl.Expr]:
    return {side: _object({"addr": pl.col(f"{side}_addr"), "port": pl.col(f"{side}_port")}) for side in SIDES}


def _life_s() -> pl.Expr:
    """Return the time from the first to the last segment of a connection; null if the clock ran backwards in between."""
    life_ns = pl.col("last_ts_ns") - pl.col("first_ts_ns")
    return _seconds(pl.when(life_ns >= 0).then(life_ns))


def _seconds(time_ns: pl.Expr) -> pl.Expr:
    return (time_ns / NS_PER_S).round(_S_DECIMALS)


def _milliseconds(time_ns: pl.Expr) -> pl.Expr:
    return (time_ns / NS_PER_MS).round(_MS_DECIMALS)


def _object(fields: dict[str, pl.Expr]) -> pl.Expr:
    return pl.struct(_named(fields))


def _named(fields: dict[str, pl.Expr]) -> list[pl.Expr]:
    return [expression.alias(name) for name, expression in fields.items()]
