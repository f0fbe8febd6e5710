"""Converts many segments at a time to frames and pcap records.

A structured numpy array of segments (`SEGMENT`) becomes a matrix of bytes with one row per record. The matrix becomes the bytes of a
capture. All checksums are right, even in frames that the snaplen truncates. The payload of a segment depends only on its sequence number,
so a retransmit carries the bytes of the original.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.void]
"""A structured array. Its dtype is stated where it is used."""

FIN: Final = 1
SYN: Final = 2
PSH: Final = 8
ACK: Final = 16

SEGMENT: Final = np.dtype(
    [
        ("ts_ns", "i8"),
        ("src_addr", "u4"),
        ("dst_addr", "u4"),
        ("src_port", "u2"),
        ("dst_port", "u2"),
        ("seq", "u4"),
        ("ack", "u4"),
        ("tsval", "u4"),
        ("tsecr", "u4"),
        ("sack_left", "u4"),
        ("sack_right", "u4"),
        ("window", "u2"),
        ("payload_bytes", "u2"),
        ("ip_id", "u2"),
        ("flags", "u1"),
        ("ttl", "u1"),
        ("resent", "?"),
    ]
)
"""One TCP segment. `window` is the unscaled header field. If `sack_right` is 0, there is no SACK option."""

MSS_BYTES: Final = 1448
"""Bytes of data in a full segment: 1500 (Ethernet) - 20 (IPv4) - 20 (TCP) - 12 (timestamps option)."""
WINDOW_SCALE: Final = 7
"""Window scale in every SYN. It is that of Linux with its default receive buffers."""

PCAP_MAGIC_US: Final = 0xA1B2C3D4
PCAP_MAGIC_NS: Final = 0xA1B23C4D
LINKTYPE_ETHERNET: Final = 1
UNCUT_SNAPLEN: Final = 262_144
"""A snaplen that truncates nothing. It is the maximum of libpcap."""

RECORD_HEADER_BYTES: Final = 16
IP_AT: Final = RECORD_HEADER_BYTES + 14
TCP_AT: Final = IP_AT + 20
OPTIONS_AT: Final = TCP_AT + 20
TIMESTAMPS_BYTES: Final = 12
SYN_OPTIONS_BYTES: Final = 20
SACK_OPTIONS_BYTES: Final = 24
PAYLOAD_AT: Final = OPTIONS_AT + TIMESTAMPS_BYTES
HEADERS_END: Final = OPTIONS_AT + SACK_OPTIONS_BYTES

_FIELDS: Final = (
    ("ts_s", "<u4", 0),
    ("ts_fraction", "<u4", 4),
    ("captured", "<u4", 8),
    ("original", "<u4", 12),
    ("dst_mac", "S6", 16),
    ("src_mac", "S6", 22),
    ("ethertype", ">u2", 28),
    ("version", "u1", IP_AT),
    ("total_length", ">u2", IP_AT + 2),
    ("ip_id", ">u2", IP_AT + 4),
    ("fragment", ">u2", IP_AT + 6),
    ("ttl", "u1", IP_AT + 8),
    ("protocol", "u1", IP_AT + 9),
    ("ip_checksum", "<u2", IP_AT + 10),
    ("src_addr", ">u4", IP_AT + 12),
    ("dst_addr", ">u4", IP_AT + 16),
    ("src_port", ">u2", TCP_AT),
    ("dst_port", ">u2", TCP_AT + 2),
    ("seq", ">u4", TCP_AT + 4),
    ("ack", ">u4", TCP_AT + 8),
    ("data_offset", "u1", TCP_AT + 12),
    ("flags", "u1", TCP_AT + 13),
    ("window", ">u2", TCP_AT + 14),
    ("tcp_checksum", "<u2", TCP_AT + 16),
    ("options_head", ">u4", OPTIONS_AT),
    ("tsval", ">u4", OPTIONS_AT + 4),
    ("tsecr", ">u4", OPTIONS_AT + 8),
    ("sack_head", ">u4", OPTIONS_AT + 12),
    ("sack_left", ">u4", OPTIONS_AT + 16),
    ("sack_right", ">u4", OPTIONS_AT + 20),
)
"""A record in the capture. The checksums are computed and stored in this machine's byte order, which RFC 1071 allows."""

_SYN_FIELDS: Final = (
    ("mss", ">u4", OPTIONS_AT),
    ("sack_and_timestamps", ">u4", OPTIONS_AT + 4),
    ("tsval", ">u4", OPTIONS_AT + 8),
    ("tsecr", ">u4", OPTIONS_AT + 12),
    ("window_scale", ">u4", OPTIONS_AT + 16),
)

NEAR_TTL: Final = 64
"""TTL of the host beside the capture point. No router has lowered Linux's initial value."""

_NEAR_MAC: Final = bytes.fromhex("020000000001")
_FAR_MAC: Final = bytes.fromhex("020000000002")
_POOL_BYTES: Final = 1 << 16
_TCP: Final = 6


def _layout(fields: tuple[tuple[str, str, int], ...], width: int) -> np.dtype[np.void]:
    names, formats, offsets = zip(*fields, strict=True)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": width})


class Framer:
    """Converts segments to the bytes of pcap records.

    Args:
        snaplen: maximum number of bytes that the capture keeps of a frame.
        nanoseconds: whether timestamps have nanoseconds instead of microseconds.
    """

    def __init__(self, snaplen: int = UNCUT_SNAPLEN, *, nanoseconds: bool = False) -> None:
        self.snaplen = snaplen
        self.nanoseconds = nanoseconds
        longest_frame = PAYLOAD_AT - RECORD_HEADER_BYTES + MSS_BYTES
        kept = max(RECORD_HEADER_BYTES + min(snaplen, longest_frame), HEADERS_END)
        self._width = kept + kept % 2
        self._record = _layout(_FIELDS, self._width)
        self._syn = _layout(_SYN_FIELDS, self._width)
        noise = np.random.default_rng(_POOL_BYTES).integers(0, 256, _POOL_BYTES, dtype=np.uint8)
        pool = np.concatenate((noise, noise[: MSS_BYTES + 1]))
        self._pool = pool
        self._payloads = np.lib.stride_tricks.sliding_window_view(pool, max(min(MSS_BYTES, self._width - PAYLOAD_AT), 1))
        self._word_sums = _sums_of_every_second_word(pool)

    def file_header(self) -> bytes:
        """The 24 bytes before the first record."""
        magic = PCAP_MAGIC_NS if self.nanoseconds else PCAP_MAGIC_US
        return struct.pack("<IHHiIII", magic, 2, 4, 0, 0, self.snaplen, LINKTYPE_ETHERNET)

    def records(self, segments: Rows) -> memoryview:
        """Return the records of `segments` (dtype `SEGMENT`), in their order."""
        records = np.zeros(len(segments), self._record)
        frame_bytes = self._fill(records, segments)
        matrix = records.view(np.uint8).reshape(len(segments), self._width)
        self._checksums(records, matrix, segments)
        with_data = np.flatnonzero(segments["payload_bytes"])
        kept = min(MSS_BYTES, self._width - PAYLOAD_AT)
        if kept > 0 and len(with_data):
            matrix[with_data, PAYLOAD_AT : PAYLOAD_AT + kept] = self._payloads[segments["seq"][with_data] % _POOL_BYTES]
        record_bytes = RECORD_HEADER_BYTES + np.minimum(frame_bytes, self.snaplen)
        inside = np.arange(self._width) < record_bytes[:, np.newaxis]
        return matrix[inside].data

    def _fill(self, records: Rows, segments: Rows) -> NDArray[np.int64]:
        """Write all fields except checksums and payload. Return the length of each frame on the wire, in bytes."""
        syn = (segments["flags"] & SYN) != 0
        sack = segments["sack_right"] != 0
        option_bytes = np.where(syn, SYN_OPTIONS_BYTES, np.where(sack, SACK_OPTIONS_BYTES, TIMESTAMPS_BYTES))
        total_length = 40 + option_bytes + segments["payload_bytes"]
        frame_bytes: NDArray[np.int64] = (14 + total_length).astype(np.int64)
        near = segments["ttl"] == NEAR_TTL
        seconds, rest_ns = np.divmod(segments["ts_ns"], 1_000_000_000)
        for name in ("ip_id", "ttl", "src_addr", "dst_addr", "src_port", "dst_port", "seq", "ack", "flags", "window", "tsval", "tsecr"):
            records[name] = segments[name]
        records["ts_s"] = seconds
        records["ts_fraction"] = rest_ns if self.nanoseconds else rest_ns // 1000
        records["captured"] = np.minimum(frame_bytes, self.snaplen)
        records["original"] = frame_bytes
        records["src_mac"] = np.where(near, _NEAR_MAC, _FAR_MAC)
        records["dst_mac"] = np.where(near, _FAR_MAC, _NEAR_MAC)
        records["ethertype"] = 0x0800
        records["version"] = 0x45
        records["total_length"] = total_length
        records["fragment"] = 0x4000  # don't fragment: Linux sets this flag in TCP packets
        records["protocol"] = _TCP
        records["data_offset"] = (20 + option_bytes) // 4 << 4
        records["options_head"] = 0x0101080A  # NOP, NOP, timestamps of 10 bytes
        sacked = np.flatnonzero(sack)
        records["sack_head"][sacked] = 0x0101050A  # NOP, NOP, SACK with one block
        records["sack_left"][sacked] = segments["sack_left"][sacked]
        records["sack_right"][sacked] = segments["sack_right"][sacked]
        self._fill_syn_options(records, segments, np.flatnonzero(syn))
        return frame_bytes

    def _fill_syn_options(self, records: Rows, segments: Rows, where: NDArray[np.intp]) -> None:
        as_syn = records.view(self._syn)
        as_syn["mss"][where] = 0x02040000 | (MSS_BYTES + TIMESTAMPS_BYTES)
        as_syn["sack_and_timestamps"][where] = 0x0402080A
        as_syn["tsval"][where] = segments["tsval"][where]
        as_syn["tsecr"][where] = segments["tsecr"][where]
        as_syn["window_scale"][where] = 0x01030300 | WINDOW_SCALE

    def _checksums(self, records: Rows, matrix: NDArray[np.uint8], segments: Rows) -> None:
        """Write both checksums.

        The payload is not in `matrix` yet, so its sum is computed from the sums of the payload pool.
        """
        words = matrix[:, IP_AT:HEADERS_END].view(np.uint16)
        ip_words = (TCP_AT - IP_AT) // 2
        addresses_at = 6
        records["ip_checksum"] = _folded(words[:, :ip_words].sum(axis=1, dtype=np.uint32))
        payload_bytes = segments["payload_bytes"].astype(np.int64)
        tcp_bytes = records["total_length"].astype(np.uint16) - np.uint16(20)
        start = (segments["seq"] % _POOL_BYTES).astype(np.int64)
        whole = start + payload_bytes // 2 * 2
        odd_byte = np.where(payload_bytes % 2 == 1, self._pool[whole], 0)
        total = words[:, addresses_at:].sum(axis=1, dtype=np.uint32).astype(np.int64)
        # the sum of the TCP header must not contain the IP checksum, which is before the addresses
        total += tcp_bytes.byteswap().astype(np.int64) + (_TCP << 8)
        total += self._word_sums[whole] - self._word_sums[start] + odd_byte
        records["tcp_checksum"] = _folded(total)


def _sums_of_every_second_word(pool: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return prefix sums S of every second 16-bit word.

    If b - a is even, S[b] - S[a] is the sum of the words at a, a + 2 and so on, up to b - 2.
    """
    words = pool[:-1].astype(np.int64) | pool[1:].astype(np.int64) << 8
    sums = np.zeros(len(pool) + 1, np.int64)
    for parity in (0, 1):
        running = np.cumsum(words[parity::2])
        sums[parity + 2 :: 2][: len(running)] = running
    return sums


def _folded(total: NDArray[np.integer]) -> NDArray[np.uint16]:
    """Return the one's complement of the one's complement sum (RFC 1071)."""
    folded = total.astype(np.int64)
    for _ in range(3):
        folded = (folded & 0xFFFF) + (folded >> 16)
    return (~folded & 0xFFFF).astype(np.uint16)
