"""Reassembled payload of chosen connections, in stream order, as input for the parsers `http` and `ftp`.

The TCP header in a frame is found by the two ports of the segment, and by a sequence number that fits the earlier segments of its
direction. So the number and kind of lower layers do not matter. Payload that is not found (IP fragments, ATM cells), or that snaplen
truncated, counts as not captured.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.capture.frames import look

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_FRAMES = 2_000_000
"""Maximum number of frames of a capture that are searched for payload. Searching them takes about 2 s."""
MAX_SEGMENTS = 500_000
"""Maximum number of segments whose payload is read. Reading them takes about 5 s. Later segments are ignored."""
MAX_PENDING_BYTES = 1 << 18
"""Maximum number of out-of-order bytes kept per direction, larger than most windows. If there are more, the missing bytes before them count
as not captured."""

TCP_HEAD_BYTES = 20
SYN, FIN, RST = 2, 1, 4
_MODULUS = 1 << 32

COLUMNS = ("conn", "from_client", "frame", "ts_ns", "seq", "ack", "payload_bytes", "captured_payload_bytes", "flags")


@dataclass(frozen=True, slots=True)
class Piece:
    """The next bytes of a direction. `data` is shorter than `size` if some or all of the bytes were not captured."""

    conn: int
    from_client: bool
    ts_ns: int
    frame: int
    size: int
    data: bytes


@dataclass(slots=True)
class _Half:
    """Reassembly state of one direction.

    Attributes:
        next: relative sequence number of the next byte.
        pending: relative sequence number → a piece that arrived out of order.
        pending_bytes: size of all pending pieces.
        base: difference between sequence numbers on the wire and relative sequence numbers.
    """

    next: int | None = None
    pending: dict[int, Piece] = field(default_factory=dict)
    pending_bytes: int = 0
    base: int | None = None


def wanted(segments: pl.LazyFrame, conns: Sequence[int]) -> pl.DataFrame:
    """Return the segments of these connections that have data or a SYN, in capture order; at most `MAX_SEGMENTS`."""
    rows = segments.filter(pl.col("conn").is_in(pl.Series(conns, dtype=pl.UInt32).implode()))
    rows = rows.filter((pl.col("payload_bytes") > 0) | (pl.col("flags") & SYN > 0)).select(COLUMNS).head(MAX_SEGMENTS)
    return rows.filter(pl.col("frame") <= MAX_FRAMES).collect()


def first_data(segments: pl.LazyFrame, conns: Sequence[int], max_frames: int) -> pl.DataFrame:
    """Return the first segment with data of each direction, in capture order. Segments after the first `max_frames` frames are ignored."""
    carried = segments.filter((pl.col("payload_bytes") > 0) & (pl.col("frame") <= max_frames)).select(COLUMNS)
    first = carried.unique(subset=["conn", "from_client"], keep="first", maintain_order=True).collect()
    return first.filter(first["conn"].is_in(conns))


def pieces(paths: Sequence[str], rows: pl.DataFrame, ports: dict[int, tuple[int, int]]) -> Iterator[Piece]:
    """Yield the payload of these rows: each direction in stream order, each byte once.

    Args:
        paths: the files of the capture.
        rows: rows returned by `wanted`.
        ports: connection → (client's port, server's port).
    """
    halves: dict[tuple[int, bool], _Half] = {}
    bytes_of = look(paths, rows["frame"].to_list(), MAX_FRAMES)
    number, data = 0, b""
    for conn, from_client, frame, ts_ns, seq, ack, size, captured, flags in rows.iter_rows():
        while number < frame and (found := next(bytes_of, None)) is not None:
            number, data = found
        half = halves.setdefault((conn, from_client), _Half())
        if half.next is None:
            half.next = seq + bool(flags & SYN)
        client, server = ports[conn]
        pair = struct.pack("!HH", *((client, server) if from_client else (server, client)))
        payload = _payload(data if number == frame else b"", pair, seq, captured, half)
        if size:
            start = seq + bool(flags & SYN)
            yield from _ordered(half, start, Piece(conn, from_client, ts_ns or 0, frame, size, payload))
        other = halves.get((conn, not from_client))
        if other is not None and ack is not None:
            yield from _given_up(other, ack)
    for half in halves.values():
        while half.pending:
            yield from _given_up(half, min(half.pending))


def _payload(data: bytes, pair: bytes, seq: int, captured: int, half: _Half) -> bytes:
    """Return the payload of a segment from the bytes of its frame; empty if the payload is not found."""
    at = data.find(pair)
    while at >= 0:
        head = data[at : at + TCP_HEAD_BYTES]
        if len(head) == TCP_HEAD_BYTES:
            base = (int.from_bytes(head[4:8], "big") - seq) % _MODULUS
            start = at + (head[12] >> 4) * 4
            if head[12] >> 4 >= 5 and start + captured <= len(data) and half.base in {None, base}:  # noqa: PLR2004  (a TCP header has at least five words, RFC 9293)
                half.base = base
                return data[start : start + captured]
        at = data.find(pair, at + 1)
    return b""


def _ordered(half: _Half, start: int, piece: Piece) -> Iterator[Piece]:
    """Yield the pieces that are in order after this piece has arrived."""
    assert half.next is not None  # noqa: S101  (set before the first piece)
    if start > half.next:
        known = half.pending.get(start)
        if known is None or known.size < piece.size:
            half.pending_bytes += piece.size - (known.size if known else 0)
            half.pending[start] = piece
        if half.pending_bytes > MAX_PENDING_BYTES:
            yield from _given_up(half, min(half.pending))
        return
    yield from _new_part(half, start, piece)
    yield from _released(half)


def _released(half: _Half) -> Iterator[Piece]:
    while half.pending and (start := min(half.pending)) <= (half.next or 0):
        piece = half.pending.pop(start)
        half.pending_bytes -= piece.size
        yield from _new_part(half, start, piece)


def _new_part(half: _Half, start: int, piece: Piece) -> Iterator[Piece]:
    """Yield the part of a piece that was not yielded before."""
    assert half.next is not None  # noqa: S101
    known = half.next - start
    if known < piece.size:
        half.next = start + piece.size
        yield (
            piece if known == 0 else Piece(piece.conn, piece.from_client, piece.ts_ns, piece.frame, piece.size - known, piece.data[known:])
        )


def _given_up(half: _Half, up_to: int) -> Iterator[Piece]:
    """If the first missing bytes end at or before `up_to`, yield a piece without data in their place, and the pieces that follow."""
    if half.next is None or half.next >= up_to or not half.pending:
        return
    first = min(half.pending)
    if first > up_to:
        return
    after = half.pending[first]
    yield Piece(after.conn, after.from_client, after.ts_ns, after.frame, first - half.next, b"")
    half.next = first
    yield from _released(half)
