"""Common faults of captures: missing, duplicated, late, swapped or truncated packets; a missing direction; a coarse clock.

Each function in `KINDS` changes the packets of a capture at random. The caller passes the random generator, so a run can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import dpkt

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping
    from pathlib import Path

HEADERS_BYTES: Final = (54, 58, 60, 62, 66, 74, 96)
"""Snaplens that end within or just after the headers of TCP in IPv4 on Ethernet."""

COARSE_NS: Final = 10_000_000
LATER_NS: Final = 3_600_000_000_000


@dataclass(frozen=True)
class Packet:
    """A packet of a capture: its time since 1970, its captured bytes, and its length on the wire."""

    ts_ns: int
    data: bytes
    wire_bytes: int


def missed(packets: list[Packet], chance: random.Random) -> list[Packet]:
    """Remove some packets."""
    share = chance.choice((0.02, 0.1, 0.3))
    return [packet for packet in packets if chance.random() > share]


def doubled(packets: list[Packet], chance: random.Random) -> list[Packet]:
    """Duplicate some packets."""
    return [packet for packet in packets for _ in range(1 + (chance.random() < 0.1))]


def swapped(packets: list[Packet], chance: random.Random) -> list[Packet]:
    """Swap some packets with the packet before. The order of the timestamps does not change."""
    order = list(packets)
    for at in range(len(order) - 1):
        if chance.random() < 0.1:
            order[at], order[at + 1] = order[at + 1], order[at]
    return [replace(packet, ts_ns=place.ts_ns) for packet, place in zip(order, packets, strict=True)]


def late(packets: list[Packet], chance: random.Random) -> list[Packet]:
    """Move some packets back by one to seven places."""
    order = list(packets)
    for _ in range(max(1, len(order) // 20)):
        at = chance.randrange(len(order))
        packet = order.pop(at)
        to = min(len(order), at + chance.randrange(1, 8))
        order.insert(to, replace(packet, ts_ns=order[to - 1].ts_ns if to else packet.ts_ns))
    return order


def cut(packets: list[Packet], chance: random.Random) -> list[Packet]:
    """Truncate all packets within or just after their headers."""
    snaplen = chance.choice(HEADERS_BYTES)
    return [replace(packet, data=packet.data[:snaplen]) for packet in packets]


def begun_late(packets: list[Packet], chance: random.Random) -> list[Packet]:
    """Remove the packets before a random point in the first half of the capture."""
    return packets[chance.randrange(max(1, len(packets) // 2)) :]


def of_one_side(packets: list[Packet], _chance: random.Random) -> list[Packet]:
    """Keep only packets with the link-layer source of the first packet."""
    return [packet for packet in packets if packet.data[6:12] == packets[0].data[6:12]]


def coarse(packets: list[Packet], _chance: random.Random) -> list[Packet]:
    """Round timestamps down to multiples of 10 ms."""
    return [replace(packet, ts_ns=packet.ts_ns // COARSE_NS * COARSE_NS) for packet in packets]


def again(packets: list[Packet], _chance: random.Random) -> list[Packet]:
    """Append all packets a second time, an hour later."""
    return packets + [replace(packet, ts_ns=packet.ts_ns + LATER_NS) for packet in packets]


KINDS: Mapping[str, Callable[[list[Packet], random.Random], list[Packet]]] = {
    kind.__name__: kind for kind in (missed, doubled, swapped, late, cut, begun_late, of_one_side, coarse, again)
}


def read(path: Path) -> tuple[int, list[Packet]]:
    """Read the link type and packets of a pcap file in this machine's byte order."""
    data = path.read_bytes()
    head = dpkt.pcap.LEFileHdr(data[: dpkt.pcap.LEFileHdr.__hdr_len__])
    per_tick_ns = {dpkt.pcap.TCPDUMP_MAGIC: 1_000, dpkt.pcap.TCPDUMP_MAGIC_NANO: 1}[head.magic]
    at, packets = len(head), []
    while at + dpkt.pcap.LEPktHdr.__hdr_len__ <= len(data):
        of = dpkt.pcap.LEPktHdr(data[at : at + dpkt.pcap.LEPktHdr.__hdr_len__])
        at += len(of)
        packets.append(Packet(of.tv_sec * 1_000_000_000 + of.tv_usec * per_tick_ns, data[at : at + of.caplen], of.len))
        at += of.caplen
    return head.linktype, packets


def write(path: Path, link_type: int, packets: list[Packet]) -> Path:
    """Write the packets to a pcap file with nanosecond timestamps."""
    with path.open("wb") as file:
        file.write(bytes(dpkt.pcap.LEFileHdr(magic=dpkt.pcap.TCPDUMP_MAGIC_NANO, snaplen=1 << 18, linktype=link_type)))
        for packet in packets:
            seconds, nanoseconds = divmod(packet.ts_ns, 1_000_000_000)
            file.write(bytes(dpkt.pcap.LEPktHdr(tv_sec=seconds, tv_usec=nanoseconds, caplen=len(packet.data), len=packet.wire_bytes)))
            file.write(packet.data)
    return path
