"""Reads the tracer's records as a table. One row is one event, with the sender's state at that moment."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

# Kinds of events. The numbers are those of `enum kind` in tracer.h.
RECEIVED, SETTLED, WRITE, WRITTEN, READ, TRANSMIT, RETRANSMIT, RECOVERY, STATE, ASKED_QUEUE = KINDS = (
    *("received", "settled", "write", "written", "read"),
    *("transmit", "retransmit", "recovery", "state", "asked_queue"),
)

# (name, type) of each field of a record, in the order of `struct record` in tracer.h.
_LAYOUT: tuple[tuple[str, str], ...] = (
    *((name, "<u8") for name in ("time_ns", "socket", "paced_until_ns", "pacing_timer_ns", "pacing_rate")),
    *((name, "V16") for name in ("local_address", "remote_address")),
    *((name, "<u4") for name in ("namespace_inode", "detail_seq", "detail_ack")),
    ("detail_bytes", "<i4"),
    *((name, "<u4") for name in ("write_seq", "snd_nxt", "snd_una", "snd_wnd", "snd_cwnd", "ssthresh")),
    *((name, "<u4") for name in ("packets_out", "sacked_out", "lost_out", "retrans_out")),
    *((name, "<u4") for name in ("mss_cache", "snd_sml", "unsent_skb_bytes", "unsent_skb_seq", "high_seq")),
    *((name, "<u4") for name in ("rcv_nxt", "copied_seq", "rcv_wup", "rcv_wnd", "srtt_us", "min_rtt_us", "rto_jiffies")),
    *((name, "<i4") for name in ("wmem_queued", "sndbuf", "wmem_alloc")),
    ("gso_segments", "<u4"),
    *((name, "<u2") for name in ("local_port", "remote_port", "family")),
    *((name, "u1") for name in ("kind", "tcp_flags", "state", "ca_state", "pending", "nonagle")),
    *((name, "u1") for name in ("pacing_status", "pacing_timer_state", "chrono_type", "no_space")),
    *((name, "u1") for name in ("throttled", "ack_pending", "retransmits", "unsent_marks")),
    ("padding", "V4"),
)
_RECORD = np.dtype(list(_LAYOUT))
_OF_THE_CLOCK = ("time_ns", "paced_until_ns", "pacing_timer_ns")
_ADDRESSES = ("local_address", "remote_address")
_IPV4_BYTES, _IPV6 = 4, 10  # AF_INET6

_TYPES = {"<u8": pl.UInt64, "<u4": pl.UInt32, "<u2": pl.UInt16, "<i4": pl.Int32, "u1": pl.UInt8, "V16": pl.String}
SCHEMA: dict[str, Any] = {name: _TYPES[kind] for name, kind in _LAYOUT if kind in _TYPES} | {
    **dict.fromkeys(_OF_THE_CLOCK, pl.Int64),
    "kind": pl.Enum(KINDS),
}
"""The table's columns. Times are those of the realtime clock, as in captures. Sequence numbers are those on the wire."""


def read_records(path: Path, clock_offset_ns: int) -> pl.DataFrame:
    """Return the records of one file, in order of time. `clock_offset_ns` is the realtime clock minus the monotonic clock."""
    records = np.fromfile(path, dtype=_RECORD)
    records = records[np.argsort(records["time_ns"], kind="stable")]
    columns: dict[str, Any] = {name: records[name] for name in SCHEMA if name not in _ADDRESSES}
    for name in _OF_THE_CLOCK:
        columns[name] = records[name].astype(np.int64) + clock_offset_ns
    columns["kind"] = [KINDS[number - 1] for number in records["kind"].tolist()]
    known: dict[tuple[bytes, int], str] = {}
    for name in _ADDRESSES:
        raw = zip((value.tobytes() for value in records[name]), records["family"].tolist(), strict=True)
        columns[name] = [known.get(key) or known.setdefault(key, _address(*key)) for key in raw]
    return pl.DataFrame(columns, schema=SCHEMA)


def _address(raw: bytes, family: int) -> str:
    address = ip_address(raw if family == _IPV6 else raw[:_IPV4_BYTES])
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
