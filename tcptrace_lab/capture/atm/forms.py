"""The output forms of a conversion, and how a frame or record is built in each form.

Sources: RFC 2684 (encapsulation in AAL5), RFC 2225 (classical IP over ATM), the LINKTYPE registry of tcpdump.org, RFC 1662 (PPP framing),
Endace's "ERF Types Reference Guide" (EDM11-01).
"""

from __future__ import annotations

import functools
import struct
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tcptrace_lab.capture.atm.aal5 import aal5_pdu, atm_header
from tcptrace_lab.capture.atm.cost import cells
from tcptrace_lab.capture.atm.source import ETHER_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

_PPP_PROTOCOLS = {4: 0x0021, 6: 0x0057}
"""IP version → PPP protocol (RFC 1332, RFC 5072)."""


class AtmForm(StrEnum):
    """The output form of a conversion to ATM.

    Each ERF form exists twice: in a pcap file with link type ERF, and as a bare file of ERF records.
    """

    RFC1483_LLC = "rfc1483-llc"
    """LINKTYPE_ATM_RFC1483: LLC/SNAP header and IP packet, routed encapsulation (RFC 2684, 5.1)."""

    RFC1483_BRIDGED = "rfc1483-bridged"
    """LINKTYPE_ATM_RFC1483: LLC/SNAP 00-80-C2-00-07, 2 bytes of padding, Ethernet frame without FCS (RFC 2684, 5.2)."""

    RFC1483_VCMUX = "rfc1483-vcmux"
    """LINKTYPE_ATM_RFC1483 without LLC/SNAP: the channel carries only IP (RFC 2684, 6.1)."""

    CLIP = "clip"
    """LINKTYPE_ATM_CLIP: LLC/SNAP header and IP packet, the default of Linux's atmclip (RFC 2225, 5.1)."""

    CLIP_VCMUX = "clip-vcmux"
    """LINKTYPE_ATM_CLIP without LLC/SNAP (null encapsulation of Linux's atmclip). Wireshark 4.0 reads no other CLIP form."""

    FORE_IP = "fore-ip"
    """Fore adapters without encapsulation. The file equals the file of the form `rfc1483-vcmux` byte by byte, because neither form has a
    header before the IP packet."""

    SUNATM = "sunatm"
    """LINKTYPE_SUNATM: traffic type (LLC), VPI, VCI, LLC/SNAP header and IP packet. The direction is unknown, so every packet is marked as
    received."""

    ERF_AAL5 = "erf-aal5"
    """LINKTYPE_ERF, type 4: ATM header without HEC, LLC/SNAP, packet, padding and trailer."""

    ERF_CELLS = "erf-cells"
    """LINKTYPE_ERF, type 3: one record per cell, ATM header without HEC. The time of a record is the end of its cell."""

    ERF_ETH = "erf-eth"
    """LINKTYPE_ERF, type 2: 2 bytes of offset and padding, Ethernet frame and FCS."""

    ERF_POS = "erf-pos"
    """LINKTYPE_ERF, type 1: PPP in HDLC-like framing: FF-03, protocol, packet and 32-bit FCS (RFC 1662, RFC 2615)."""

    ERF_FILE_AAL5 = "erf-file-aal5"
    """The records of `erf-aal5` without pcap: an `.erf` file."""

    ERF_FILE_CELLS = "erf-file-cells"
    """The records of `erf-cells` without pcap."""

    ERF_FILE_ETH = "erf-file-eth"
    """The records of `erf-eth` without pcap."""

    ERF_FILE_POS = "erf-file-pos"
    """The records of `erf-pos` without pcap."""

    @property
    def is_bare(self) -> bool:
        """True for a bare file of ERF records, without pcap headers."""
        return self.startswith("erf-file-")

    @property
    def is_cells(self) -> bool:
        """True if each cell is a record of its own."""
        return self in {AtmForm.ERF_CELLS, AtmForm.ERF_FILE_CELLS}


@functools.cache
def _llc_snap(organization: int, code: int) -> bytes:
    from scapy.layers.l2 import LLC, SNAP  # noqa: PLC0415  (Scapy takes half a second to import; `cost` does not need it)

    return bytes(LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=organization, code=code))


def llc_snap(packet: bytes) -> bytes:
    """Return the LLC/SNAP header of a routed IP packet (RFC 2684, 5.1)."""
    return _llc_snap(0, ETHER_TYPES[packet[0] >> 4])


@functools.lru_cache(maxsize=1024)
def _ethernet(source: bytes, target: bytes, ether_type: int) -> bytes:
    """Return an Ethernet header. The MAC addresses are locally administered and end in the last four bytes of the IP addresses."""
    from scapy.layers.l2 import Ether  # noqa: PLC0415  (see _llc_snap)

    source_mac, target_mac = (":".join(f"{byte:02x}" for byte in b"\x02\0" + address[-4:]) for address in (source, target))
    return bytes(Ether(src=source_mac, dst=target_mac, type=ether_type))


def _ethernet_frame(packet: bytes) -> bytes:
    is_v4 = packet[0] >> 4 == 4  # noqa: PLR2004  (the version of IP)
    source, target = (packet[12:16], packet[16:20]) if is_v4 else (packet[8:24], packet[24:40])
    return _ethernet(source, target, ETHER_TYPES[packet[0] >> 4]) + packet


def _with_fcs(frame: bytes) -> bytes:
    """Return `frame` followed by the 32-bit FCS of Ethernet and PPP, least significant byte first."""
    return frame + zlib.crc32(frame).to_bytes(4, "little")


# The following functions build the body of a frame or record: (packet, VPI, VCI) → bytes.


def _payload(data: bytes) -> bytes:
    """Return `data` unchanged. Raises ValueError if `data` is too large for a PDU."""
    cells(len(data))
    return data


def routed(packet: bytes, _vpi: int = 0, _vci: int = 0) -> bytes:
    """Return the IP packet with an LLC/SNAP header before it. Raises ValueError if the result is too large for a PDU."""
    return _payload(llc_snap(packet) + packet)


def _bridged(packet: bytes, _vpi: int, _vci: int) -> bytes:
    ieee_802_1, ethernet_without_fcs = 0x0080C2, 0x0007
    return _payload(_llc_snap(ieee_802_1, ethernet_without_fcs) + b"\0\0" + _ethernet_frame(packet))


def _alone(packet: bytes, _vpi: int, _vci: int) -> bytes:
    return _payload(packet)


def _sunatm(packet: bytes, vpi: int, vci: int) -> bytes:
    llc_traffic = 2
    atm_header(vpi, vci, ends_pdu=True)  # called for its check of VPI and VCI
    return struct.pack(">BBH", llc_traffic, vpi, vci) + routed(packet)


def _aal5(packet: bytes, vpi: int, vci: int) -> bytes:
    return atm_header(vpi, vci, ends_pdu=True) + aal5_pdu(routed(packet))


def _erf_ethernet(packet: bytes, _vpi: int, _vci: int) -> bytes:
    return b"\0" * ERF_ETH_PAD_BYTES + _with_fcs(_ethernet_frame(packet))


def _ppp(packet: bytes, _vpi: int, _vci: int) -> bytes:
    return _with_fcs(b"\xff\x03" + struct.pack(">H", _PPP_PROTOCOLS[packet[0] >> 4]) + packet)


ERF_TYPE_HDLC_POS, ERF_TYPE_ETH, ERF_TYPE_ATM, ERF_TYPE_AAL5 = 1, 2, 3, 4
ERF_ETH_PAD_BYTES = 2
_ATM_RFC1483, _ATM_CLIP, _SUNATM, _ERF = 100, 106, 123, 197
"""LINKTYPE_ values (https://www.tcpdump.org/linktypes.html)."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a form builds its frames.

    Attributes:
        link_type: link type of the pcap file.
        body: function that builds the body of a frame.
        erf_type: type of the ERF record; None for forms without ERF.
    """

    link_type: int
    body: Callable[[bytes, int, int], bytes]
    erf_type: int | None = None


_LAYOUTS = {
    "rfc1483-llc": _Layout(_ATM_RFC1483, routed),
    "rfc1483-bridged": _Layout(_ATM_RFC1483, _bridged),
    "rfc1483-vcmux": _Layout(_ATM_RFC1483, _alone),
    "clip": _Layout(_ATM_CLIP, routed),
    "clip-vcmux": _Layout(_ATM_CLIP, _alone),
    "fore-ip": _Layout(_ATM_RFC1483, _alone),
    "sunatm": _Layout(_SUNATM, _sunatm),
    "aal5": _Layout(_ERF, _aal5, ERF_TYPE_AAL5),
    "cells": _Layout(_ERF, _aal5, ERF_TYPE_ATM),
    "eth": _Layout(_ERF, _erf_ethernet, ERF_TYPE_ETH),
    "pos": _Layout(_ERF, _ppp, ERF_TYPE_HDLC_POS),
}
"""Form without its prefix (`erf-` or `erf-file-`) → layout."""


def layout(form: AtmForm) -> _Layout:
    """Return how the frames or records of a form are built."""
    return _LAYOUTS[form.removeprefix("erf-").removeprefix("file-")]
