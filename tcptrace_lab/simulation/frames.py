"""Converts the segments of a run to complete IP packets, with checksums, IP IDs, and TCP timestamps if both stacks use them.

dpkt writes the headers and their checksums. Each payload byte is its sequence number modulo 251; the first byte is 1. So a reader can check
reassembly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dpkt.ip import IP, IP_DF, IP_PROTO_TCP
from dpkt.tcp import TCP, TCP_OPT_MSS, TCP_OPT_NOP, TCP_OPT_TIMESTAMP, TCP_OPT_WSCALE

from tcptrace_lab.stacks.packet import ACK, SYN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.stacks import Packet, Run, Setting

_PERIOD: Final = 251
_PATTERN: Final = bytes(range(_PERIOD)) * (65_536 // _PERIOD + 2)
_SEQUENCE_SPACE: Final = 1 << 32
_WINDOW_FIELD_MAX: Final = 65_535
_TTL: Final = 64
_NS_PER_TICK: Final = 1_000_000
"""Tick of the TCP timestamp clock. Linux and FreeBSD use 1 ms, too, and RFC 7323 allows 1 ms to 1 s."""


@dataclass(frozen=True, slots=True)
class End:
    """Address and port of a host, and its initial sequence number."""

    address: bytes
    port: int
    isn: int


CLIENT: Final = End(bytes((10, 0, 0, 1)), 40_000, 1_000_000_000)
SERVER: Final = End(bytes((10, 0, 0, 2)), 5_001, 3_000_000_000)


class _Side:
    """Values of one host that its next packet depends on, such as its last IP ID, its window scale, and the timestamp to echo."""

    def __init__(self, end: End, peer: End, *, timestamps: bool) -> None:
        self._end, self._peer = end, peer
        self._timestamps = timestamps
        self._ip_id = 0
        self._scale = 0
        self._echo = 0
        self._acknowledged = 0

    def receives(self, packet: Packet) -> None:
        """Update TS.Recent (RFC 7323, 4.3) if a received segment covers the last acknowledged sequence number."""
        if packet.flags & SYN or packet.seq <= self._acknowledged:
            self._echo = max(self._echo, _ticks(packet.sent_ns))

    def sends(self, packet: Packet) -> bytes:
        """Build the IP packet of a segment that this host sends."""
        self._ip_id = (self._ip_id + 1) % 65_536
        if packet.flags & ACK:
            self._acknowledged = packet.ack
        segment = TCP(
            sport=self._end.port,
            dport=self._peer.port,
            seq=(self._end.isn + packet.seq) % _SEQUENCE_SPACE,
            ack=(self._peer.isn + packet.ack) % _SEQUENCE_SPACE if packet.flags & ACK else 0,
            flags=packet.flags,
            win=self._window_field(packet),
            opts=self._options(packet),
            data=payload(packet),
        )
        segment.off = 5 + len(segment.opts) // 4
        datagram = IP(src=self._end.address, dst=self._peer.address, p=IP_PROTO_TCP, id=self._ip_id, ttl=_TTL, data=segment)
        datagram._flags_offset = IP_DF  # noqa: SLF001  (dpkt has only this name for the field)
        datagram.len = len(datagram)
        return bytes(datagram)

    def _window_field(self, packet: Packet) -> int:
        if packet.flags & SYN:
            self._scale = packet.window_scale or 0
            return min(packet.window_bytes, _WINDOW_FIELD_MAX)
        return min(packet.window_bytes >> self._scale, _WINDOW_FIELD_MAX)

    def _options(self, packet: Packet) -> bytes:
        found = b""
        if packet.mss_bytes is not None:
            found += bytes((TCP_OPT_MSS, 4)) + packet.mss_bytes.to_bytes(2)
        if packet.window_scale is not None:
            found += bytes((TCP_OPT_NOP, TCP_OPT_WSCALE, 3, packet.window_scale))
        if self._timestamps:
            echo = self._echo if packet.flags & ACK else 0
            found += bytes((TCP_OPT_NOP, TCP_OPT_NOP, TCP_OPT_TIMESTAMP, 10)) + _ticks(packet.sent_ns).to_bytes(4) + echo.to_bytes(4)
        return found


def _ticks(time_ns: int) -> int:
    """Return the value of the TCP timestamp clock. It starts at 1, because 0 means that there is no timestamp."""
    return (time_ns // _NS_PER_TICK + 1) % _SEQUENCE_SPACE


def payload(packet: Packet) -> bytes:
    """Return the payload of a segment. Each byte is its sequence number modulo 251."""
    start = packet.seq % _PERIOD
    return _PATTERN[start : start + packet.payload_bytes]


def frames(run: Run, setting: Setting, *, at_client: bool) -> Iterator[tuple[int, bool, bytes]]:
    """Yield the packets that one host captures, by time: time in ns of the run, True if the client sent the packet, and the IP packet.

    A packet of the host is captured when its first bit is sent, even if the path loses the packet. A packet of the peer is captured when
    its last bit arrives.
    """
    timestamps = bool(setting.client.stack.option_bytes and setting.server.stack.option_bytes)
    sides = {True: _Side(CLIENT, SERVER, timestamps=timestamps), False: _Side(SERVER, CLIENT, timestamps=timestamps)}
    built: dict[int, bytes] = {}
    for time_ns, index, is_arrival in _events(run):
        packet = run.packets[index]
        if is_arrival:
            sides[not packet.from_client].receives(packet)
        else:
            built[index] = sides[packet.from_client].sends(packet)
        if is_arrival != (packet.from_client == at_client):
            yield time_ns, packet.from_client, built[index]
        if is_arrival or packet.arrived_ns is None:
            del built[index]


def _events(run: Run) -> list[tuple[int, int, bool]]:
    """Return time, packet index, and True for an arrival or False for a transmission, by time. Equal times are in the order of sending."""
    events = [(packet.sent_ns, index, False) for index, packet in enumerate(run.packets)]
    events += [(packet.arrived_ns, index, True) for index, packet in enumerate(run.packets) if packet.arrived_ns is not None]
    return sorted(events)
