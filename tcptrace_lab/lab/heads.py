"""The first bytes of a packet, as the path's log keeps them → the numbers that tell which packet it was."""

from __future__ import annotations

import struct
from typing import NamedTuple

ETHERNET_BYTES, IPV6_BYTES = 14, 40
LEAST_BYTES = 40  # the shortest headers of IPv4 and TCP
IPV4, IPV6 = 4, 6
TCP = 6  # IANA protocol number
_TCP = "!HHIIBB"
SYN, FIN = 0x02, 0x01


class TcpHead(NamedTuple):
    """What the headers of one TCP segment say; `ip_id` is None for IPv6."""

    source_port: int
    target_port: int
    seq: int
    ack: int
    flags: int
    payload_bytes: int
    ip_id: int | None

    @property
    def occupied(self) -> int:
        """Sequence numbers that it takes: its bytes, and 1 each for SYN and FIN."""
        return self.payload_bytes + bool(self.flags & SYN) + bool(self.flags & FIN)


def tcp_head(head: bytes, *, ethernet: bool) -> TcpHead | None:
    """Read the head of a frame (`ethernet`) or of an IP packet; None if it is not TCP. No IPv6 extension headers, no fragments."""
    start = ETHERNET_BYTES if ethernet else 0
    if len(head) < start + LEAST_BYTES:
        return None
    version = head[start] >> 4
    if version == IPV4 and head[start + 9] == TCP:
        header_bytes = (head[start] & 0xF) * 4
        total_bytes, ip_id = struct.unpack_from("!HH", head, start + 2)
        return _tcp(head, start + header_bytes, total_bytes - header_bytes, ip_id)
    if version == IPV6 and head[start + 6] == TCP:
        (payload_bytes,) = struct.unpack_from("!H", head, start + 4)
        return _tcp(head, start + IPV6_BYTES, payload_bytes, None)
    return None


def _tcp(head: bytes, at: int, tcp_bytes: int, ip_id: int | None) -> TcpHead | None:
    if len(head) < at + struct.calcsize(_TCP):
        return None
    source, target, seq, ack, offset, flags = struct.unpack_from(_TCP, head, at)
    return TcpHead(source, target, seq, ack, flags, tcp_bytes - (offset >> 4) * 4, ip_id)
