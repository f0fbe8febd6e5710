"""Frames of every link type and tunnel that is read, as seeds: one short TCP exchange, wrapped in all ways.

Headers come from Scapy where it has them; those it has not are written out, with the standard that says so. Families
are dictionaries: name → (place of the link type in the family's list in `src/frames.rs`, frames with their control).
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III
from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.mpls import MPLS
from scapy.layers.dot11 import Dot11, Dot11QoS, RadioTap
from scapy.layers.inet import IP, TCP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, Jumbo, fragment6
from scapy.layers.l2 import GRE, LLC, SNAP, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Dot3, Ether
from scapy.layers.ppp import HDLC, PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

if TYPE_CHECKING:
    from collections.abc import Callable

Frames = list[tuple[int, bytes]]
Family = dict[str, tuple[int, Frames]]

MILLISECOND, DELAYED_ACK = 2, 3  # time steps, see `src/frames.rs`
CUT = 2 << 3  # 1,400 bytes were not captured
CELL_BYTES = 48


def exchange(v6: bool = False) -> list[Packet]:  # noqa: FBT001, FBT002 – IPv4 or IPv6
    """Handshake, a request, an answer in two segments, the end."""
    client, server = (IPv6(src="fd00::1", dst="fd00::2"), IPv6(src="fd00::2", dst="fd00::1")) if v6 else (
        IP(src="10.0.0.1", dst="10.0.0.2", id=7),
        IP(src="10.0.0.2", dst="10.0.0.1", id=9),
    )  # fmt: skip
    to, back = {"sport": 40_000, "dport": 80}, {"sport": 80, "dport": 40_000}
    offer = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("NOP", None), ("WScale", 7)]
    return [
        client / TCP(**to, flags="S", seq=100, options=offer),
        server / TCP(**back, flags="SA", seq=900, ack=101, options=offer),
        client / TCP(**to, flags="PA", seq=101, ack=901) / b"GET / HTTP/1.0\r\n\r\n",
        server / TCP(**back, flags="A", seq=901, ack=119) / (b"HTTP/1.0 200 OK\r\n" + b"x" * 40),
        server / TCP(**back, flags="FPA", seq=958, ack=119) / b"the end",
        client / TCP(**to, flags="A", seq=119, ack=901, options=[("NOP", None), ("NOP", None), ("SAck", (958, 966))]),
        client / TCP(**to, flags="FA", seq=119, ack=966),
    ]


def wrapped(wrap: Callable[[Packet], Packet | bytes], v6: bool = False) -> Frames:  # noqa: FBT001, FBT002
    """The exchange, each packet through `wrap`."""
    return [(MILLISECOND, bytes(wrap(packet))) for packet in exchange(v6)]


def ether(station: int = 2, kind: int | None = None) -> Packet:
    """An Ethernet header; with its addresses said, Scapy asks the network for none."""
    addresses = {"src": "02:00:00:00:00:01", "dst": f"02:00:00:00:00:{station:02x}"}
    return Ether(**addresses) if kind is None else Ether(**addresses, type=kind)


def header(data: bytes) -> Callable[[Packet], bytes]:
    """Put `data` before a packet."""
    return lambda packet: data + bytes(packet)


def outer(protocol: int = 0) -> Packet:
    """The Ethernet and IP headers of a tunnel; the protocol only where Scapy cannot tell it by what follows."""
    return ether() / IP(src="192.0.2.1", dst="192.0.2.2", **({"proto": protocol} if protocol else {}))


def inner(packet: Packet) -> Packet:
    """A frame inside a tunnel."""
    return ether(4) / packet


def udp(port: int) -> Packet:
    """A UDP tunnel."""
    return outer() / UDP(sport=49_152, dport=port)


def fragmented() -> Frames:
    """IPv4 fragments: whole, in reverse, twice, overlapping, the last one missing."""
    packet = IP(src="10.0.0.1", dst="10.0.0.2", id=77) / TCP(sport=40_000, dport=80, flags="A") / (b"f" * 100)
    parts = [bytes(ether() / part) for part in fragment(packet, fragsize=48)]
    other = [bytes(ether() / part) for part in fragment(packet.__class__(bytes(packet).replace(b"\0M", b"\0N", 1)), fragsize=24)]
    late = [(5, parts[0]), (5, parts[0])]  # longer than fragments wait
    return [(0, part) for part in [*parts, *reversed(parts), parts[0], *parts, other[0], other[2], other[0]]] + late


def fragmented_v6() -> Frames:
    """IPv6 fragments, and an atomic one."""
    whole = IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrFragment(id=5) / TCP(sport=40_000, dport=80, flags="A") / (b"f" * 1400)
    atomic = IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrFragment(id=6) / TCP(sport=40_000, dport=80, flags="A")
    return [(0, bytes(ether() / part)) for part in [*fragment6(whole, 1280), atomic]]


def tunneled_fragments() -> Frames:
    """Fragments of a tunnel's packets, which hold fragments again."""
    parts = fragment(IP(id=3) / TCP(flags="A") / (b"f" * 64), fragsize=40)
    return [(0, bytes(ether() / part)) for one in parts for part in fragment(IP(id=100 + one.frag) / GRE() / one, fragsize=32)]


def llc(packet: Packet) -> Packet:
    """LLC and SNAP before an IP packet."""
    return LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP() / packet


# 802.1ah and FabricPath, WCCP version 2, Teredo's origin indication, AYIYA (identity of 4 bytes, no signature).
ETHERNET: Family = {
    "plain": (0, wrapped(lambda p: ether() / p)),
    "plain-ipv6": (0, wrapped(lambda p: ether() / p, v6=True)),
    "cut": (0, [(CUT | DELAYED_ACK, bytes(ether() / p)) for p in exchange()]),
    "padded": (0, wrapped(lambda p: bytes(ether() / p) + bytes(30))),
    "802.3": (0, wrapped(lambda p: Dot3(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / llc(p))),
    "vlan": (0, wrapped(lambda p: ether() / Dot1Q(vlan=5) / p)),
    "qinq": (0, wrapped(lambda p: ether() / Dot1AD(vlan=5) / Dot1Q(vlan=6) / p)),
    "mpls": (0, wrapped(lambda p: ether() / MPLS(label=1, s=0) / MPLS(label=2, s=1) / p)),
    "mpls-pseudowire": (0, wrapped(lambda p: ether(kind=0x8847) / MPLS(label=2, s=1) / Raw(bytes(4) + bytes(inner(p))))),
    "pppoe": (0, wrapped(lambda p: ether() / PPPoE(sessionid=1) / PPP() / p)),
    "pbb": (0, wrapped(lambda p: ether(kind=0x88E7) / Raw(bytes(4) + bytes(inner(p))))),
    "fabricpath": (0, wrapped(lambda p: ether(kind=0x8903) / Raw(bytes(2) + bytes(inner(p))))),
    "ip-in-ip": (0, wrapped(lambda p: outer() / p)),
    "6in4": (0, wrapped(lambda p: outer() / p, v6=True)),
    "gre": (0, wrapped(lambda p: outer() / GRE(chksum_present=1, key_present=1, seqnum_present=1) / p)),
    "gre-ethernet": (0, wrapped(lambda p: outer() / GRE(proto=0x6558) / inner(p))),
    "gre-wccp": (0, wrapped(lambda p: outer() / GRE(proto=0x883E) / Raw(bytes(4) + bytes(p)))),
    "gre-pptp": (0, wrapped(lambda p: outer(47) / Raw(bytes.fromhex("3081880b00000001000000010000000121") + bytes(p)))),
    "erspan-2": (0, wrapped(lambda p: outer() / GRE(seqnum_present=1) / ERSPAN_II() / inner(p))),
    "erspan-3": (0, wrapped(lambda p: outer() / GRE(seqnum_present=1) / ERSPAN_III() / inner(p))),
    "vxlan": (0, wrapped(lambda p: udp(4789) / VXLAN(vni=3) / inner(p))),
    "geneve": (0, wrapped(lambda p: udp(6081) / GENEVE(vni=3) / inner(p))),
    "gtp": (0, wrapped(lambda p: udp(2152) / GTP_U_Header(teid=1) / p)),
    "gtp-extended": (0, wrapped(lambda p: udp(2152) / Raw(bytes.fromhex("36ff00600000000100000085") + b"\x01\0\0\0" + bytes(p)))),
    "teredo": (0, wrapped(lambda p: udp(3544) / Raw(bytes.fromhex("0000f0f0aabbccdd") + bytes(p)), v6=True)),
    "ayiya": (0, wrapped(lambda p: udp(5072) / Raw(bytes.fromhex("2000012900000000") + bytes(4) + bytes(p)), v6=True)),
    "udp": (0, [(MILLISECOND, bytes(outer() / UDP(sport=7, dport=5001) / Raw(bytes([at]) * 32))) for at in range(4)]),
    "extension-headers": (0, wrapped(lambda p: ether() / IPv6() / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / p.payload)),
    "jumbogram": (0, wrapped(lambda p: ether() / IPv6(plen=0) / IPv6ExtHdrHopByHop(options=[Jumbo(jumboplen=70_000)]) / p.payload)),
    "big-tcp": (0, wrapped(lambda p: ether() / IP(len=0, src=p.src, dst=p.dst) / p.payload)),
    "authentication": (0, wrapped(lambda p: ether() / IP(proto=51) / Raw(b"\x06\x04" + bytes(22) + bytes(p.payload)))),
    "fragments": (0, fragmented()),
    "fragments-ipv6": (0, fragmented_v6()),
    "fragments-tunneled": (0, tunneled_fragments()),
    "deep": (
        0,
        [
            (0, bytes(ether(kind=0x8100)) + bytes.fromhex("00018100") * depth + bytes.fromhex("00010800") + bytes(exchange()[0]))
            for depth in (3, 22, 40)
        ],
    ),
}

LOOPBACK_COOKED_RAW: Family = {
    "null": (0, wrapped(header(struct.pack("<I", 2)))),
    "null-ipv6": (0, wrapped(header(struct.pack("<I", 30)), v6=True)),
    "loop": (1, wrapped(header(struct.pack(">I", 2)))),
    "cooked": (2, wrapped(lambda p: CookedLinux() / p)),
    "cooked-llc": (2, wrapped(lambda p: CookedLinux(proto=4) / Raw(bytes(llc(p))))),
    "cooked-v2": (3, wrapped(lambda p: CookedLinuxV2() / p)),
    "raw": (4, wrapped(bytes)),
    "raw-ipv6": (4, wrapped(bytes, v6=True)),
    "raw-bsd": (5, wrapped(bytes)),
    "raw-openbsd": (6, wrapped(bytes)),
    "ipv4": (7, wrapped(bytes)),
    "ipv6": (8, wrapped(bytes, v6=True)),
}


def aal5(payload: bytes) -> bytes:
    """A PDU with padding, length and CRC (ITU-T I.363.5, 9.2.1)."""
    padding = -(len(payload) + 8) % CELL_BYTES
    body = payload + bytes(padding) + struct.pack(">BBH", 0, 0, len(payload))
    # AAL5 uses Ethernet's polynomial with the bits in reverse order. So each byte and the result of CRC-32 are reversed.
    turned = bytes(int(f"{byte:08b}"[::-1], 2) for byte in body)
    crc = int(f"{zlib.crc32(turned):032b}"[::-1], 2)
    return body + struct.pack(">I", crc)


def rfc1483(packet: Packet) -> bytes:
    """Routed LLC/SNAP."""
    return bytes(llc(packet))


def bridged(packet: Packet) -> bytes:
    """Bridged Ethernet (RFC 2684, 5.2): organization, type, two bytes of padding."""
    return bytes.fromhex("aaaa030080c200070000") + bytes(inner(packet))


def sun(kind: int, payload: bytes) -> bytes:
    """SunATM's pseudo-header."""
    return struct.pack(">BBH", kind, 0, 32) + payload


ATM: Family = {
    "routed": (0, wrapped(rfc1483)),
    "routed-ipv6": (0, wrapped(rfc1483, v6=True)),
    "bridged": (0, wrapped(bridged)),
    "bridged-alone": (0, wrapped(lambda p: bytes(2) + bytes(inner(p)))),
    "multiplexed": (0, wrapped(bytes)),
    "nlpid": (0, wrapped(header(bytes.fromhex("fefe03cc")))),
    "clip": (1, wrapped(bytes)),
    "sun-llc": (2, wrapped(lambda p: sun(0x82, rfc1483(p)))),
    "sun-lane": (2, wrapped(lambda p: sun(1, bytes(2) + bytes(inner(p))))),
}


def erf_record(kind: int, payload: bytes, wire_bytes: int | None = None, extensions: int = 0) -> bytes:
    """An ERF record: time (little-endian fixed point), type, flags, record length, loss counter, wire length."""
    body = b"".join(bytes([0x80 if at + 1 < extensions else 0]) + bytes(7) for at in range(extensions)) + payload
    body += bytes(-len(body) % 8)
    flags_and_lengths = struct.pack(">BBHHH", kind | (0x80 if extensions else 0), 4, 16 + len(body), 0, wire_bytes or len(payload))
    return struct.pack("<Q", 1_700_000_000 << 32) + flags_and_lengths + body


def cells(payload: bytes, vci: int = 32) -> list[bytes]:
    """The cells of a PDU as ERF records: 4 bytes of header without HEC, 48 of payload."""
    pdu = aal5(payload)
    starts = range(0, len(pdu), CELL_BYTES)
    headers = [struct.pack(">I", vci << 4 | (2 if start + CELL_BYTES == len(pdu) else 0)) for start in starts]
    return [erf_record(3, head + pdu[start : start + CELL_BYTES], 52) for head, start in zip(headers, starts, strict=True)]


def all_cells(without: int | None = None) -> Frames:
    """The exchange in cells; without one of them."""
    records = [record for packet in exchange() for record in cells(rfc1483(packet))]
    return [(0, record) for at, record in enumerate(records) if at != without]


def two_channels() -> Frames:
    """Two PDUs under way at a time."""
    first, second = (cells(bytes(exchange()[3]), vci) for vci in (32, 33))
    return [(0, record) for pair in zip(first, second, strict=True) for record in pair]


VC_HEADER = struct.pack(">I", 32 << 4)
ERF: Family = {
    "ethernet": (0, wrapped(lambda p: erf_record(2, bytes(2) + bytes(ether() / p)))),
    "ethernet-extended": (0, wrapped(lambda p: erf_record(2, bytes(2) + bytes(ether() / p), extensions=2))),
    "hdlc": (0, wrapped(lambda p: erf_record(1, bytes(HDLC() / PPP() / p)))),
    "cisco-hdlc": (0, wrapped(lambda p: erf_record(1, bytes.fromhex("0f000800") + bytes(p)))),
    "multichannel-hdlc": (0, wrapped(lambda p: erf_record(5, bytes(4) + bytes(HDLC() / PPP() / p)))),
    "aal5": (0, wrapped(lambda p: erf_record(4, VC_HEADER + aal5(rfc1483(p))))),
    "multichannel-aal5": (0, wrapped(lambda p: erf_record(9, bytes(4) + VC_HEADER + aal5(bytes(p))))),
    "ipv4": (0, wrapped(lambda p: erf_record(22, bytes(p)))),
    "ipv6": (0, wrapped(lambda p: erf_record(23, bytes(p)), v6=True)),
    "cells": (0, all_cells()),
    "cells-lost": (0, all_cells(without=5)),
    "cells-end-lost": (0, all_cells(without=1)),
    "cells-two-channels": (0, two_channels()),
}


def dot11(packet: Packet) -> Packet:
    """A data frame from an access point."""
    return Dot11(type=2, subtype=0, FCfield="from_DS") / llc(packet)


def nflog(packet: Packet) -> bytes:
    """Netfilter's log: a prefix, then the packet."""
    return struct.pack(">BBH", 2, 0, 5) + struct.pack("<HH", 6, 10) + b"x\0\0\0" + struct.pack("<HH", 4 + len(packet), 9) + bytes(packet)


def wifi_fragments() -> Frames:
    """802.11 frames in two fragments; the second fragment of the last packet is missing."""
    frames = []
    for at, packet in enumerate(exchange()):
        body = bytes(llc(packet))
        for number, part in enumerate((body[:40], body[40:])):
            head = Dot11(type=2, FCfield="to_DS" if number else "to_DS+MF", SC=at << 4 | number)
            frames.append((MILLISECOND, bytes(head) + part))
    return frames[:-1]


def aggregate(packets: list[Packet]) -> bytes:
    """An 802.11 frame with several packets (A-MSDU), all padded to four bytes."""
    parts = [bytes(12) + len(llc(packet)).to_bytes(2, "big") + bytes(llc(packet)) for packet in packets]
    head = bytes(Dot11(type=2, subtype=8, FCfield="to_DS")) + b"\x80\0"
    return head + b"".join(part + bytes(-len(part) % 4) for part in parts)


WIFI_PPP_OTHER: Family = {
    "802.11": (0, wrapped(dot11)),
    "802.11-qos": (0, wrapped(lambda p: Dot11(type=2, subtype=8, FCfield="to_DS+from_DS") / Dot11QoS() / llc(p))),
    "802.11-fragments": (0, wifi_fragments()),
    "802.11-aggregates": (0, [(MILLISECOND, aggregate(exchange()[:3])), (MILLISECOND, aggregate(exchange()[3:]))]),
    "802.11-management": (0, wrapped(lambda p: Dot11(type=0, subtype=8) / Raw(bytes(p)))),
    "radiotap": (1, wrapped(lambda p: RadioTap() / dot11(p))),
    "ppp": (2, wrapped(lambda p: PPP() / p)),
    "ppp-hdlc": (3, wrapped(lambda p: HDLC() / PPP() / p)),
    "ppp-ether": (4, wrapped(lambda p: PPPoE(sessionid=1) / PPP() / p)),
    "cisco-hdlc": (5, wrapped(header(bytes.fromhex("0f000800")))),
    "frame-relay": (6, wrapped(header(bytes.fromhex("184103cc")))),
    "frame-relay-snap": (6, wrapped(header(bytes.fromhex("18410300800000000800")))),
    "fddi": (7, wrapped(lambda p: bytes([0x57]) + bytes(12) + bytes(llc(p)))),
    "token-ring": (8, wrapped(lambda p: bytes.fromhex("1040") + bytes(6) + b"\x80" + bytes(5) + b"\x02\x30" + bytes(llc(p)))),
    "slip": (9, wrapped(header(bytes(16)))),
    "arcnet": (10, wrapped(header(bytes.fromhex("01020000d4000001")))),
    "nflog": (11, wrapped(nflog)),
    "ipoib": (12, wrapped(header(bytes(40) + bytes.fromhex("08000000")))),
    "unknown": (13, wrapped(bytes)),
}
