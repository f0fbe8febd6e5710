"""Writes frames and ERF records to a file, with nanosecond times.

Sources: Endace's "ERF Types Reference Guide" (EDM11-01), and libpcap's pcap-dag.c for ERF records in pcap files.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import TYPE_CHECKING

from tcptrace_lab.capture.atm.forms import ERF_ETH_PAD_BYTES, ERF_TYPE_ATM, ERF_TYPE_ETH, layout
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from tcptrace_lab.capture.atm.forms import AtmForm

_ERF_HEADER = struct.Struct(">BBHHH")
"""Fields after the timestamp: type, flags, record length, number of lost records before this record, length on the wire."""
_ERF_HEADER_BYTES = 8 + _ERF_HEADER.size
_ERF_VARYING_LENGTH = 0x04
_ERF_ALIGNMENT_BYTES = 8
_MAX_UINT16 = 0xFFFF


def erf_record(ts_ns: int, erf_type: int, body: bytes) -> bytes:
    """Return an ERF record without the padding to a multiple of 8 bytes.

    Raises ValueError if the length of the record needs more than 16 bits.
    """
    record_bytes = _aligned(_ERF_HEADER_BYTES + len(body))
    if record_bytes > _MAX_UINT16:
        raise ValueError(f"an ERF record of {record_bytes} bytes would be longer than {_MAX_UINT16}")
    wire_bytes = len(body) - (ERF_ETH_PAD_BYTES if erf_type == ERF_TYPE_ETH else 0)
    flags = 0 if erf_type == ERF_TYPE_ATM else _ERF_VARYING_LENGTH
    return _erf_time(ts_ns) + _ERF_HEADER.pack(erf_type, flags, record_bytes, 0, wire_bytes) + body


def _erf_time(ts_ns: int) -> bytes:
    """Return an ERF timestamp: seconds and 2^-32 s fractions, little-endian.

    The time is rounded up, so that readers that round and readers that truncate both get `ts_ns`.
    """
    seconds, ns = divmod(ts_ns, NS_PER_S)
    return struct.pack("<Q", seconds << 32 | -(-(ns << 32) // NS_PER_S))


def _aligned(count: int) -> int:
    return -(-count // _ERF_ALIGNMENT_BYTES) * _ERF_ALIGNMENT_BYTES


def writer(form: AtmForm, file: BinaryIO) -> Callable[[int, bytes], None]:
    """Return a function that takes a time in ns and bytes, and writes the bytes as one frame or record.

    ERF records in pcap files have no padding, as in libpcap. The returned function raises ValueError for times before 1970 or after 2106.
    """
    from dpkt import pcap  # noqa: PLC0415  (see frames)

    into_pcap = None if form.is_bare else pcap.Writer(file, snaplen=_SNAPLEN_BYTES, linktype=layout(form).link_type, nano=True)

    def write(ts_ns: int, record: bytes) -> None:
        if not 0 <= ts_ns < NS_PER_S << 32:
            raise ValueError(f"the time, {ts_ns} ns since 1970, is not between 1970 and 2106")
        if into_pcap is None:
            file.write(record.ljust(_aligned(len(record)), b"\0"))
        else:
            into_pcap.writepkt_time(record, Decimal(ts_ns).scaleb(-9))

    return write


_SNAPLEN_BYTES = 262_144
"""Snaplen in the pcap header: the default of tcpdump."""
