"""Writes a capture with any number of connections to standard output, generated while it is read.

Use: `python benchmarks/traffic/stream.py short 10000000 | tcptrace-lab analyze -`. Kinds of traffic:

- `short`: connections of ten packets. About 1,000 of them are open at a time, as in the capture `short-96`.
- `syns`: connections of one SYN, as in a flood or a scan. None of them ends.
- `udp`: flows of one request and its response.
- `gigabytes`: the given number of GB of a busy link, without a snaplen. It has 32 concurrent conversations with bulk transfers, requests
  and responses.

The snaplen of the other kinds is 96 bytes. The script keeps no packets, so its memory stays below 200 MB.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

import numpy as np
from conversation import US_NS
from frames import NEAR_TTL, SEGMENT, SYN, UNCUT_SNAPLEN, Framer, Rows
from traffic import EPOCH_NS, busy_link, client_ends, short_connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

_SEED: Final = 1
_SNAPLEN: Final = 96
_AT_ONCE: Final = 50_000
"""Number of segments that are converted to bytes at a time. They take about 10 MB."""
_SYN_EVERY_NS: Final = 10 * US_NS
_SERVER: Final = 0xC6336401  # 198.51.100.1 (RFC 5737)
_PORT: Final = 8650

_UDP_RECORD: Final = np.dtype(
    [
        ("ts_s", "<u4"),
        ("ts_us", "<u4"),
        ("captured", "<u4"),
        ("original", "<u4"),
        ("macs", "S12"),
        ("ethertype", ">u2"),
        ("version", ">u2"),
        ("total_length", ">u2"),
        ("ip_id", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("ip_checksum", ">u2"),
        ("src_addr", ">u4"),
        ("dst_addr", ">u4"),
        ("src_port", ">u2"),
        ("dst_port", ">u2"),
        ("udp_length", ">u2"),
        ("udp_checksum", ">u2"),
        ("payload", "S18"),
    ]
)
"""A pcap record of a whole Ethernet frame with 18 bytes of data, the minimum that needs no padding.

Both checksums are 0. For UDP, this means that there is no checksum. For IP, it is what a host with offload captures.
"""
_UDP_FRAME_BYTES: Final = _UDP_RECORD.itemsize - 16
_IP_BYTES: Final = _UDP_FRAME_BYTES - 14


def syns(connections: int) -> Iterator[Rows]:
    """Yield the SYN of each connection."""
    for first in range(0, connections, _AT_ONCE):
        number = np.arange(first, min(first + _AT_ONCE, connections), dtype=np.int64)
        rows = np.zeros(len(number), SEGMENT)
        rows["ts_ns"] = EPOCH_NS + number * _SYN_EVERY_NS
        rows["src_addr"], rows["src_port"] = client_ends(number)
        rows["dst_addr"], rows["dst_port"] = _SERVER, _PORT
        rows["seq"] = number * 2_654_435_761 & 0xFFFFFFFF  # spread like initial sequence numbers (Knuth's multiplier)
        rows["flags"], rows["window"], rows["ttl"] = SYN, 64_240, NEAR_TTL
        yield rows


def udp_records(flows: int) -> Iterator[NDArray[np.void]]:
    """Yield the request and the response of each flow, as pcap records."""
    for first in range(0, flows, _AT_ONCE):
        number = np.arange(first, min(first + _AT_ONCE, flows), dtype=np.int64)
        records = np.zeros((len(number), 2), _UDP_RECORD)
        client, port = client_ends(number)
        asked_us = EPOCH_NS // US_NS + number * 20
        for side, delay_us in ((0, 0), (1, 10)):
            own = records[:, side]
            own["ts_s"], own["ts_us"] = np.divmod(asked_us + delay_us, 1_000_000)
            source, target = ("src", "dst") if side == 0 else ("dst", "src")
            own[f"{source}_addr"], own[f"{source}_port"] = client, port
            own[f"{target}_addr"], own[f"{target}_port"] = _SERVER, _PORT
        records["captured"] = records["original"] = _UDP_FRAME_BYTES
        records["macs"] = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01"
        records["ethertype"], records["version"], records["total_length"] = 0x0800, 0x4500, _IP_BYTES
        records["ip_id"] = number[:, np.newaxis] & 0xFFFF
        records["fragment"], records["ttl"], records["protocol"] = 0x4000, NEAR_TTL, 17
        records["udp_length"] = _IP_BYTES - 20
        yield records.reshape(-1)


def tcp(slabs: Callable[[int], Iterator[Rows]], count: int, framer: Framer) -> Iterator[memoryview]:
    """Yield the records of segments, some at a time."""
    for rows in slabs(count):
        for first in range(0, len(rows), _AT_ONCE):
            yield framer.records(rows[first : first + _AT_ONCE])


_LANES: Final = 32
_SEGMENTS_MEDIAN: Final = 2_000
_GB: Final = 1_000_000_000


def gigabytes(count: int, framer: Framer) -> Iterator[memoryview]:
    """Yield the records of a busy link, up to `count` GB."""
    left = count * _GB
    for records in tcp(lambda lanes: busy_link(_SEED, lanes, _SEGMENTS_MEDIAN), _LANES, framer):
        yield records
        left -= records.nbytes
        if left <= 0:
            return


def main() -> None:
    """Write one capture to standard output."""
    parser = argparse.ArgumentParser(description="Writes a capture with very many connections or flows to standard output.")
    parser.add_argument("kind", choices=["short", "syns", "udp", "gigabytes"])
    parser.add_argument("count", type=int, help="connections, flows, or GB")
    options = parser.parse_args()
    framer = Framer(UNCUT_SNAPLEN if options.kind == "gigabytes" else _SNAPLEN)
    out = sys.stdout.buffer
    out.write(framer.file_header())
    if options.kind == "udp":
        for datagrams in udp_records(options.count):
            out.write(datagrams.view(np.uint8).data)
        return
    if options.kind == "gigabytes":
        for records in gigabytes(options.count, framer):
            out.write(records)
        return
    slabs = syns if options.kind == "syns" else lambda count: short_connections(_SEED, count)
    for records in tcp(slabs, options.count, framer):
        out.write(records)


if __name__ == "__main__":
    main()
