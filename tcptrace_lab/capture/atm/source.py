"""Reads the IP packets of a pcap or pcapng file. Only link types that need no reassembly are supported."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.errors import CaptureUnreadable, NotACapture
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO, Literal


ETHER_TYPES = {4: 0x0800, 6: 0x86DD}
"""IP version → EtherType."""
_VLAN_TYPES = {0x8100, 0x88A8, 0x9100, 0x9200}
_IPV4_HEADER_BYTES, _IPV6_HEADER_BYTES, _TCP_HEADER_BYTES, _TCP = 20, 40, 20, 6


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of the source: its time, link type, captured bytes and length on the wire."""

    ts_ns: int
    link_type: int
    data: bytes
    wire_bytes: int


def frames(file: BinaryIO) -> Iterator[Frame]:
    """Yield the frames of a pcap or pcapng file. Raises NotACapture for other formats, and CaptureUnreadable for damaged files."""
    from dpkt import Error, pcap  # noqa: PLC0415  (only conversions need dpkt)

    magic = file.read(4)
    file.seek(0)
    try:
        if magic == _PCAPNG_MAGIC:
            yield from _pcapng_frames(file)
        elif int.from_bytes(magic, "big") in pcap.MAGIC_TO_PKT_HDR:
            yield from _pcap_frames(file)
        else:
            raise NotACapture("not a pcap or pcapng file", remedy="unpack it, or convert it first: editcap -F pcapng IN OUT")
    except (Error, UnicodeDecodeError) as error:  # dpkt decodes comments in options as text
        raise CaptureUnreadable(f"damaged: {error}") from error


def _pcap_frames(file: BinaryIO) -> Iterator[Frame]:
    from dpkt import pcap  # noqa: PLC0415  (see frames)

    start = _exactly(file, pcap.FileHdr.__hdr_len__)
    header = pcap.FileHdr(start)
    if header.magic in {pcap.PMUDPCT_MAGIC, pcap.PMUDPCT_MAGIC_NANO, pcap.PACPDOM_MAGIC}:
        header = pcap.LEFileHdr(start)
    record_type = pcap.MAGIC_TO_PKT_HDR[pcap.FileHdr(start).magic]
    unit_ns = 1 if header.magic == pcap.TCPDUMP_MAGIC_NANO else 1000
    while start := file.read(record_type.__hdr_len__):
        record = record_type(start)
        data = _exactly(file, record.caplen)
        # The lower 16 bits are the link type; the upper 16 bits describe the frame check sequence.
        yield Frame(record.tv_sec * NS_PER_S + record.tv_usec * unit_ns, header.linktype & 0xFFFF, data, max(record.len, len(data)))


_PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
_MAX_RECORD_BYTES = 16 << 20
"""No frame is longer than this. A larger length in a record means that the file is damaged."""


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count) if 0 <= count <= _MAX_RECORD_BYTES else None
    if data is None or len(data) < count:
        raise CaptureUnreadable("damaged, or cut inside a record")
    return data


@dataclass(frozen=True, slots=True)
class _Interface:
    link_type: int
    ticks_per_s: int
    offset_s: int


def _pcapng_frames(file: BinaryIO) -> Iterator[Frame]:
    from dpkt import pcapng  # noqa: PLC0415  (see frames)

    little = True
    interfaces: list[_Interface] = []
    while head := file.read(8):
        if head.startswith(_PCAPNG_MAGIC):
            order = _exactly(file, 4)
            little = order == pcapng.BYTE_ORDER_MAGIC.to_bytes(4, "little")
            interfaces = []
            _exactly(file, int.from_bytes(head[4:], "little" if little else "big") - len(head + order))
            continue
        kind, block_bytes = struct.unpack("<II" if little else ">II", head.ljust(8, b"\0"))
        block = head + _exactly(file, block_bytes - len(head))
        if kind == pcapng.PCAPNG_BT_IDB:
            described = (pcapng.InterfaceDescriptionBlockLE if little else pcapng.InterfaceDescriptionBlock)(block)
            interfaces.append(_interface(described, "little" if little else "big"))
        elif kind in {pcapng.PCAPNG_BT_EPB, pcapng.PCAPNG_BT_PB}:
            number, high, low, captured, wire_bytes = struct.unpack_from("<5I" if little else ">5I", block.ljust(28, b"\0"), 8)
            if kind == pcapng.PCAPNG_BT_PB:
                number = number & 0xFFFF if little else number >> 16  # in a packet block, the other 16 bits count dropped packets
            if number >= len(interfaces) or 28 + captured > len(block):
                raise CaptureUnreadable("damaged: a packet contradicts its block")
            yield _pcapng_frame(interfaces[number], high << 32 | low, block[28 : 28 + captured], wire_bytes)
        elif kind == pcapng.PCAPNG_BT_SPB:
            raise CaptureUnreadable("holds packets without times")


def _pcapng_frame(interface: _Interface, ticks: int, data: bytes, wire_bytes: int) -> Frame:
    ts_ns = ticks * NS_PER_S // interface.ticks_per_s + interface.offset_s * NS_PER_S
    return Frame(ts_ns, interface.link_type, data, max(wire_bytes, len(data)))


def _interface(block: Any, order: Literal["little", "big"]) -> _Interface:  # noqa: ANN401  (dpkt publishes no types)
    from dpkt import pcapng  # noqa: PLC0415  (see frames)

    options = {option.code: option.data for option in getattr(block, "opts", ())}
    resolution = (options.get(pcapng.PCAPNG_OPT_IF_TSRESOL) or b"\x06")[0]
    ticks_per_s = 1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    offset_s = int.from_bytes(options.get(pcapng.PCAPNG_OPT_IF_TSOFFSET, b""), order, signed=True)
    return _Interface(block.linktype, ticks_per_s, offset_s)


def ip_packet(frame: Frame) -> tuple[bytes, int] | None:
    """Return the captured bytes of the IP packet in `frame`, and its length on the wire; None if the frame has no IP packet.

    The length comes from the IP header, but is at most the number of bytes after the link-layer header. If the IP header has length 0
    (segmentation offload, BIG TCP), the packet fills the frame. Raises ValueError for unsupported link types.
    """
    offset = _ip_offset(frame)
    packet = b"" if offset is None else frame.data[offset:]
    version = packet[0] >> 4 if packet else None
    if offset is None or version not in ETHER_TYPES:
        return None
    at, before = (2, 0) if version == 4 else (4, _IPV6_HEADER_BYTES)  # noqa: PLR2004  (the version of IP)
    length = int.from_bytes(packet[at : at + 2], "big")
    on_wire = frame.wire_bytes - offset
    wire_bytes = min(length + before, on_wire) if length else on_wire
    return packet[:wire_bytes], wire_bytes


def _ip_offset(frame: Frame) -> int | None:
    """Return the offset of the IP packet; None if the link-layer header announces another protocol."""
    data = frame.data
    match frame.link_type:
        case 0 | 108:  # NULL, LOOP
            return 4
        case 12 | 14 | 101 | 228 | 229:  # link types RAW (which has three numbers), IPV4 and IPV6
            return 0
        case 1:  # Ethernet
            at = 12
            while int.from_bytes(data[at : at + 2], "big") in _VLAN_TYPES:
                at += 4
            return _behind_type(data, at, at + 2)
        case 113:  # SLL
            return _behind_type(data, 14, 16)
        case 276:  # SLL2
            return _behind_type(data, 0, 20)
        case other:
            raise ValueError(f"frames of link type {other} are not converted")


def _behind_type(data: bytes, at: int, offset: int) -> int | None:
    return offset if int.from_bytes(data[at : at + 2], "big") in ETHER_TYPES.values() else None


def header_bytes(packet: bytes) -> int:
    """Return the length of the IP and TCP headers.

    If the captured bytes do not show the length, the result exceeds the number of captured bytes.
    """
    padded = packet.ljust(_IPV6_HEADER_BYTES, b"\0")
    if packet[0] >> 4 == 4:  # noqa: PLR2004  (the version of IP)
        ip_bytes, protocol = (packet[0] & 0x0F) * 4, padded[9]
        is_later_fragment = int.from_bytes(padded[6:8], "big") & 0x1FFF
        ip_bytes = max(ip_bytes, _IPV4_HEADER_BYTES)
    else:
        ip_bytes, protocol, is_later_fragment = _IPV6_HEADER_BYTES, padded[6], 0
    if protocol != _TCP or is_later_fragment:
        return ip_bytes
    words = packet[ip_bytes + 12] >> 4 if len(packet) > ip_bytes + 12 else 0
    return ip_bytes + max(words * 4, _TCP_HEADER_BYTES)
