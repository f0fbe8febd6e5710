"""What TCP over ATM costs, and any TCP capture rewritten as one taken on an ATM line.

The first part is arithmetic: how many cells a packet takes, and what share of the line is left for data. The second, `convert`, makes
captures of TCP/ATM from captures of the same TCP on other links, down to the cells and to cells that the line lost.

Sources: RFC 2684 (what an AAL5 PDU begins with), RFC 2225 (classical IP over ATM), ITU-T I.363.5 (AAL5: padding, trailer, CRC), ITU-T
I.361 (the cell's header), Endace's "ERF Types Reference Guide" (EDM11-01) and libpcap's pcap-dag.c (ERF records, and how they stand in
pcap), the LINKTYPE registry of tcpdump.org, RFC 1662 (PPP's framing).

A caution about cells: the lines that are modelled carry OC-3c's 149.76 Mb/s. Where the original was faster, the cells of a PDU begin before
the PDU in front of them ended: their times step back, as the times of no real line do.
"""

from __future__ import annotations

import functools
import struct
import zlib
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from tcptrace_lab.errors import CaptureUnreadable, NotACapture, UsageError, place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path
    from typing import Any, BinaryIO, Literal

CELL_BYTES = 53
"""A cell on the line: 4 bytes of header, the header's checksum (HEC), 48 of payload (I.361)."""

CELL_PAYLOAD_BYTES = 48
AAL5_TRAILER_BYTES = 8
"""User-to-user byte, common-part indicator, 2 bytes of length, 4 of CRC (I.363.5, 9.2.1)."""

LLC_SNAP_BYTES = 8
"""AA-AA-03, organization 00-00-00, Ethernet type (RFC 2684, 5.1)."""

MAX_AAL5_PAYLOAD_BYTES = 65_535
"""The length field of the trailer has 16 bits."""

NS_PER_S = 10**9

OC3C_LINE_BPS = 149_760_000
"""SONET OC-3c, 155.52 Mb/s, less its overhead: 260 of 270 columns carry cells (ANSI T1.105)."""

OC3C_LINE_MBPS = OC3C_LINE_BPS / 10**6

TAXI_100_LINE_MBPS = 100.0
"""TAXI-100: 4B/5B on 125 Mbaud, all of it cells (ATM Forum UNI 3.1)."""


def cells(pdu_bytes: int) -> int:
    """Cells that an AAL5 PDU with a payload of `pdu_bytes` takes: padding and trailer fill the last.

    `pdu_bytes` is what stands before the padding: the IP packet and, if there is one, the LLC/SNAP header.

    Raises:
        ValueError: no PDU has such a payload.
    """
    if not 0 <= pdu_bytes <= MAX_AAL5_PAYLOAD_BYTES:
        raise ValueError(f"an AAL5 PDU holds 0 to {MAX_AAL5_PAYLOAD_BYTES} bytes, not {pdu_bytes}")
    return -(-(pdu_bytes + AAL5_TRAILER_BYTES) // CELL_PAYLOAD_BYTES)


def line_bytes(pdu_bytes: int) -> int:
    """Bytes on the line for an AAL5 PDU with a payload of `pdu_bytes`: its cells, headers included. Raises as `cells` does."""
    return cells(pdu_bytes) * CELL_BYTES


def payload_share(mss_bytes: int, ip_and_tcp_header_bytes: int, *, llc: bool = True) -> float:
    """The share of the line (0 to 1) that is TCP payload when all segments carry `mss_bytes`. ACKs go the other way and cost it nothing.

    Args:
        mss_bytes: payload of a segment.
        ip_and_tcp_header_bytes: headers before it, options included: 40 for IPv4 and TCP without options.
        llc: whether each packet has an LLC/SNAP header (RFC 2684, 5), or the channel carries IP alone (6).

    Raises:
        ValueError: a negative size, or a packet that no PDU holds.
    """
    if mss_bytes < 0 or ip_and_tcp_header_bytes < 0:
        raise ValueError("sizes are not negative")
    return mss_bytes / line_bytes(mss_bytes + ip_and_tcp_header_bytes + (LLC_SNAP_BYTES if llc else 0))


def payload_bound_mbps(line_mbps: float, mss_bytes: int, ip_and_tcp_header_bytes: int, *, llc: bool = True) -> float:
    """Most TCP payload, in Mb/s, that a line of `line_mbps` of cells carries. Otherwise as `payload_share`."""
    return line_mbps * payload_share(mss_bytes, ip_and_tcp_header_bytes, llc=llc)


def oc3c_payload_bound_mbps(mss_bytes: int, ip_and_tcp_header_bytes: int, *, llc: bool = True) -> float:
    """Most TCP payload, in Mb/s, that OC-3c carries. Otherwise as `payload_share`."""
    return payload_bound_mbps(OC3C_LINE_MBPS, mss_bytes, ip_and_tcp_header_bytes, llc=llc)


class AtmForm(StrEnum):
    """What a capture is rewritten as. The ERF forms come twice: as link type of a pcap file, and as a bare file of records."""

    RFC1483_LLC = "rfc1483-llc"
    """LINKTYPE_ATM_RFC1483, each packet behind LLC/SNAP, routed (RFC 2684, 5.1)."""

    RFC1483_BRIDGED = "rfc1483-bridged"
    """LINKTYPE_ATM_RFC1483, an Ethernet frame without FCS behind LLC/SNAP 00-80-C2-00-07 and 2 bytes of padding (RFC 2684, 5.2)."""

    RFC1483_VCMUX = "rfc1483-vcmux"
    """LINKTYPE_ATM_RFC1483, IP at once: the channel carries nothing else (RFC 2684, 6.1)."""

    CLIP = "clip"
    """LINKTYPE_ATM_CLIP, each packet behind LLC/SNAP, the default of Linux's atmclip (RFC 2225, 5.1)."""

    CLIP_VCMUX = "clip-vcmux"
    """LINKTYPE_ATM_CLIP, IP at once, as Linux's atmclip with null encapsulation; the only form of CLIP that Wireshark 4.0 reads."""

    FORE_IP = "fore-ip"
    """What Fore's adapters send without encapsulation: the same bytes as `rfc1483-vcmux`, for there is nothing to tell them by."""

    SUNATM = "sunatm"
    """LINKTYPE_SUNATM: traffic type (LLC), VPI, VCI, then LLC/SNAP and the packet. No direction is known: all are marked received."""

    ERF_AAL5 = "erf-aal5"
    """LINKTYPE_ERF, type 4: ATM header without HEC, LLC/SNAP, packet, padding, trailer."""

    ERF_CELLS = "erf-cells"
    """LINKTYPE_ERF, type 3: one record for each cell, ATM header without HEC. A record's time is when the cell's last bit had passed."""

    ERF_ETH = "erf-eth"
    """LINKTYPE_ERF, type 2: 2 bytes of offset and padding, Ethernet frame, FCS."""

    ERF_POS = "erf-pos"
    """LINKTYPE_ERF, type 1: PPP in HDLC-like framing, FF-03, protocol, packet, 32-bit FCS (RFC 1662, RFC 2615)."""

    ERF_FILE_AAL5 = "erf-file-aal5"
    """The records of `erf-aal5` alone: an `.erf` file."""

    ERF_FILE_CELLS = "erf-file-cells"
    """The records of `erf-cells` alone."""

    ERF_FILE_ETH = "erf-file-eth"
    """The records of `erf-eth` alone."""

    ERF_FILE_POS = "erf-file-pos"
    """The records of `erf-pos` alone."""

    @property
    def is_bare(self) -> bool:
        """True for records without a pcap file around them."""
        return self.startswith("erf-file-")

    @property
    def is_cells(self) -> bool:
        """True if each cell is a record of its own."""
        return self in {AtmForm.ERF_CELLS, AtmForm.ERF_FILE_CELLS}


@dataclass(frozen=True, slots=True)
class Converted:
    """What `convert` did.

    Attributes:
        packets: IP packets written.
        skipped: frames of the source that hold no IP packet, left out.
        padded: packets that the source's snap length had cut, filled with zeros.
        cells: cells that the line carried, lost ones included; None for forms that are not cells.
    """

    packets: int
    skipped: int
    padded: int
    cells: int | None


_POLYNOMIAL = 0x04C1_1DB7


def _crc_of_byte(byte: int) -> int:
    crc = byte << 24
    for _ in range(8):
        crc = (crc << 1 ^ _POLYNOMIAL if crc & 0x8000_0000 else crc << 1) & 0xFFFF_FFFF
    return crc


_CRC_TABLE = tuple(_crc_of_byte(byte) for byte in range(256))


def crc32(data: bytes) -> int:
    """AAL5's CRC-32 (I.363.5, 9.2.1.2): most significant bit first, begun with ones, complemented. "123456789" gives FC891918."""
    crc = 0xFFFF_FFFF
    for byte in data:
        crc = (crc << 8 & 0xFFFF_FFFF) ^ _CRC_TABLE[crc >> 24 ^ byte]
    return crc ^ 0xFFFF_FFFF


def aal5_pdu(payload: bytes) -> bytes:
    """`payload` with padding and trailer: a whole number of 48-byte cell payloads. Raises ValueError beyond 65,535 bytes."""
    padded = payload.ljust(cells(len(payload)) * CELL_PAYLOAD_BYTES - AAL5_TRAILER_BYTES, b"\0")
    unsigned = padded + struct.pack(">BBH", 0, 0, len(payload))
    return unsigned + struct.pack(">I", crc32(unsigned))


def atm_cells(payload: bytes, vpi: int, vci: int) -> list[bytes]:
    """The cells of the PDU that carries `payload`, 52 bytes each: the header without HEC, then 48 of payload.

    The payload type's lowest bit marks the last cell of a PDU (I.361, 2.2.4).

    Raises:
        ValueError: more than 65,535 bytes, or a VPI beyond 8 or VCI beyond 16 bits.
    """
    pdu = aal5_pdu(payload)
    ends = range(CELL_PAYLOAD_BYTES, len(pdu) + 1, CELL_PAYLOAD_BYTES)
    return [atm_header(vpi, vci, ends_pdu=end == len(pdu)) + pdu[end - CELL_PAYLOAD_BYTES : end] for end in ends]


def atm_header(vpi: int, vci: int, *, ends_pdu: bool) -> bytes:
    """The header of a user cell at the user-network interface, without HEC: flow control 0, loss priority 0. Raises ValueError."""
    if not (0 <= vpi < 1 << 8 and 0 <= vci < 1 << 16):
        raise ValueError(f"VPI {vpi} or VCI {vci} is out of range: they have 8 and 16 bits")
    return struct.pack(">I", vpi << 20 | vci << 4 | ends_pdu << 1)


def convert(
    source: Path,
    target: Path,
    form: str,
    *,
    vpi: int = 0,
    vci: int = 32,
    lose_cells: Collection[int] = (),
    pad_cut: bool = True,
) -> Converted:
    """Write the IP packets of the capture `source` as a capture of `form` to `target`; times are kept to the nanosecond.

    Args:
        source: pcap or pcapng, uncompressed; link types Ethernet (with VLAN tags), NULL, LOOP, RAW, IPV4, IPV6, SLL, SLL2. Frames that
            hold no IP packet are left out.
        target: becomes a pcap file with nanosecond times, or a file of ERF records.
        form: an `AtmForm` or its value.
        vpi: the virtual path, 0 to 255, of both directions; without effect on forms that do not tell it.
        vci: the virtual channel, 0 to 65,535, likewise.
        lose_cells: cells that the line lost, counted from 0 over all cells of the file: their records are left out. For forms of
            cells alone.
        pad_cut: fill what the snap length cut with zeros up to the length in the IP header, so that all lengths (and the number of
            cells) are those of the line, while checksums inside are not. If False, a cut frame is refused.

    Raises:
        UsageError: a call that cannot be right: an unknown form or link type, a channel out of range, cells that are not there to
            lose, a packet or time that the form cannot hold, a cut frame that may not be filled, or cannot: its headers are cut.
        CaptureUnreadable: `source` is not a capture of the two formats (NotACapture), or is damaged or cut inside a record.
        OSError: a file cannot be opened, read or written. What was written until an error is removed.
    """
    kind = _form(form)
    if lose_cells and not kind.is_cells:
        raise UsageError(f"the form {kind} has no cells to lose", remedy=f"use {AtmForm.ERF_CELLS} or {AtmForm.ERF_FILE_CELLS}")
    if target.exists() and target.samefile(source):
        raise UsageError("source and target are one file", where=str(target))
    conversion = _Conversion(str(source), kind, (vpi, vci), frozenset(lose_cells), pad_cut=pad_cut)
    with source.open("rb") as reading, target.open("wb") as writing:
        try:
            return conversion.run(reading, _writer(kind, writing))
        except BaseException:
            target.unlink()
            raise


def _form(form: str) -> AtmForm:
    try:
        return AtmForm(form)
    except ValueError:
        raise UsageError(f"there is no form {form!r}", remedy="use one of " + ", ".join(AtmForm)) from None


class _Conversion:
    """One run of `convert`. Inside, a packet that cannot be converted is a ValueError; here it learns its place."""

    def __init__(self, source: str, form: AtmForm, channel: tuple[int, int], lost: frozenset[int], *, pad_cut: bool) -> None:
        self._source = source
        self._form = form
        self._layout = _layout(form)
        self._channel = channel
        self._lost = lost
        self._pad_cut = pad_cut
        self._frame = self._packets = self._skipped = self._padded = self._cells = 0

    def run(self, reading: BinaryIO, write: Callable[[int, bytes], None]) -> Converted:
        try:
            for frame in _frames(reading):
                self._frame += 1
                packet = self._packet(frame)
                if packet is None:
                    self._skipped += 1
                    continue
                self._packets += 1
                for ts_ns, record in self._records(frame.ts_ns, packet):
                    write(ts_ns, record)
        except ValueError as error:
            raise UsageError(str(error), where=place(self._source, self._frame, None)) from error
        except CaptureUnreadable as error:
            error.where = self._source
            raise
        if any(not 0 <= index < self._cells for index in self._lost):
            raise UsageError(f"there are only the cells 0 to {self._cells - 1} to lose", where=self._source)
        return Converted(self._packets, self._skipped, self._padded, self._cells if self._form.is_cells else None)

    def _packet(self, frame: _Frame) -> bytes | None:
        """The IP packet in `frame`, whole; None if there is none."""
        found = _ip_packet(frame)
        if found is None:
            return None
        packet, wire_bytes = found
        if len(packet) < wire_bytes:
            if not self._pad_cut:
                raise ValueError(f"the snap length cut {wire_bytes - len(packet)} bytes off the packet, and padding is not allowed")
            if len(packet) < _header_bytes(packet):
                raise ValueError("the snap length cut the packet's headers, which zeros cannot stand for")
            self._padded += 1
        return packet.ljust(wire_bytes, b"\0")

    def _records(self, ts_ns: int, packet: bytes) -> Iterator[tuple[int, bytes]]:
        """The frames or ERF records of a packet, with their times."""
        if self._form.is_cells:
            yield from self._cell_records(ts_ns, packet)
            return
        body = self._layout.body(packet, *self._channel)
        yield ts_ns, body if self._layout.erf_type is None else _erf_record(ts_ns, self._layout.erf_type, body)

    def _cell_records(self, ts_ns: int, packet: bytes) -> Iterator[tuple[int, bytes]]:
        """The PDU's last cell bears the packet's time; those before it lie back to back at OC-3c's rate."""
        pdu_cells = atm_cells(_routed(packet), *self._channel)
        for behind, cell in zip(range(len(pdu_cells) - 1, -1, -1), pdu_cells, strict=True):
            index = self._cells
            self._cells += 1
            if index not in self._lost:
                cell_ts_ns = ts_ns - behind * CELL_BYTES * 8 * NS_PER_S // OC3C_LINE_BPS
                yield cell_ts_ns, _erf_record(cell_ts_ns, ERF_TYPE_ATM, cell)


@dataclass(frozen=True, slots=True)
class _Frame:
    """One frame of the source: `data` of the `wire_bytes` that were on the wire."""

    ts_ns: int
    link_type: int
    data: bytes
    wire_bytes: int


def _frames(file: BinaryIO) -> Iterator[_Frame]:
    """The frames of a pcap or pcapng file."""
    from dpkt import Error, pcap  # noqa: PLC0415  (dpkt is needed for converting alone)

    magic = file.read(4)
    file.seek(0)
    try:
        if magic == _PCAPNG_MAGIC:
            yield from _pcapng_frames(file)
        elif int.from_bytes(magic, "big") in pcap.MAGIC_TO_PKT_HDR:
            yield from _pcap_frames(file)
        else:
            raise NotACapture("not a pcap or pcapng file", remedy="unpack it, or convert it first: editcap -F pcapng IN OUT")
    except (Error, UnicodeDecodeError) as error:  # the latter from comments, which dpkt decodes
        raise CaptureUnreadable(f"damaged: {error}") from error


def _pcap_frames(file: BinaryIO) -> Iterator[_Frame]:
    from dpkt import pcap  # noqa: PLC0415  (see _frames)

    start = _exactly(file, pcap.FileHdr.__hdr_len__)
    header = pcap.FileHdr(start)
    if header.magic in {pcap.PMUDPCT_MAGIC, pcap.PMUDPCT_MAGIC_NANO, pcap.PACPDOM_MAGIC}:
        header = pcap.LEFileHdr(start)
    record_type = pcap.MAGIC_TO_PKT_HDR[pcap.FileHdr(start).magic]
    unit_ns = 1 if header.magic == pcap.TCPDUMP_MAGIC_NANO else 1000
    while start := file.read(record_type.__hdr_len__):
        record = record_type(start)
        data = _exactly(file, record.caplen)
        # The upper half of the link type tells of frame check sequences.
        yield _Frame(record.tv_sec * NS_PER_S + record.tv_usec * unit_ns, header.linktype & 0xFFFF, data, max(record.len, len(data)))


_PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
_MAX_RECORD_BYTES = 16 << 20
"""Longer than any frame: a length beyond this is damage."""


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


def _pcapng_frames(file: BinaryIO) -> Iterator[_Frame]:
    from dpkt import pcapng  # noqa: PLC0415  (see _frames)

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
                number = number & 0xFFFF if little else number >> 16  # beside it stands a count of drops
            if number >= len(interfaces) or 28 + captured > len(block):
                raise CaptureUnreadable("damaged: a packet contradicts its block")
            yield _pcapng_frame(interfaces[number], high << 32 | low, block[28 : 28 + captured], wire_bytes)
        elif kind == pcapng.PCAPNG_BT_SPB:
            raise CaptureUnreadable("holds packets without times")


def _pcapng_frame(interface: _Interface, ticks: int, data: bytes, wire_bytes: int) -> _Frame:
    ts_ns = ticks * NS_PER_S // interface.ticks_per_s + interface.offset_s * NS_PER_S
    return _Frame(ts_ns, interface.link_type, data, max(wire_bytes, len(data)))


def _interface(block: Any, order: Literal["little", "big"]) -> _Interface:  # noqa: ANN401  (dpkt publishes no types)
    """Link type and clock of an interface description block."""
    from dpkt import pcapng  # noqa: PLC0415  (see _frames)

    options = {option.code: option.data for option in getattr(block, "opts", ())}
    resolution = (options.get(pcapng.PCAPNG_OPT_IF_TSRESOL) or b"\x06")[0]
    ticks_per_s = 1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    offset_s = int.from_bytes(options.get(pcapng.PCAPNG_OPT_IF_TSOFFSET, b""), order, signed=True)
    return _Interface(block.linktype, ticks_per_s, offset_s)


_ETHER_TYPES = {4: 0x0800, 6: 0x86DD}
"""IP version → Ethernet type."""
_PPP_PROTOCOLS = {4: 0x0021, 6: 0x0057}
"""IP version → PPP protocol (RFC 1332, RFC 5072)."""
_VLAN_TYPES = {0x8100, 0x88A8, 0x9100, 0x9200}
_IPV4_HEADER_BYTES, _IPV6_HEADER_BYTES, _TCP_HEADER_BYTES, _TCP = 20, 40, 20, 6


def _ip_packet(frame: _Frame) -> tuple[bytes, int] | None:
    """What was captured of the IP packet in `frame`, and its bytes on the wire; None if there is none.

    The length is that of the IP header, as far as the frame was that long; where the header says 0 (segmentation offload, BIG TCP), the
    rest of the frame. Raises ValueError for link types that are not read.
    """
    offset = _ip_offset(frame)
    packet = b"" if offset is None else frame.data[offset:]
    version = packet[0] >> 4 if packet else None
    if offset is None or version not in _ETHER_TYPES:
        return None
    at, before = (2, 0) if version == 4 else (4, _IPV6_HEADER_BYTES)  # noqa: PLR2004  (the version of IP)
    length = int.from_bytes(packet[at : at + 2], "big")
    on_wire = frame.wire_bytes - offset
    wire_bytes = min(length + before, on_wire) if length else on_wire
    return packet[:wire_bytes], wire_bytes


def _ip_offset(frame: _Frame) -> int | None:
    """Where an IP packet would begin; None if the link's header says that something else does."""
    data = frame.data
    match frame.link_type:
        case 0 | 108:  # NULL, LOOP
            return 4
        case 12 | 14 | 101 | 228 | 229:  # RAW by three numbers, IPV4, IPV6
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
    return offset if int.from_bytes(data[at : at + 2], "big") in _ETHER_TYPES.values() else None


def _header_bytes(packet: bytes) -> int:
    """Bytes of the IP and TCP headers, as far as what was captured tells: more than were captured if it cannot be told."""
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


@functools.cache
def _llc_snap(organization: int, code: int) -> bytes:
    from scapy.layers.l2 import LLC, SNAP  # noqa: PLC0415  (Scapy takes half a second to import; the arithmetic needs none of it)

    return bytes(LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=organization, code=code))


def llc_snap(packet: bytes) -> bytes:
    """The LLC/SNAP header of a routed IP packet (RFC 2684, 5.1)."""
    return _llc_snap(0, _ETHER_TYPES[packet[0] >> 4])


@functools.lru_cache(maxsize=1024)
def _ethernet(source: bytes, target: bytes, ether_type: int) -> bytes:
    """An Ethernet header with locally administered addresses, made of the last four bytes of the IP addresses."""
    from scapy.layers.l2 import Ether  # noqa: PLC0415  (see _llc_snap)

    source_mac, target_mac = (":".join(f"{byte:02x}" for byte in b"\x02\0" + address[-4:]) for address in (source, target))
    return bytes(Ether(src=source_mac, dst=target_mac, type=ether_type))


def _ethernet_frame(packet: bytes) -> bytes:
    is_v4 = packet[0] >> 4 == 4  # noqa: PLR2004  (the version of IP)
    source, target = (packet[12:16], packet[16:20]) if is_v4 else (packet[8:24], packet[24:40])
    return _ethernet(source, target, _ETHER_TYPES[packet[0] >> 4]) + packet


def _with_fcs(frame: bytes) -> bytes:
    """`frame` and the 32-bit FCS of Ethernet and PPP, least significant byte first."""
    return frame + zlib.crc32(frame).to_bytes(4, "little")


# What stands in a frame or record: packet, VPI, VCI → bytes.


def _payload(data: bytes) -> bytes:
    """`data`, if a PDU holds it. Raises ValueError."""
    cells(len(data))
    return data


def _routed(packet: bytes, _vpi: int = 0, _vci: int = 0) -> bytes:
    return _payload(llc_snap(packet) + packet)


def _bridged(packet: bytes, _vpi: int, _vci: int) -> bytes:
    ieee_802_1, ethernet_without_fcs = 0x0080C2, 0x0007
    return _payload(_llc_snap(ieee_802_1, ethernet_without_fcs) + b"\0\0" + _ethernet_frame(packet))


def _alone(packet: bytes, _vpi: int, _vci: int) -> bytes:
    return _payload(packet)


def _sunatm(packet: bytes, vpi: int, vci: int) -> bytes:
    llc_traffic = 2
    atm_header(vpi, vci, ends_pdu=True)  # holds the channel to its range
    return struct.pack(">BBH", llc_traffic, vpi, vci) + _routed(packet)


def _aal5(packet: bytes, vpi: int, vci: int) -> bytes:
    return atm_header(vpi, vci, ends_pdu=True) + aal5_pdu(_routed(packet))


def _erf_ethernet(packet: bytes, _vpi: int, _vci: int) -> bytes:
    return b"\0" * ERF_ETH_PAD_BYTES + _with_fcs(_ethernet_frame(packet))


def _ppp(packet: bytes, _vpi: int, _vci: int) -> bytes:
    return _with_fcs(b"\xff\x03" + struct.pack(">H", _PPP_PROTOCOLS[packet[0] >> 4]) + packet)


ERF_TYPE_HDLC_POS, ERF_TYPE_ETH, ERF_TYPE_ATM, ERF_TYPE_AAL5 = 1, 2, 3, 4
ERF_ETH_PAD_BYTES = 2
_ATM_RFC1483, _ATM_CLIP, _SUNATM, _ERF = 100, 106, 123, 197
"""LINKTYPE_ numbers (https://www.tcpdump.org/linktypes.html)."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Link type of the pcap file, what builds a frame, and the type of its ERF record."""

    link_type: int
    body: Callable[[bytes, int, int], bytes]
    erf_type: int | None = None


_LAYOUTS = {
    "rfc1483-llc": _Layout(_ATM_RFC1483, _routed),
    "rfc1483-bridged": _Layout(_ATM_RFC1483, _bridged),
    "rfc1483-vcmux": _Layout(_ATM_RFC1483, _alone),
    "clip": _Layout(_ATM_CLIP, _routed),
    "clip-vcmux": _Layout(_ATM_CLIP, _alone),
    "fore-ip": _Layout(_ATM_RFC1483, _alone),
    "sunatm": _Layout(_SUNATM, _sunatm),
    "aal5": _Layout(_ERF, _aal5, ERF_TYPE_AAL5),
    "cells": _Layout(_ERF, _aal5, ERF_TYPE_ATM),
    "eth": _Layout(_ERF, _erf_ethernet, ERF_TYPE_ETH),
    "pos": _Layout(_ERF, _ppp, ERF_TYPE_HDLC_POS),
}
"""Form, without what tells that it is ERF and how its records are kept → layout."""


def _layout(form: AtmForm) -> _Layout:
    return _LAYOUTS[form.removeprefix("erf-").removeprefix("file-")]


_ERF_HEADER = struct.Struct(">BBHHH")
"""Behind the time: type, flags, record length, records lost before it by the card, length on the wire."""
_ERF_HEADER_BYTES = 8 + _ERF_HEADER.size
_ERF_VARYING_LENGTH = 0x04
_ERF_ALIGNMENT_BYTES = 8
_MAX_UINT16 = 0xFFFF


def _erf_record(ts_ns: int, erf_type: int, body: bytes) -> bytes:
    """An ERF record without the stuffing that fills it to a multiple of eight. Raises ValueError if its length has more than 16 bits."""
    record_bytes = _aligned(_ERF_HEADER_BYTES + len(body))
    if record_bytes > _MAX_UINT16:
        raise ValueError(f"an ERF record of {record_bytes} bytes would be longer than {_MAX_UINT16}")
    wire_bytes = len(body) - (ERF_ETH_PAD_BYTES if erf_type == ERF_TYPE_ETH else 0)
    flags = 0 if erf_type == ERF_TYPE_ATM else _ERF_VARYING_LENGTH
    return _erf_time(ts_ns) + _ERF_HEADER.pack(erf_type, flags, record_bytes, 0, wire_bytes) + body


def _erf_time(ts_ns: int) -> bytes:
    """Seconds and 2^-32ths of a second, little-endian. Rounded up: a reader that rounds and one that cuts both get `ts_ns` back."""
    seconds, ns = divmod(ts_ns, NS_PER_S)
    return struct.pack("<Q", seconds << 32 | -(-(ns << 32) // NS_PER_S))


def _aligned(count: int) -> int:
    return -(-count // _ERF_ALIGNMENT_BYTES) * _ERF_ALIGNMENT_BYTES


def _writer(form: AtmForm, file: BinaryIO) -> Callable[[int, bytes], None]:
    """What takes time and bytes of a frame or record. In pcap, ERF records stand without their stuffing, as libpcap writes them.

    It raises ValueError for times that 32 bits of seconds do not hold.
    """
    from dpkt import pcap  # noqa: PLC0415  (see _frames)

    into_pcap = None if form.is_bare else pcap.Writer(file, snaplen=_SNAPLEN_BYTES, linktype=_layout(form).link_type, nano=True)

    def write(ts_ns: int, record: bytes) -> None:
        if not 0 <= ts_ns < NS_PER_S << 32:
            raise ValueError(f"the time, {ts_ns} ns since 1970, is not between 1970 and 2106")
        if into_pcap is None:
            file.write(record.ljust(_aligned(len(record)), b"\0"))
        else:
            into_pcap.writepkt_time(record, Decimal(ts_ns).scaleb(-9))

    return write


_SNAPLEN_BYTES = 262_144
"""Snap length declared: tcpdump's."""
