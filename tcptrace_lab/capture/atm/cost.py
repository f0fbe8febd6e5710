"""The overhead of TCP over ATM: cells per packet, and the share of the line rate left for TCP payload.

Sources: RFC 2684 (encapsulation in AAL5), ITU-T I.363.5 (AAL5: padding and trailer), ITU-T I.361 (cell header).
"""

from __future__ import annotations

CELL_BYTES = 53
"""Bytes of a cell on the link: 4 of header, 1 of header checksum (HEC), 48 of payload (I.361)."""

CELL_PAYLOAD_BYTES = 48
AAL5_TRAILER_BYTES = 8
"""Bytes of the trailer: user-to-user indication (1), common part indicator (1), length (2), CRC (4) (I.363.5, 9.2.1)."""

LLC_SNAP_BYTES = 8
"""Bytes of LLC header AA-AA-03, organization 00-00-00 and EtherType (RFC 2684, 5.1)."""

MAX_AAL5_PAYLOAD_BYTES = 65_535
"""Largest value of the trailer's 16-bit length field."""


OC3C_LINE_BPS = 149_760_000
"""Cell rate of SONET OC-3c: 155.52 Mb/s × 260/270. Cells use 260 of the 270 columns (ANSI T1.105)."""

OC3C_LINE_MBPS = OC3C_LINE_BPS / 10**6

TAXI_100_LINE_MBPS = 100.0
"""Cell rate of TAXI-100: 4B/5B at 125 Mbaud, without further overhead (ATM Forum UNI 3.1)."""


def cells(pdu_bytes: int) -> int:
    """Return the number of cells of an AAL5 PDU with a payload of `pdu_bytes`. Padding and trailer fill the last cell.

    The payload is the IP packet and, if present, the LLC/SNAP header.

    Raises:
        ValueError: `pdu_bytes` is not between 0 and 65,535.
    """
    if not 0 <= pdu_bytes <= MAX_AAL5_PAYLOAD_BYTES:
        raise ValueError(f"an AAL5 PDU holds 0 to {MAX_AAL5_PAYLOAD_BYTES} bytes, not {pdu_bytes}")
    return -(-(pdu_bytes + AAL5_TRAILER_BYTES) // CELL_PAYLOAD_BYTES)


def line_bytes(pdu_bytes: int) -> int:
    """Return the bytes on the link of an AAL5 PDU with a payload of `pdu_bytes`: all cells, including their headers.

    Raises ValueError if `pdu_bytes` is not between 0 and 65,535.
    """
    return cells(pdu_bytes) * CELL_BYTES


def payload_share(mss_bytes: int, ip_and_tcp_header_bytes: int, *, llc: bool = True) -> float:
    """Return the share of the line rate (0 to 1) that is TCP payload if every segment carries `mss_bytes` of data.

    ACKs are not counted, because they use the other direction of the link.

    Args:
        mss_bytes: payload of a segment.
        ip_and_tcp_header_bytes: size of both headers with options: 40 for IPv4 and TCP without options.
        llc: True if each packet has an LLC/SNAP header (RFC 2684, 5), False if the channel carries only IP (RFC 2684, 6).

    Raises:
        ValueError: a negative size, or a packet too large for a PDU.
    """
    if mss_bytes < 0 or ip_and_tcp_header_bytes < 0:
        raise ValueError("sizes are not negative")
    return mss_bytes / line_bytes(mss_bytes + ip_and_tcp_header_bytes + (LLC_SNAP_BYTES if llc else 0))


def payload_bound_mbps(line_mbps: float, mss_bytes: int, ip_and_tcp_header_bytes: int, *, llc: bool = True) -> float:
    """Return the upper bound of the TCP payload rate in Mb/s, for a cell rate of `line_mbps`.

    `payload_share` describes the other arguments and the errors.
    """
    return line_mbps * payload_share(mss_bytes, ip_and_tcp_header_bytes, llc=llc)


def oc3c_payload_bound_mbps(mss_bytes: int, ip_and_tcp_header_bytes: int, *, llc: bool = True) -> float:
    """Return the upper bound of the TCP payload rate in Mb/s on OC-3c. `payload_share` describes the arguments and the errors."""
    return payload_bound_mbps(OC3C_LINE_MBPS, mss_bytes, ip_and_tcp_header_bytes, llc=llc)
