"""Writes an anonymous pcapng copy of a capture: newly built IP headers, the TCP headers, and comments.

Only the TCP header of each frame is copied, without options that can contain an address. Ethernet and tunnel headers, IP options, payload,
comments and interface names of the capture are left out. The IP header has pseudonyms for addresses. Its length, TTL, ECN bits and
identification are those of the original. A frame without a recognizable TCP header (other protocols, IP fragments, ATM cells) has no bytes
in the copy, so that frame numbers stay the same.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import IO, TYPE_CHECKING, Any

from tcptrace_lab.capture import decompression
from tcptrace_lab.capture.frames import every
from tcptrace_lab.engine import memory
from tcptrace_lab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tcptrace_lab.analysis import Analysis

READABLE = ("pcap", "pcapng")

RAW_IP, NANOSECONDS, IP_TCP = 101, 9, 6
"""LINKTYPE_RAW; the value of `if_tsresol` for nanoseconds; the protocol number of TCP."""

TCP_HEAD_BYTES, IPV4_BYTES, IPV6_BYTES = 20, 20, 40
MODULUS = 1 << 32

KNOWN_OPTIONS = frozenset({2, 3, 4, 5, 8})
"""MSS, window scale, SACK permitted, SACK, timestamps. Other options, such as those of Multipath TCP, can contain addresses. They are
replaced by padding."""
END, NOP = 0, 1

COMMENT, RESOLUTION, MAX_COMMENT_BYTES = 1, 9, 0xFFFF

_COLUMNS = ("frame", "ts_ns", "conn", "from_client", "seq", "payload_bytes", "ttl", "ip_id", "ect", "ce")


def write(path: str, analysis: Analysis, comments: Mapping[int, Sequence[str]], target: IO[bytes]) -> None:
    """Write the copy.

    Args:
        path: the file that was analyzed.
        analysis: its analysis, with pseudonyms for addresses.
        comments: frame number → comments.
        target: receives the pcapng file.

    Raises:
        UsageError: the file is neither pcap nor pcapng.
        OSError: `target` cannot be written.
    """
    if not any(name in analysis.capture["format"] for name in READABLE):
        remedy = "convert it first: editcap -F pcapng"
        raise UsageError("an anonymous copy can only be made of pcap and pcapng", remedy=remedy)
    names = ("client_addr", "client_port", "server_addr", "server_port")
    ends = {conn: tuple(rest) for conn, *rest in analysis.connections.select("conn", *names).collect().iter_rows()}
    target.write(_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    target.write(_block(1, struct.pack("<HHI", RAW_IP, 0, 0) + struct.pack("<HHB3x", RESOLUTION, 1, NANOSECONDS) + bytes(4)))
    bases: dict[tuple[int, bool], int] = {}
    rows, row = _rows(analysis.segments), None
    with decompression.plain(path) as plain:
        row = next(rows, None)
        for number, frame in enumerate(every(plain), 1):
            if number > analysis.capture["packets"]:
                break
            if row is None or row["frame"] != number:
                target.write(_packet(frame.at // 1000, b"", len(frame.data), comments.get(number, ())))
                continue
            data, wire_bytes = _segment(frame.data, row, ends[row["conn"]], bases)
            target.write(_packet(row["ts_ns"] or 0, data, wire_bytes, comments.get(number, ())))
            row = next(rows, None)


def _rows(segments: pl.LazyFrame) -> Iterator[dict[str, Any]]:
    for batch in memory.batches(segments.select(_COLUMNS)):
        yield from batch.iter_rows(named=True)


def _segment(data: bytes, row: Mapping[str, Any], ends: tuple[Any, ...], bases: dict[tuple[int, bool], int]) -> tuple[bytes, int]:
    """Return the packet of a segment without payload, and its length on the wire. The packet is empty if its TCP header is not found."""
    sender, receiver = (ends[:2], ends[2:]) if row["from_client"] else (ends[2:], ends[:2])
    head = _tcp_head(data, struct.pack("!HH", sender[1], receiver[1]), row, bases)
    addresses = [ipaddress.ip_address(address) for address, _ in (sender, receiver)]
    source, destination = (address.packed for address in addresses)
    after = len(head) + row["payload_bytes"]
    traffic_class = 3 if row["ce"] else row["ect"] or 0
    if addresses[0].version == 4:  # noqa: PLR2004  (IPv4)
        ip = struct.pack(
            "!BBHHHBBH", 0x45, traffic_class, (IPV4_BYTES + after) & 0xFFFF, row["ip_id"] or 0, 0x4000, row["ttl"] or 64, IP_TCP, 0
        )
    else:
        ip = struct.pack("!IHBB", 6 << 28 | traffic_class << 20, after & 0xFFFF, IP_TCP, row["ttl"] or 64)
    ip += source + destination
    return (ip + head if head else b""), len(ip) + after


def _tcp_head(data: bytes, ports: bytes, row: Mapping[str, Any], bases: dict[tuple[int, bool], int]) -> bytes:
    """Return the TCP header, found by its ports and by a sequence number that fits the earlier segments; empty if it is not found.

    Unknown options are replaced by padding. The checksum and the urgent pointer are zero.
    """
    direction = row["conn"], row["from_client"]
    at = data.find(ports)
    while at >= 0:
        head = data[at : at + TCP_HEAD_BYTES]
        size = (head[12] >> 4) * 4 if len(head) == TCP_HEAD_BYTES else 0
        if TCP_HEAD_BYTES <= size <= len(data) - at:
            base = (int.from_bytes(head[4:8], "big") - row["seq"]) % MODULUS if row["seq"] is not None else None
            if base is None or bases.setdefault(direction, base) == base:
                return head[:16] + bytes(4) + _options(data[at + TCP_HEAD_BYTES : at + size])
        at = data.find(ports, at + 1)
    return b""


def _options(options: bytes) -> bytes:
    """Return the TCP options, with padding in place of all unknown options."""
    kept, at = bytearray(bytes((NOP,)) * len(options)), 0
    while at < len(options) and options[at] != END:
        if options[at] == NOP:
            at += 1
            continue
        size = options[at + 1] if at + 1 < len(options) else 0
        if size < 2 or at + size > len(options):  # noqa: PLR2004  (kind and length)
            break
        if options[at] in KNOWN_OPTIONS:
            kept[at : at + size] = options[at : at + size]
        at += size
    return bytes(kept)


def _packet(ts_ns: int, data: bytes, wire_bytes: int, comments: Sequence[str]) -> bytes:
    body = struct.pack("<IIIII", 0, ts_ns >> 32, ts_ns & 0xFFFF_FFFF, len(data), wire_bytes) + data + bytes(-len(data) % 4)
    for comment in comments:
        text = comment.encode()[:MAX_COMMENT_BYTES]
        body += struct.pack("<HH", COMMENT, len(text)) + text + bytes(-len(text) % 4)
    return _block(6, body + (bytes(4) if comments else b""))


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size
