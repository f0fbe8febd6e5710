"""Parses the first bytes of a packet in the path's log, and returns the header fields that identify the packet."""

from __future__ import annotations

import struct
from typing import NamedTuple

ETHERNET_BYTES, IPV6_BYTES = 14, 40
MIN_BYTES = 40  # shortest IPv4 header plus shortest TCP header
IPV4, IPV6 = 4, 6
TCP = 6  # IANA protocol number
_TCP = "!HHIIBB"
SYN, FIN = 0x02, 0x01


TIMESTAMPS, END, NOP = 8, 0, 1  # kinds of TCP options
KIND_AND_LENGTH = 2  # bytes of kind and length, which all options have except End of Option List and No-Operation


class TcpHead(NamedTuple):
    """Header fields of one TCP segment. `ip_id` is None for IPv6, `tsval` is None without the timestamps option."""

    source_port: int
    target_port: int
    seq: int
    ack: int
    flags: int
    payload_bytes: int
    ip_id: int | None
    tsval: int | None = None

    @property
    def occupied(self) -> int:
        """Return the length in sequence space (SEG.LEN of RFC 9293): the payload bytes, plus 1 each for SYN and FIN."""
        return self.payload_bytes + bool(self.flags & SYN) + bool(self.flags & FIN)


def tcp_head(head: bytes, *, ethernet: bool) -> TcpHead | None:
    """Parse the first bytes of a frame (`ethernet`) or of an IP packet. Return None if they contain no TCP header.

    IPv6 extension headers and fragments are not supported.
    """
    start = ETHERNET_BYTES if ethernet else 0
    if len(head) < start + MIN_BYTES:
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
    header_bytes = (offset >> 4) * 4
    tsval = _tsval(head[at + struct.calcsize(_TCP) + 6 : at + header_bytes])  # the options follow window, checksum and urgent pointer
    return TcpHead(source, target, seq, ack, flags, tcp_bytes - header_bytes, ip_id, tsval)


def _tsval(options: bytes) -> int | None:
    place = 0
    while place < len(options) and options[place] != END:
        if options[place] == NOP:
            place += 1
            continue
        if place + 1 >= len(options) or options[place + 1] < KIND_AND_LENGTH:
            return None
        if options[place] == TIMESTAMPS and place + 6 <= len(options):
            return int.from_bytes(options[place + 2 : place + 6], "big")
        place += options[place + 1]
    return None
