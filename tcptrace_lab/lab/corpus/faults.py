"""Adds faults to a correct capture.

A fault drops, duplicates or truncates packets, or changes their timestamps or addresses. Each packet keeps its true time, so that the
ledger of a faulty capture can be compared with the kernel's ledger.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from tcptrace_lab.capture.pcapng_copy import (
    ENHANCED_PACKET,
    INTERFACE,
    OPTION_END,
    OPTION_RESOLUTION,
    PACKET_HEAD_BYTES,
    PCAP_HEADER_BYTES,
    PCAP_UNITS,
    RECORD_HEADER_BYTES,
    is_plain_pcap,
)
from tcptrace_lab.lab.corpus.middle import NANOSECOND_MAGIC, SNAPLEN_BYTES
from tcptrace_lab.lab.networks.network import CLIENT_IPV4
from tcptrace_lab.lab.networks.tcp_headers import ETHERNET_BYTES, tcp_head
from tcptrace_lab.text.numbers import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from random import Random

SOURCE, TARGET = slice(ETHERNET_BYTES + 12, ETHERNET_BYTES + 16), slice(ETHERNET_BYTES + 16, ETHERNET_BYTES + 20)
"""Offsets of the two addresses in an Ethernet frame that contains an IPv4 packet."""
IP_CHECKSUM = ETHERNET_BYTES + 10
TRANSLATED_IPV4, TRANSLATED_PORTS = "198.51.100.7", 10_000
"""Address of the NAT (RFC 5737), and the number that the NAT adds to the client's port."""
MICROSECOND = 1_000
_MICROSECONDS = 6  # decimal digits of a second, the default resolution of pcapng timestamps


@dataclass(frozen=True, slots=True)
class Packet:
    """One frame.

    Attributes:
        at_ns: timestamp in the capture.
        passed_ns: true time at which the frame passed the capture point.
        data: the first bytes of the frame.
        frame_bytes: length of the frame on the wire.
    """

    at_ns: int
    passed_ns: int
    data: bytes
    frame_bytes: int

    @property
    def from_client(self) -> bool:
        """Return whether the client of the private network sent this packet."""
        return self.data[SOURCE] == _CLIENT


_CLIENT = IPv4Address(CLIENT_IPV4).packed
Packets = list[Packet]


def read_packets(path: Path) -> tuple[int, Packets]:
    """Read the link type and all packets of a capture made by the lab.

    The capture has one interface and is little-endian.
    """
    raw = path.read_bytes()
    return _pcap(raw) if is_plain_pcap(raw) else _pcapng(raw)


def _pcap(raw: bytes) -> tuple[int, Packets]:
    per_fraction = NS_PER_S // 10 ** PCAP_UNITS[struct.unpack_from("<I", raw)[0]]
    (link,) = struct.unpack_from("<I", raw, PCAP_HEADER_BYTES - 4)
    packets, place = Packets(), PCAP_HEADER_BYTES
    while place < len(raw):
        seconds, fraction, kept, whole = struct.unpack_from("<IIII", raw, place)
        place += RECORD_HEADER_BYTES
        at_ns = seconds * NS_PER_S + fraction * per_fraction
        packets.append(Packet(at_ns, at_ns, raw[place : place + kept], whole))
        place += kept
    return link, packets


def _pcapng(raw: bytes) -> tuple[int, Packets]:
    packets, place, link, per_tick = Packets(), 0, 0, MICROSECOND
    while place < len(raw):
        kind, size = struct.unpack_from("<II", raw, place)
        if kind == INTERFACE:
            (link,) = struct.unpack_from("<H", raw, place + 8)
            per_tick = NS_PER_S // 10 ** _resolution(raw[place + 16 : place + size - 4])
        elif kind == ENHANCED_PACKET:
            _, high, low, kept, whole = struct.unpack_from("<IIIII", raw, place + 8)
            at_ns = ((high << 32) + low) * per_tick
            start = place + PACKET_HEAD_BYTES
            packets.append(Packet(at_ns, at_ns, raw[start : start + kept], whole))
        place += size
    return link, packets


def _resolution(options: bytes) -> int:
    place = 0
    while place + 4 <= len(options):
        kind, size = struct.unpack_from("<HH", options, place)
        if kind == OPTION_RESOLUTION:
            return options[place + 4]
        if kind == OPTION_END:
            break
        place += 4 + size + -size % 4
    return _MICROSECONDS


def write_packets(path: Path, link: int, packets: Sequence[Packet]) -> None:
    """Write a pcap file with nanosecond timestamps."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", NANOSECOND_MAGIC, 2, 4, 0, 0, SNAPLEN_BYTES, link))
        for packet in packets:
            seconds, rest_ns = divmod(packet.at_ns, NS_PER_S)
            file.write(struct.pack("<IIII", seconds, rest_ns, len(packet.data), packet.frame_bytes) + packet.data)


Fault = "Callable[[Packets, Random], Packets]"


def _dropped(share: float) -> Callable[[Packets, Random], Packets]:
    return lambda packets, chance: [packet for packet in packets if chance.random() >= share]


def _dropped_in_bursts(every: int, longest: int) -> Callable[[Packets, Random], Packets]:
    """Drop runs of consecutive packets, as a full capture buffer does."""

    def fault(packets: Packets, chance: Random) -> Packets:
        kept, missing = Packets(), 0
        for packet in packets:
            if missing == 0 and chance.random() < 1 / every:
                missing = chance.randint(longest // 5, longest)
            if missing:
                missing -= 1
            else:
                kept.append(packet)
        return kept

    return fault


def _twice(packets: Packets, chance: Random) -> Packets:
    """Duplicate every packet. A SPAN port does so if it mirrors ingress and egress."""
    again = [replace(packet, at_ns=packet.at_ns + chance.randint(2, 30) * MICROSECOND) for packet in packets]
    return sorted([*packets, *again], key=lambda packet: packet.at_ns)


def _between(first: float, last: float) -> Callable[[Packets, Random], Packets]:
    """Keep only the packets from `first` to `last`, as shares of the capture's duration."""

    def fault(packets: Packets, _chance: Random) -> Packets:
        start_ns, end_ns = packets[0].at_ns, packets[-1].at_ns
        from_ns, to_ns = (start_ns + (end_ns - start_ns) * share for share in (first, last))
        return [packet for packet in packets if from_ns <= packet.at_ns <= to_ns]

    return fault


def _one_direction(*, of_data: bool) -> Callable[[Packets, Random], Packets]:
    """Keep the packets of one host: the host that sends more bytes if `of_data` is True, otherwise the other host."""

    def fault(packets: Packets, _chance: Random) -> Packets:
        sent = dict.fromkeys((True, False), 0)
        for packet in packets:
            head = tcp_head(packet.data, ethernet=True)
            sent[packet.from_client] += head.payload_bytes if head else 0
        sender = sent[True] >= sent[False]
        return [packet for packet in packets if packet.from_client == (sender == of_data)]

    return fault


def _ticking(tick_ns: int) -> Callable[[Packets, Random], Packets]:
    """Round the timestamps down to the ticks of a coarse clock."""
    return lambda packets, _chance: [replace(packet, at_ns=packet.at_ns // tick_ns * tick_ns) for packet in packets]


def _stepped(step_ns: int) -> Callable[[Packets, Random], Packets]:
    """Change the timestamps as if the clock had been set in the middle of the capture."""

    def fault(packets: Packets, _chance: Random) -> Packets:
        middle = len(packets) // 2
        return [*packets[:middle], *(replace(packet, at_ns=packet.at_ns + step_ns) for packet in packets[middle:])]

    return fault


def _cut(snaplen_bytes: int) -> Callable[[Packets, Random], Packets]:
    return lambda packets, _chance: [replace(packet, data=packet.data[:snaplen_bytes]) for packet in packets]


def _translated(packets: Packets, _chance: Random) -> Packets:
    """Replace the client's address and port, as in a capture behind a NAT."""
    return [replace(packet, data=_with_other_client(packet)) for packet in packets]


def _with_other_client(packet: Packet) -> bytes:
    data = bytearray(packet.data)
    data[SOURCE if packet.from_client else TARGET] = IPv4Address(TRANSLATED_IPV4).packed
    port_at = ETHERNET_BYTES + (data[ETHERNET_BYTES] & 0xF) * 4 + (0 if packet.from_client else 2)
    (port,) = struct.unpack_from("!H", data, port_at)
    struct.pack_into("!H", data, port_at, translated_port(port))
    struct.pack_into("!H", data, IP_CHECKSUM, 0)
    words = struct.unpack_from("!10H", data, ETHERNET_BYTES)
    folded = sum(words) % 0xFFFF  # one's complement sum
    struct.pack_into("!H", data, IP_CHECKSUM, 0xFFFF - folded)
    return bytes(data)


def translated_port(port: int) -> int:
    """Return the port after NAT. Different ports stay different."""
    return (port + TRANSLATED_PORTS) % (1 << 16)


ONLY_HEADERS = ETHERNET_BYTES + 40
"""Bytes of the Ethernet, IPv4 and TCP headers without options."""

FAULTS: Mapping[str, Callable[[Packets, Random], Packets]] = {
    "dropped-0.1-percent": _dropped(0.001),
    "dropped-1-percent": _dropped(0.01),
    "dropped-10-percent": _dropped(0.1),
    "dropped-in-bursts": _dropped_in_bursts(1_000, 50),
    "every-packet-twice": _twice,
    "begun-late": _between(0.3, 1.0),
    "ended-early": _between(0.0, 0.7),
    "only-data": _one_direction(of_data=True),
    "only-acks": _one_direction(of_data=False),
    "clock-of-1-ms": _ticking(NS_PER_MS),
    "clock-of-10-ms": _ticking(10 * NS_PER_MS),
    "clock-ahead-50-ms": _stepped(50 * NS_PER_MS),
    "clock-back-50-ms": _stepped(-50 * NS_PER_MS),
    "snaplen-54": _cut(ONLY_HEADERS),
    "translated": _translated,
}
"""Function that adds each fault to a capture."""


def faulty(packets: Packets, name: str, chance: Random) -> Packets:
    """Return the packets with the named fault added."""
    return FAULTS[name](packets, chance)


def names(wanted: Sequence[str]) -> Iterator[str]:
    """Yield the names of faults that begin with a string in `wanted`. If `wanted` is empty, yield all names."""
    return (name for name in FAULTS if not wanted or any(name.startswith(begin) for begin in wanted))
