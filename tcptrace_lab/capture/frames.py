"""Reads a capture again for the bytes of some frames, because the engine's tables contain no frame bytes.

Supported files are pcap, pcapng, and compressed files that the engine can decompress. Frames have the engine's numbers, even if several
files are merged by time. Streams are not supported, because they cannot be read twice. Files that Wireshark has to convert are not
supported either.
"""

from __future__ import annotations

import heapq
import os
import stat
import struct
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple

from tcptrace_lab.capture import decompression
from tcptrace_lab.capture.pcapng_copy import (
    BYTE_ORDER_MAGIC,
    ENHANCED_PACKET,
    INTERFACE,
    MAX_BLOCK_BYTES,
    MIN_BLOCK_BYTES,
    NUMBERED,
    PACKET,
    PACKET_HEAD_BYTES,
    PCAP_HEADER_BYTES,
    PCAP_UNITS,
    RECORD_HEADER_BYTES,
    SIMPLE_PACKET,
    is_plain_pcap,
)
from tcptrace_lab.capture.streams import is_compressed
from tcptrace_lab.errors import TcptraceLabError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUFFER_BYTES = 1 << 20
MAX_UNPACKED_BYTES = 1 << 30
"""Size of the largest compressed file that is decompressed a second time."""
MAX_FRAME_BYTES = 1 << 20
"""No frame of a real link is this long. Reading stops at a longer record, which is damaged."""

_SIMPLE_HEAD_BYTES = 12
_OPTION_RESOLUTION = 9


class Frame(NamedTuple):
    """One frame: its time in ps, and its captured bytes if they were requested. The time is an exact integer, used only to merge files."""

    at: int
    data: bytes


@contextmanager
def readable(names: Sequence[str], max_unpacked_bytes: int | None = None) -> Iterator[list[str] | None]:
    """Provide paths of uncompressed files until the block ends; None if a file cannot be read.

    Compressed files are decompressed to temporary files.

    Args:
        names: the files.
        max_unpacked_bytes: compressed files above this size are not decompressed; None: `MAX_UNPACKED_BYTES`.
    """
    max_bytes = MAX_UNPACKED_BYTES if max_unpacked_bytes is None else max_unpacked_bytes
    with ExitStack() as stack:
        paths = [path for name in names if (path := _readable(name, stack, max_bytes)) is not None]
        yield paths if len(paths) == len(names) else None


def _readable(name: str, stack: ExitStack, max_bytes: int) -> str | None:
    try:
        if name == "-" or not stat.S_ISREG(os.stat(name).st_mode):  # noqa: PTH116  (file names stay as the user gave them)
            return None
        if not is_compressed(name):
            return name
        if os.stat(name).st_size > max_bytes:  # noqa: PTH116
            return None
        return stack.enter_context(decompression.plain(name))
    except (OSError, TcptraceLabError):
        return None


def look(paths: Sequence[str], numbers: Sequence[int], max_frames: int) -> Iterator[tuple[int, bytes]]:
    """Yield (number, bytes) of the requested frames, in order. Reading ends where a file is damaged.

    Args:
        paths: the files of one capture.
        numbers: numbers of the requested frames, ascending.
        max_frames: number of frames after which reading ends.
    """
    wanted = set(numbers)
    last = min(numbers[-1], max_frames) if numbers else 0
    with ExitStack() as stack:
        single = len(paths) == 1
        readers = [_frames(stack.enter_context(open(path, "rb", buffering=BUFFER_BYTES)), wanted if single else None) for path in paths]  # noqa: PTH123
        merged = readers[0] if single else heapq.merge(*readers, key=lambda frame: frame.at)
        for number, frame in enumerate(merged, 1):
            if number > last:
                return
            if number in wanted:
                yield number, frame.data


def every(path: str) -> Iterator[Frame]:
    """Yield all frames of a plain pcap or pcapng file, in order. Reading ends where the file is damaged."""
    with open(path, "rb", buffering=BUFFER_BYTES) as file:  # noqa: PTH123  (file names stay as the user gave them)
        yield from _frames(file, None)


def _frames(file: IO[bytes], wanted: set[int] | None) -> Iterator[Frame]:
    """Yield all frames of a pcap or pcapng file. Frames that are not in `wanted` have no bytes; None requests the bytes of all frames."""
    head = file.read(PCAP_HEADER_BYTES)
    file.seek(0)
    if is_plain_pcap(head):
        yield from _pcap(file, wanted)
    elif head.startswith(b"\n\r\r\n"):
        yield from _pcapng(file, wanted)


def _pcap(file: IO[bytes], wanted: set[int] | None) -> Iterator[Frame]:
    header = file.read(PCAP_HEADER_BYTES)
    order = "<" if struct.unpack_from("<I", header)[0] in PCAP_UNITS else ">"
    scale = 10 ** (12 - PCAP_UNITS[struct.unpack_from(f"{order}I", header)[0]])
    record, number = struct.Struct(f"{order}IIII"), 0
    while len(head := file.read(RECORD_HEADER_BYTES)) == RECORD_HEADER_BYTES:
        seconds, fraction, captured, _ = record.unpack(head)
        if captured > MAX_FRAME_BYTES:
            return
        number += 1
        yield Frame(seconds * 10**12 + fraction * scale, _taken(file, captured, wanted=wanted is None or number in wanted))


def _taken(file: IO[bytes], size: int, *, wanted: bool) -> bytes:
    if wanted:
        return file.read(size)
    file.seek(size, os.SEEK_CUR)
    return b""


def _pcapng(file: IO[bytes], wanted: set[int] | None) -> Iterator[Frame]:
    order, number, clocks = "<", 0, list[int]()
    while len(head := file.read(MIN_BLOCK_BYTES)) == MIN_BLOCK_BYTES:
        if head.startswith(b"\n\r\r\n"):
            order, clocks = ("<" if struct.unpack_from("<I", head, 8)[0] == BYTE_ORDER_MAGIC else ">"), []
        kind, magic_body = struct.unpack_from(f"{order}II", head)
        size = magic_body + -magic_body % 4
        if not MIN_BLOCK_BYTES <= size <= MAX_BLOCK_BYTES:
            return
        number += kind in NUMBERED
        asked = kind in NUMBERED and (wanted is None or number in wanted)
        if not asked and kind != INTERFACE:
            if kind in NUMBERED:
                yield Frame(0, b"")
            file.seek(size - MIN_BLOCK_BYTES, os.SEEK_CUR)
            continue
        block = head + file.read(size - MIN_BLOCK_BYTES)
        if len(block) < size:
            return
        if kind == INTERFACE:
            clocks.append(_scale(order, block))
        else:
            yield _packet(order, kind, block, clocks)


def _packet(order: str, kind: int, block: bytes, clocks: Sequence[int]) -> Frame:
    if kind == SIMPLE_PACKET:
        return Frame(0, block[_SIMPLE_HEAD_BYTES:-4])
    if kind not in {PACKET, ENHANCED_PACKET} or len(block) < PACKET_HEAD_BYTES + 4:
        return Frame(0, b"")
    interface, high, low, captured = struct.unpack_from(f"{order}IIII", block, 8)
    interface &= 0xFFFF if kind == PACKET else 0xFFFF_FFFF
    scale = clocks[interface] if interface < len(clocks) else 10**6
    return Frame((high << 32 | low) * scale, block[PACKET_HEAD_BYTES : min(PACKET_HEAD_BYTES + captured, len(block) - 4)])


def _scale(order: str, block: bytes) -> int:
    """Return the length of an interface's clock tick (`if_tsresol`) in ps.

    Ticks that are powers of two are rounded, which affects only the merging of files.
    """
    at = 16
    while at + 4 <= len(block) - 4:
        code, size = struct.unpack_from(f"{order}HH", block, at)
        if code == _OPTION_RESOLUTION and size == 1 and at + 5 <= len(block):
            power = block[at + 4] & 0x7F
            return max(10**12 // int(2**power if block[at + 4] & 0x80 else 10**power), 1)
        if code == 0:
            break
        at += 4 + size + -size % 4
    return 10**6
