"""Analyses written by hand, for tests of the report.

The tables follow `schema`, but come neither from the engine nor from a capture.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import schema

if TYPE_CHECKING:
    from collections.abc import Mapping

BASE_NS = 1_700_000_000_000_000_000
MS = 1_000_000
SYN, FIN, RST, PSH, ACK = 2, 1, 4, 8, 16


@dataclass
class HandMade:
    """The parts of an analysis that `report.data` reads."""

    name: str
    capture: dict[str, Any]
    connections: pl.LazyFrame
    segments: pl.LazyFrame
    ledger: pl.LazyFrame = field(default_factory=lambda: pl.LazyFrame(schema=schema.WAITS.polars_schema()))
    together: None = None
    transactions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=schema.TRANSACTIONS.polars_schema()))
    flows: pl.LazyFrame = field(default_factory=lambda: pl.LazyFrame(schema=schema.FLOWS.polars_schema()))
    accounts: pl.LazyFrame = field(default_factory=lambda: pl.LazyFrame(schema=schema.ACCOUNTS.polars_schema()))
    longest_waits: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=schema.LEDGER.polars_schema()))
    stalls: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=schema.STALLS.polars_schema()))
    rates: pl.DataFrame = field(default_factory=schema.RATES.no_rows)
    labels: Mapping[int, str] = field(default_factory=dict)
    findings: tuple[Any, ...] = ()
    message_sizes: tuple[Any, ...] = ()


@dataclass
class Exchange:
    """One connection. `send(ms, side, seq, payload, ack, window, kind)` adds one segment."""

    conn: int = 0
    client: str = "10.0.0.1"
    server: str = "10.0.0.2"
    first_frame: int = 1
    rows: list[dict[str, Any]] = field(default_factory=list)

    def send(
        self,
        ms: float,
        side: str,
        seq: int,
        payload: int = 0,
        ack: int | None = None,
        window: int | None = 65535,
        kind: str = "",
        flags: int = 0,
        **columns: int,
    ) -> Exchange:
        """Add one segment. `side` is "C" or "S".

        By default, `kind` means plain data or a plain ACK.
        """
        row = dict.fromkeys(schema.SEGMENTS.names)
        row |= {
            "frame": self.first_frame + len(self.rows),
            "ts_ns": BASE_NS + round(ms * MS),
            "conn": self.conn,
            "from_client": side == "C",
            "seq": seq,
            "ack": ack,
            "payload_bytes": payload,
            "captured_payload_bytes": payload,
            "flags": flags | (ACK if ack is not None else 0),
            "window_bytes": window,
            "kind": kind or ("new" if payload or flags & (SYN | FIN) else "ack"),
            **columns,
        }
        self.rows.append(row)
        return self

    def connection(self) -> dict[str, Any]:
        """Return the connection's row of `schema.CONNECTIONS`.

        Its counts follow from the segments. Columns that the report does not read are null.
        """
        row: dict[str, Any] = dict.fromkeys(schema.CONNECTIONS.names)
        row |= {"conn": self.conn, "client_addr": self.client, "client_port": 40_000, "server_addr": self.server, "server_port": 80}
        row |= {"client_known_by": "syn", "closed_by": "end", "first_frame": self.rows[0]["frame"], "last_frame": self.rows[-1]["frame"]}
        row |= {"first_ts_ns": self.rows[0]["ts_ns"], "last_ts_ns": self.rows[-1]["ts_ns"]}
        row |= {"vantage": "unknown", "vantage_known_by": "nothing"}
        for name, from_client in schema.SIDES.items():
            row |= {f"{name}_ack_policy": "unknown", f"{name}_nagle": "unknown"}
            mine = [segment for segment in self.rows if segment["from_client"] == from_client]
            theirs = [segment for segment in self.rows if segment["from_client"] != from_client]
            resent = [segment for segment in mine if segment["kind"] in schema.RESENT]
            samples = [segment["rtt_ns"] for segment in theirs if segment["rtt_ns"] is not None]
            figures = {
                "segments": len(mine),
                **dict.fromkeys(("ce_segments", "cwr_segments"), 0),
                "data_segments": sum(segment["payload_bytes"] > 0 for segment in mine),
                "payload_bytes": sum(segment["payload_bytes"] for segment in mine),
                "unique_bytes": sum(segment["payload_bytes"] for segment in mine) - sum(segment["payload_bytes"] for segment in resent),
                "retransmitted_segments": len(resent),
                "retransmitted_bytes": sum(segment["payload_bytes"] for segment in resent),
                "out_of_order_segments": sum(segment["kind"] == "out_of_order" for segment in mine),
                "duplicate_acks": sum(segment["kind"] == "duplicate_ack" for segment in mine),
                "keepalives": sum(segment["kind"] == "keepalive" for segment in mine),
                "zero_window_probes": sum(segment["kind"] == "zero_window_probe" for segment in mine),
                "zero_window_advertisements": sum(segment["window_bytes"] == 0 for segment in mine),
                "syn_segments": sum(bool(segment["flags"] & SYN) for segment in mine),
                "fin_segments": sum(bool(segment["flags"] & FIN) for segment in mine),
                "rst_segments": sum(bool(segment["flags"] & RST) for segment in mine),
                "rtt_samples": len(samples),
                "rtt_min_ns": min(samples, default=None),
                "first_data_ts_ns": min(
                    (segment["ts_ns"] for segment in mine if segment["payload_bytes"] and segment["ts_ns"] is not None), default=None
                ),
                "last_data_ts_ns": max(
                    (segment["ts_ns"] for segment in mine if segment["payload_bytes"] and segment["ts_ns"] is not None), default=None
                ),
            }
            row |= {f"{name}_{key}": value for key, value in figures.items()}
        return row


def analysis(*exchanges: Exchange, name: str = "hand-made.pcap", **capture: object) -> HandMade:
    """Return an analysis of the exchanges.

    `capture` replaces entries of the analysis' "capture" object.
    """
    rows = sorted((row for exchange in exchanges for row in exchange.rows), key=lambda row: row["frame"])
    segments = pl.DataFrame(rows, schema=schema.SEGMENTS.polars_schema())
    connections = pl.DataFrame([exchange.connection() for exchange in exchanges], schema=schema.CONNECTIONS.polars_schema())
    times = segments["ts_ns"].drop_nulls()
    described: dict[str, Any] = {
        "path": name,
        "format": "pcap",
        "link_types": [{"id": 1, "name": "Ethernet", "packets": segments.height}],
        "packets": segments.height,
        "tcp_segments": segments.height,
        "connections": connections.height,
        "udp_datagrams": 0,
        "first_ts_ns": times.min(),
        "last_ts_ns": times.max(),
        "complete": True,
        "problems": [],
        "quality": {"rating": "good", "reasons": [], "truncated_packets": 0, "backward_timestamps": 0, "resolution_ns": 1000},
    }
    return HandMade(name, described | capture, connections.lazy(), segments.lazy())


def lossy_upload(conn: int = 0, first_frame: int = 1) -> Exchange:
    """Return an upload of 10 segments of 1,000 bytes, 10 ms apart. Each segment is acknowledged after 20 ms.

    The fourth segment is lost and retransmitted after three duplicate ACKs.
    """
    exchange = Exchange(conn=conn, first_frame=first_frame)
    exchange.send(0, "C", 0, flags=SYN, window=64_000)
    exchange.send(20, "S", 0, ack=1, flags=SYN, window=64_000, rtt_ns=20 * MS, ack_lag_ns=20 * MS)
    exchange.send(20.1, "C", 1, ack=1, window=64_000)
    events: list[tuple[float, str, dict[str, Any]]] = [
        (30 + 10 * i, "C", {"seq": 1 + 1000 * i, "payload": 1000, "ack": 1}) for i in range(10)
    ]
    events += [(50 + 10 * i, "S", {"seq": 1, "ack": 1001 + 1000 * i, "rtt_ns": 20 * MS, "ack_lag_ns": 20 * MS}) for i in range(3)]
    events += [(90 + 10 * i, "S", {"seq": 1, "ack": 3001, "kind": "duplicate_ack"}) for i in range(3)]
    events += [(111, "C", {"seq": 3001, "payload": 1000, "ack": 1, "kind": "fast_retransmit"})]
    events += [(141, "S", {"seq": 1, "ack": 10_001, "ack_lag_ns": 111 * MS})]
    for ms, side, columns in sorted(events, key=lambda event: event[0]):
        exchange.send(ms, side, **columns)
    return (
        exchange.send(160, "C", 10_001, ack=1, flags=FIN)
        .send(180, "S", 1, ack=10_002, flags=FIN, rtt_ns=20 * MS)
        .send(181, "C", 10_002, ack=2)
    )
