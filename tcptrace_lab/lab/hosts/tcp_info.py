"""Decodes `struct tcp_info`, which contains the kernel's state and counters of a connection.

Source: include/uapi/linux/tcp.h of Linux 6.18. The fields have the kernel's names and units. `tcpi_rto`, `tcpi_ato`, `tcpi_rtt`,
`tcpi_rttvar`, `tcpi_rcv_rtt`, `tcpi_min_rtt`, `tcpi_busy_time`, `tcpi_rwnd_limited` and `tcpi_sndbuf_limited` are in microseconds.
`tcpi_last_*` and `tcpi_total_rto_time` are in milliseconds. Rates are in bytes per second. `tcpi_snd_cwnd`, `tcpi_snd_ssthresh`,
`tcpi_unacked`, `tcpi_sacked`, `tcpi_lost`, `tcpi_retrans`, `tcpi_fackets`, `tcpi_reordering` and `tcpi_delivered` are in segments.
"""

from __future__ import annotations

import socket
import struct

# Field sizes as letters of Python's struct module. `struct tcp_info` has no padding on any architecture with 8-byte alignment.
_U8, _U16, _U32, _U64 = "B", "H", "I", "Q"

# Letter of the struct module, and names of the fields in order. The two bytes with bit fields are decoded separately.
_LAYOUT: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_U8, ("state", "ca_state", "retransmits", "probes", "backoff", "options", "_window_scales", "_flags")),
    (
        _U32,
        (
            *("rto", "ato", "snd_mss", "rcv_mss"),
            *("unacked", "sacked", "lost", "retrans", "fackets"),
            *("last_data_sent", "last_ack_sent", "last_data_recv", "last_ack_recv"),
            *("pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh", "snd_cwnd", "advmss", "reordering"),
            *("rcv_rtt", "rcv_space", "total_retrans"),
        ),
    ),
    (_U64, ("pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received")),
    (_U32, ("segs_out", "segs_in", "notsent_bytes", "min_rtt", "data_segs_in", "data_segs_out")),
    (_U64, ("delivery_rate", "busy_time", "rwnd_limited", "sndbuf_limited")),
    (_U32, ("delivered", "delivered_ce")),
    (_U64, ("bytes_sent", "bytes_retrans")),
    (_U32, ("dsack_dups", "reord_seen", "rcv_ooopack", "snd_wnd", "rcv_wnd", "rehash")),
    (_U16, ("total_rto", "total_rto_recoveries")),
    (_U32, ("total_rto_time",)),
)
# The buffer is larger than the struct, because later kernels append fields. Fields without a name here are ignored.
_BUFFER_BYTES = 512

# Names of the TCP states, from the enum in include/net/tcp_states.h. The first state has number 1.
STATES = (
    *("", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2"),
    *("TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING"),
)
# enum tcp_ca_state
CONGESTION_STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")
# TCPI_OPT_*
OPTIONS = {1: "timestamps", 2: "sack", 4: "wscale", 8: "ecn", 16: "ecn_seen", 32: "syn_data", 64: "usec_ts", 128: "tfo_child"}


def read(connection: socket.socket) -> dict[str, int | str | list[str] | bool]:
    """Return the TCP_INFO of a socket as a dict with the kernel's field names."""
    return decode(raw(connection))


def raw(connection: socket.socket) -> bytes:
    """Return the TCP_INFO of a socket as undecoded bytes."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BUFFER_BYTES)


def decode(raw: bytes) -> dict[str, int | str | list[str] | bool]:
    """Decode a `struct tcp_info`. Fields that an older kernel does not provide are omitted."""
    values: dict[str, int] = {}
    offset = 0
    for letter, names in _LAYOUT:
        size = struct.calcsize(letter)
        for name in names:
            if offset + size > len(raw):
                break
            (values[name],) = struct.unpack_from("=" + letter, raw, offset)
            offset += size
    scales, flags = values.pop("_window_scales"), values.pop("_flags")
    info: dict[str, int | str | list[str] | bool] = {f"tcpi_{name}": value for name, value in values.items()}
    info["tcpi_state"] = STATES[values["state"]]
    info["tcpi_ca_state"] = CONGESTION_STATES[values["ca_state"]]
    info["tcpi_options"] = [word for bit, word in OPTIONS.items() if values["options"] & bit]
    info["tcpi_snd_wscale"] = scales & 0xF
    info["tcpi_rcv_wscale"] = scales >> 4
    info["tcpi_delivery_rate_app_limited"] = bool(flags & 1)
    return info
