"""Capture files as seeds: written by hand, or our own captures cut short."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SNAPLEN = 262_144
MODIFIED = 0xA1B2CD34  # Kuznetzov's pcap: records are 8 bytes longer
START_S = 1_700_000_000
# One of each kind is enough: a capture of every link type, and of what is special about some connections.
OURS = [
    "atm9180-nagle-on.pcapng",
    "atm9180-loss.pcap",
    "cooked-bulk.pcapng",
    "cooked-v2-bulk.pcapng",
    "ethernet-ipv6-bulk.pcapng",
    "ethernet-keepalive.pcapng",
    "ethernet-offload-bulk.pcapng.gz",
    "ethernet-short-connections.pcapng",
    "ethernet-tail-loss.pcapng",
    "ethernet-reordering.pcapng",
]


def pcap(packets: list[bytes], link_type: int, order: str, magic: int) -> bytes:
    """A pcap file; `order` as in `struct`. `magic` tells the variant."""
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, SNAPLEN, link_type)
    for at, packet in enumerate(packets):
        out += struct.pack(order + "IIII", START_S, 1000 * at, len(packet), len(packet))
        out += bytes(8) if magic == MODIFIED else b""
        out += packet
    return out


def pcapng_all_blocks(packets: list[bytes], order: str) -> bytes:
    """A pcapng file with every block that is read, and one that nobody knows."""

    def padded(data: bytes) -> bytes:
        return data + bytes(-len(data) % 4)

    def option(code: int, data: bytes) -> bytes:
        return struct.pack(order + "HH", code, len(data)) + padded(data)

    def block(kind: int, body: bytes) -> bytes:
        length = 12 + len(padded(body))
        return struct.pack(order + "II", kind, length) + padded(body) + struct.pack(order + "I", length)

    end = option(0, b"")
    section = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + option(4, b"fuzz") + end)
    # Resolutions in powers of ten and of two, an offset in seconds, a drop count in the statistics.
    interfaces = [
        struct.pack(order + "HHI", 101, 0, SNAPLEN) + option(9, b"\x09") + end,
        struct.pack(order + "HHI", 101, 0, 96) + option(9, b"\x94") + option(14, struct.pack(order + "q", START_S)) + end,
    ]
    out = section + b"".join(block(1, body) for body in interfaces)
    for at, packet in enumerate(packets):
        ticks = START_S * 10**9 + at * 10**6
        high, low = ticks >> 32, ticks & 0xFFFFFFFF
        head = struct.pack(order + "IIIII", at % 2, high, low, len(packet), len(packet))
        out += block(6, head + padded(packet) + option(2, struct.pack(order + "I", 1)) + end)
    first = packets[0]
    out += block(3, struct.pack(order + "I", len(first)) + first)
    out += block(2, struct.pack(order + "HHIIII", 0, 0xFFFF, 0, 1, len(first), len(first)) + first)
    out += block(4, struct.pack(order + "HH", 1, 8) + b"\x0a\0\0\1abc\0" + struct.pack(order + "HH", 0, 0))
    out += block(5, struct.pack(order + "III", 0, 0, 0) + option(5, struct.pack(order + "Q", 3)) + end)
    out += block(10, struct.pack(order + "II", 0x544C534B, 4) + b"keys")
    out += block(0x0BAD, struct.pack(order + "I", 1) + b"custom")
    return out + block(0x7777, b"unknown")


def _records(data: bytes) -> Iterator[int]:
    """Where the records or blocks of a little-endian capture end."""
    at, header, length_at = (0, 0, 4) if data[:4] == b"\x0a\x0d\x0d\x0a" else (24, 16, 8)
    while at + length_at + 4 <= len(data):
        at += header + struct.unpack_from("<I", data, at + length_at)[0]
        yield at


def captures(folder: Path, max_bytes: int) -> dict[str, bytes]:
    """Our own captures, as many whole records as fit."""
    found = {}
    for name in OURS:
        packed = (folder / name).read_bytes()
        if name.endswith(".gz"):
            unpacked = gzip.decompress(packed)
            # A pcapng inside gzip stays so.
            found[name] = gzip.compress(_cut(unpacked, max_bytes), mtime=0)
        else:
            found[name] = _cut(packed, max_bytes)
    return found


def _cut(data: bytes, max_bytes: int) -> bytes:
    ends = [end for end in _records(data) if end <= max_bytes]
    return data[: ends[-1]] if ends else data[:max_bytes]
