"""Copies a capture to pcapng, and adds comments to some packets.

dpkt cannot make an exact copy: it stores times as floating-point seconds and supports only one interface. This module copies the blocks of
a pcapng file byte by byte, and adds options to packets with comments. Records of a pcap file become pcapng blocks with equal times, lengths
and bytes.

Formats: draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap. Frames have the numbers that the engine and Wireshark give them.
"""

from __future__ import annotations

import struct
from typing import IO, TYPE_CHECKING

from tcptrace_lab.errors import CaptureUnreadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECTION, INTERFACE, PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 6
NUMBERED = frozenset({PACKET, SIMPLE_PACKET, ENHANCED_PACKET, 9, 0x0BAD, 0x40000BAD, 0x204, 0x216, 0x221})
"""Block types that count as frames: packets, systemd's journal, custom blocks, sysdig's events (the engine's `capture::pcapng`)."""

BYTE_ORDER_MAGIC = 0x1A2B3C4D
UNKNOWN_LENGTH = 0xFFFF_FFFF_FFFF_FFFF
"""Section length "unknown". The length in the original header is too small for a section with comments."""

MIN_BLOCK_BYTES, MIN_SECTION_BYTES = 12, 28
MAX_BLOCK_BYTES = (128 << 20) + (128 << 10)
"""Largest block that Wireshark and the engine accept. One block at a time is in memory."""

OPTION_END, OPTION_COMMENT, OPTION_FLAGS, OPTION_RESOLUTION = 0, 1, 2, 9
MAX_OPTION_BYTES = 0xFFFF

PACKET_HEAD_BYTES = 28
"""Bytes before the packet data, in enhanced and obsolete packet blocks."""

PCAP_UNITS = {0xA1B2C3D4: 6, 0xA1B23C4D: 9}
"""Magic number of a pcap file → decimal digits of its fractions of a second."""

PCAP_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
FCS_KNOWN, FCS_SHIFT, FCS_UNIT_BYTES = 0x0400_0000, 28, 2
"""Parts of the last word of the pcap header: link type, whether the FCS length is known, and the FCS length in units of 2 bytes."""

_FLAGS_FCS_SHIFT = 5
"""Position of the FCS length (bytes) in the flags of a packet (`epb_flags`)."""


def copy_pcapng(source: IO[bytes], target: IO[bytes], comments: Mapping[int, Sequence[str]], packets: int) -> int:
    """Copy the first `packets` frames of a pcapng file, and all other blocks up to the next frame.

    Args:
        source: the file, from its start.
        target: receives the copy.
        comments: frame number → comments.
        packets: number of frames. Frames that were added to the file later are left out.

    Returns:
        Number of frames whose comments could not be written: simple packet blocks have no options.

    Raises:
        CaptureUnreadable: the file has fewer frames.
    """
    order, frame, without = "<", 0, 0
    while True:
        head = source.read(MIN_BLOCK_BYTES)
        if len(head) < MIN_BLOCK_BYTES:
            break
        if head.startswith(b"\n\r\r\n"):
            order = "<" if struct.unpack_from("<I", head, 8)[0] == BYTE_ORDER_MAGIC else ">"
        kind, said_bytes = struct.unpack_from(f"{order}II", head)
        block_bytes = _padded(said_bytes)
        numbered = kind in NUMBERED
        if not MIN_BLOCK_BYTES <= block_bytes <= MAX_BLOCK_BYTES or (numbered and frame == packets):
            break
        block = head + source.read(block_bytes - MIN_BLOCK_BYTES)
        if len(block) < block_bytes or _padded(struct.unpack_from(f"{order}I", block, block_bytes - 4)[0]) != block_bytes:
            break  # the file is truncated or damaged here, and the engine stopped here too
        frame += numbered
        if kind == SECTION and block_bytes >= MIN_SECTION_BYTES:
            block = block[:16] + struct.pack("<Q", UNKNOWN_LENGTH) + block[24:]
        elif numbered and frame in comments:
            if kind in {PACKET, ENHANCED_PACKET}:
                block = _with_comments(order, block, comments[frame])
            else:
                without += 1
        target.write(block)
    if frame < packets:
        raise _changed(frame, packets)
    return without


def _padded(length: int) -> int:
    """Return `length` rounded up to a multiple of four.

    Data in a pcapng block is padded to a multiple of four bytes. Wireshark rounds up the length of a whole block as well.
    """
    return length + -length % 4


def _with_comments(order: str, block: bytes, comments: Sequence[str]) -> bytes:
    """Return the packet block with the comments before its other options."""
    (captured,) = struct.unpack_from(f"{order}I", block, 20)
    end = PACKET_HEAD_BYTES + _padded(captured)
    options = block[end:-4] or encoded_option(order, OPTION_END, b"")
    body = block[8:end] + _comments(order, comments) + options
    return encoded_block(order, struct.unpack_from(f"{order}I", block)[0], body)


def _comments(order: str, comments: Sequence[str]) -> bytes:
    return b"".join(encoded_option(order, OPTION_COMMENT, comment.encode()[:MAX_OPTION_BYTES]) for comment in comments)


def encoded_option(order: str, code: int, value: bytes) -> bytes:
    """Encode an option of a block in byte order `<` or `>`."""
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def encoded_block(order: str, kind: int, body: bytes) -> bytes:
    """Encode a block in byte order `<` or `>`. The length of `body` must be a multiple of four."""
    length = struct.pack(f"{order}I", MIN_BLOCK_BYTES + len(body))
    return struct.pack(f"{order}I", kind) + length + body + length


def is_plain_pcap(head: bytes) -> bool:
    """Return whether these 24 bytes start a pcap file with the current header (version 2.4)."""
    order = _pcap_order(head)
    return order is not None and len(head) >= PCAP_HEADER_BYTES and struct.unpack_from(f"{order}HH", head, 4) == (2, 4)


def _pcap_order(head: bytes) -> str | None:
    return next((order for order in "<>" if struct.unpack_from(f"{order}I", head.ljust(4, b"\0"))[0] in PCAP_UNITS), None)


def copy_pcap(source: IO[bytes], target: IO[bytes], comments: Mapping[int, Sequence[str]], packets: int) -> int:
    """Copy the first `packets` records of a pcap file (see `is_plain_pcap`) to pcapng in the byte order of the file.

    `copy_pcapng` describes the arguments, the result and the errors. Every frame can have comments.
    """
    header = source.read(PCAP_HEADER_BYTES)
    order = _pcap_order(header) or "<"
    magic, snaplen, network = struct.unpack(f"{order}I12xII", header)
    digits = PCAP_UNITS[magic]
    resolution = encoded_option(order, OPTION_RESOLUTION, bytes([digits])) + encoded_option(order, OPTION_END, b"")
    target.write(encoded_block(order, SECTION, struct.pack(f"{order}IHHQ", BYTE_ORDER_MAGIC, 1, 0, UNKNOWN_LENGTH)))
    target.write(encoded_block(order, INTERFACE, struct.pack(f"{order}HHI", network & 0xFFFF, 0, snaplen) + resolution))
    fcs_bytes = (network >> FCS_SHIFT) * FCS_UNIT_BYTES if network & FCS_KNOWN else 0
    flags = encoded_option(order, OPTION_FLAGS, struct.pack(f"{order}I", fcs_bytes << _FLAGS_FCS_SHIFT)) if fcs_bytes else b""
    record, begin = struct.Struct(f"{order}IIII"), struct.Struct(f"{order}IIIIIII")
    length, end = struct.Struct(f"{order}I"), encoded_option(order, OPTION_END, b"")
    for frame in range(1, packets + 1):
        head = source.read(RECORD_HEADER_BYTES)
        if len(head) < RECORD_HEADER_BYTES:
            raise _changed(frame - 1, packets)
        seconds, fraction, captured, original = record.unpack(head)
        data = source.read(captured)
        if len(data) < captured:
            raise _changed(frame - 1, packets)
        ticks = seconds * 10**digits + fraction
        options = flags + _comments(order, comments[frame]) if frame in comments else flags
        rest = data + bytes(-captured % 4) + (options + end if options else b"")
        whole = PACKET_HEAD_BYTES + len(rest) + 4
        target.write(begin.pack(ENHANCED_PACKET, whole, 0, ticks >> 32, ticks & 0xFFFF_FFFF, captured, original))
        target.write(rest)
        target.write(length.pack(whole))
    return 0


def _changed(found: int, packets: int) -> CaptureUnreadable:
    return CaptureUnreadable(f"changed while it was read: {found:,} of {packets:,} packets found", remedy="annotate a copy of it")
