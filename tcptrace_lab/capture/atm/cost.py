"""What TCP over ATM costs: how many cells a packet takes, and what share of the line is left for data.

Sources: RFC 2684 (what an AAL5 PDU begins with), ITU-T I.363.5 (AAL5: padding, trailer), ITU-T I.361 (the cell's header).
"""

from __future__ import annotations

CELL_BYTES = 53
"""A cell on the line: 4 bytes of header, the header's checksum (HEC), 48 of payload (I.361)."""

CELL_PAYLOAD_BYTES = 48
AAL5_TRAILER_BYTES = 8
"""User-to-user byte, common-part indicator, 2 bytes of length, 4 of CRC (I.363.5, 9.2.1)."""

LLC_SNAP_BYTES = 8
"""AA-AA-03, organization 00-00-00, Ethernet type (RFC 2684, 5.1)."""

MAX_AAL5_PAYLOAD_BYTES = 65_535
"""The length field of the trailer has 16 bits."""


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
