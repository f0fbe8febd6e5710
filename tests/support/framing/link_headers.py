"""Headers before IP. Each function turns an IP packet (or a payload) into bytes.

Scapy makes the headers that it supports. The other headers are written out, next to the name of the document that defines them. Without
such a document, the source is Wireshark's dissector.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

from scapy.contrib.mpls import MPLS
from scapy.layers.dot11 import Dot11, Dot11QoS
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import GRE, LLC, SNAP, Ether
from scapy.packet import Packet, Raw

if TYPE_CHECKING:
    from collections.abc import Callable

ETHERTYPE = {4: 0x0800, 6: 0x86DD}
PPP_PROTOCOL = {4: 0x0021, 6: 0x0057}
NLPID = {4: b"\xcc", 6: b"\x8e"}
BSD_FAMILY = {4: 2, 6: 28}
CRC_BYTES = 4

TO_DISTRIBUTION_SYSTEM, FROM_DISTRIBUTION_SYSTEM, PROTECTED = 1, 2, 0x40
"""Flags of an 802.11 header (IEEE 802.11, 9.2.4.1)."""


def version(packet: bytes) -> int:
    """Return the IP version of a packet, 4 or 6."""
    return packet[0] >> 4


def station(number: int) -> str:
    """Return the MAC address of a station."""
    return f"02:00:00:00:00:{number:02x}"


def ether(packet: Packet | bytes, kind: int | None = None) -> bytes:
    """Return an Ethernet II frame without its checksum."""
    data = bytes(packet)
    return bytes(Ether(dst=station(2), src=station(1), type=ETHERTYPE[version(data)] if kind is None else kind) / Raw(data))


def fcs(frame: bytes) -> bytes:
    """Return an Ethernet frame with its checksum (IEEE 802.3, 3.2.9)."""
    return frame + zlib.crc32(frame).to_bytes(CRC_BYTES, "little")


def snap(packet: bytes) -> bytes:
    """Return a packet behind an LLC/SNAP header (RFC 1042)."""
    return bytes(LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(code=ETHERTYPE[version(packet)]) / Raw(packet))


def bridged(packet: bytes) -> bytes:
    """Return an LLC header with a bridged frame (RFC 2684, 5.2)."""
    return bytes.fromhex("aaaa03 0080c2 0007 0000") + ether(packet)


def osi(packet: bytes) -> bytes:
    """Return an LLC header with a network-layer protocol identifier (RFC 2684, 5.1)."""
    return bytes.fromhex("fefe03") + NLPID[version(packet)] + packet


PSEUDOWIRE_STATIONS = bytes.fromhex("00000c000002 00000c000001")
"""MAC addresses of a known manufacturer. tshark assumes Ethernet only if it finds such addresses."""


def ppp(packet: bytes) -> bytes:
    """Return a packet in PPP without address and control fields."""
    return PPP_PROTOCOL[version(packet)].to_bytes(2, "big") + packet


def hdlc(packet: bytes) -> bytes:
    """Return a packet in PPP with HDLC-like framing (RFC 1662)."""
    return b"\xff\x03" + ppp(packet)


def cisco_hdlc(packet: bytes) -> bytes:
    """Return a packet in Cisco's HDLC."""
    return b"\x0f\0" + ETHERTYPE[version(packet)].to_bytes(2, "big") + packet


def frame_relay(packet: bytes) -> bytes:
    """Return a packet in Frame Relay with an address of two bytes (RFC 2427)."""
    return b"\x18\x41\x03" + NLPID[version(packet)] + packet


def mpls(packet: bytes) -> bytes:
    """Return a packet behind two MPLS labels."""
    return bytes(MPLS(label=16, s=0) / MPLS(label=17, s=1) / Raw(packet))


def udp(port: int, payload: Packet | bytes) -> bytes:
    """Return the payload in a UDP datagram to this port."""
    return ether(IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=49_152, dport=port) / Raw(bytes(payload)))


def outer(protocol: int, payload: Packet | bytes) -> bytes:
    """Return the payload in an IPv4 packet with this protocol number."""
    return ether(IP(src="192.0.2.1", dst="192.0.2.2", proto=protocol) / Raw(bytes(payload)))


def gre(ether_type: int, payload: bytes, **fields: Any) -> bytes:
    """Return the payload in GRE. `fields` are further header fields."""
    return outer(47, GRE(proto=ether_type, **fields) / Raw(payload))


def wifi(packet: bytes, **fields: Any) -> bytes:
    """Return an 802.11 data frame from a station to its access point, without its checksum."""
    addresses = {"addr1": station(9), "addr2": station(1), "addr3": station(2)}
    return bytes(Dot11(**{"type": 2, "subtype": 0, "FCfield": TO_DISTRIBUTION_SYSTEM, **addresses, **fields}) / Raw(snap(packet)))


def wifi_qos(packet: bytes, padding: bytes = b"") -> bytes:
    """Return a packet in an 802.11 QoS data frame, whose header has 26 bytes."""
    header = Dot11(type=2, subtype=8, FCfield=TO_DISTRIBUTION_SYSTEM, addr1=station(9), addr2=station(1), addr3=station(2)) / Dot11QoS()
    return bytes(header) + padding + snap(packet)


def decrypted(packet: bytes, vector: bytes) -> bytes:
    """Return an 802.11 frame that the network card has decrypted.

    The initialization vector is still before the data, and the check value after it.
    """
    plain = wifi(packet, FCfield=TO_DISTRIBUTION_SYSTEM | PROTECTED)
    return plain[:24] + vector + plain[24:] + b"ICV."


def prism(code: int) -> bytes:
    """Return a Prism header of 144 bytes: message code, length, device, and ten items of twelve bytes (linux-wlan-ng)."""
    items = b"".join(((number << 16) + code).to_bytes(4, "little") + bytes((0, 0, 4, 0)) + bytes(4) for number in range(1, 11))
    return code.to_bytes(4, "little") + (144).to_bytes(4, "little") + b"wlan0".ljust(16, b"\0") + items


AVS = bytes.fromhex("80211001 00000040") + bytes(56)
"""An AVS capture header, version 1, of 64 bytes."""

AX25 = bytes.fromhex("a08884 a6a640 60 88968840404061")
"""An AX.25 address (version 2.2, 3.12): two call signs, shifted by one bit. The last bit ends the address."""


def pflog(header_bytes: int) -> Callable[[bytes], bytes]:
    """Return a function that adds a header of OpenBSD's packet filter log.

    The length field of the header excludes the padding to four bytes.
    """

    def wrap(packet: bytes) -> bytes:
        header = bytes((header_bytes, BSD_FAMILY[version(packet)], 0, 0)) + b"em0"
        return header.ljust(-(-header_bytes // 4) * 4, b"\0") + packet

    return wrap


def nsh(packet: bytes) -> bytes:
    """Return a Network Service Header (RFC 8300): base header, service path, four words of context."""
    return bytes((0x0F, 0xC6, 1, {4: 1, 6: 2}[version(packet)])) + bytes.fromhex("000001ff") + bytes(16) + packet


def sun(kind: int, payload: bytes) -> bytes:
    """Return a payload behind SunATM's pseudo-header: direction and type, VPI, VCI."""
    return bytes((kind, 0, 0, 33)) + payload


def juniper(payload: bytes, flags: int = 1, *, extended: bool = False) -> bytes:
    """Return a payload behind Juniper's header: magic, flags, and optional extensions.

    Flag 1 means incoming, flag 2 means that there is no link header.
    """
    return b"MGC" + (bytes((flags | 0x80, 0, 6, 1, 4, 0, 0, 0, 1)) if extended else bytes((flags,))) + payload


def juniper_protocol(number: int, payload: bytes) -> bytes:
    """Return a packet without link header. Juniper's header contains the protocol in Juniper's numbers."""
    return juniper(number.to_bytes(4, "little") + payload, flags=3)


def mpacket(delimiter: int, preamble_bytes: int = 7) -> Callable[[bytes], bytes]:
    """Return a function that makes an mPacket (IEEE 802.3br): preamble, delimiter, frame, checksum."""
    return lambda packet: b"\x55" * preamble_bytes + bytes((delimiter,)) + fcs(ether(packet))


def tzsp(kind: int, payload: bytes) -> bytes:
    """Return a packet in the TaZmen Sniffer Protocol.

    The header has version, type and link, then padding, a value and the end tag.
    """
    return bytes((1, 0, 0, kind, 0, 10, 1, 0xC0, 1)) + payload


def pptp(packet: bytes) -> bytes:
    """Return a packet in the GRE header of PPTP, with sequence and acknowledgment numbers (RFC 2637, 4.1)."""
    return outer(47, b"\x30\x81\x88\x0b" + len(hdlc(packet)).to_bytes(2, "big") + bytes(10) + hdlc(packet))


def eoip(packet: bytes) -> bytes:
    """Return a packet in MikroTik's Ethernet over IP.

    The header is GRE version 1. Its key contains the length and the tunnel number.
    """
    return outer(47, b"\x20\x01\x64\0" + len(ether(packet)).to_bytes(2, "big") + b"\1\0" + ether(packet))


def l2tp(packet: bytes) -> bytes:
    """Return a packet in L2TP with all header fields: length, tunnel, session, sequence numbers and offset (RFC 2661, 3.1)."""
    inside = bytes.fromhex("0001 0002 0003 0004 0000") + hdlc(packet)
    return udp(1701, bytes.fromhex("4a02") + (len(inside) + 4).to_bytes(2, "big") + inside)


def pktap(link_type: int, frame: bytes) -> bytes:
    """Return a frame in PKTAP (XNU, `bsd/net/pktap.h`).

    The header has its length, record type, link type of the content, interface, flags, process, and so on.
    """
    return struct.pack("<III24sIIIIi20sIHH", 108, 1, link_type, b"en0", 2, 2, 14, 0, 99, b"curl", 0, 6, 0).ljust(108, b"\0") + frame
