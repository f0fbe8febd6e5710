"""Captures of very many connections or UDP flows with a few packets each.

The packets are raw IPv4. NumPy builds all of them at once, because Scapy would take minutes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from tests.support.packets import BASE_NS, LINKS, SNAPLEN_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

SYN, ACK, FIN_ACK, SYN_ACK = 0x02, 0x10, 0x11, 0x12
SERVER, SERVER_PORT = 0x0A00_0002, 80  # 10.0.0.2
CLIENT_NET, CLIENT_PORT = 0x1400_0000, 40_000  # first client: 20.0.0.0

_PCAP_NS_MAGIC = 0xA1B2_3C4D
_IP = [
    ("version", ">u2"),
    ("length", ">u2"),
    ("id", ">u4"),
    ("ttl", "u1"),
    ("protocol", "u1"),
    ("sum", ">u2"),
    ("src", ">u4"),
    ("dst", ">u4"),
]
_PORTS = [("src_port", ">u2"), ("dst_port", ">u2")]
_TCP = [("seq", ">u4"), ("ack", ">u4"), ("offset", "u1"), ("flags", "u1"), ("window", ">u2"), ("tcp_sum", ">u2"), ("urgent", ">u2")]
_UDP = [("udp_length", ">u2"), ("udp_sum", ">u2")]
_RECORD = [("ts_s", "<u4"), ("ts_ns", "<u4"), ("captured", "<u4"), ("original", "<u4")]


def tcp(
    clients: ArrayLike, at_s: ArrayLike, flags: ArrayLike = SYN, *, from_client: ArrayLike = True, seq: ArrayLike = 1_000
) -> np.ndarray:
    """Return one segment without data for each client.

    The segments are sent `at_s` seconds after `BASE_NS`. Each client has its own address and the ISN 1000. The server has the ISN 5000.
    """
    records = _packets(clients, at_s, from_client, np.dtype(_RECORD + _IP + _PORTS + _TCP), 6)
    records["seq"], records["flags"], records["offset"], records["window"] = seq, flags, 5 << 4, 1_000
    records["ack"] = np.where(np.asarray(flags) & ACK, np.where(from_client, 5_001, 1_001), 0)
    return records


def udp(clients: ArrayLike, at_s: ArrayLike, *, from_client: ArrayLike = True) -> np.ndarray:
    """Return one datagram without data for each client. The arguments are those of `tcp`."""
    records = _packets(clients, at_s, from_client, np.dtype(_RECORD + _IP + _PORTS + _UDP), 17)
    records["udp_length"] = 8
    return records


def _packets(clients: ArrayLike, at_s: ArrayLike, from_client: ArrayLike, layout: np.dtype, protocol: int) -> np.ndarray:
    number = np.asarray(clients, np.int64)
    records = np.zeros(number.shape, layout)
    records["ts_s"], records["ts_ns"] = np.divmod(BASE_NS + np.rint(np.asarray(at_s, np.float64) * 1e9).astype(np.int64), 10**9)
    records["captured"] = records["original"] = layout.itemsize - 16
    records["version"], records["length"], records["ttl"], records["protocol"] = 0x4500, layout.itemsize - 16, 64, protocol
    client = (CLIENT_NET + number, CLIENT_PORT), ("src", "dst")
    for (address, port), (own, other) in ((client[0], ("src", "dst")), ((SERVER, SERVER_PORT), ("dst", "src"))):
        records[own] = np.where(from_client, address, records[own])
        records[other] = np.where(from_client, records[other], address)
        records[f"{own}_port"] = np.where(from_client, port, records[f"{own}_port"])
        records[f"{other}_port"] = np.where(from_client, records[f"{other}_port"], port)
    return records


def write(path: Path, *packets: np.ndarray) -> Path:
    """Write one capture with these packets, in the order of the arrays."""
    header = struct.pack("<IHHiIII", _PCAP_NS_MAGIC, 2, 4, 0, 0, SNAPLEN_BYTES, LINKS["ipv4"])
    path.write_bytes(header + b"".join(part.tobytes() for part in packets))
    return path
