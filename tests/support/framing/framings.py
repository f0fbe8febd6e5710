"""Every encapsulation of IP that the engine reads: link type, bytes, and the names of its layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.dot11 import RadioTap
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment
from scapy.layers.l2 import GRE, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Dot3
from scapy.layers.ppp import HDLC, PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from tests.support.framing.link_headers import (
    AVS,
    AX25,
    FROM_DISTRIBUTION_SYSTEM,
    PSEUDOWIRE_STATIONS,
    TO_DISTRIBUTION_SYSTEM,
    bridged,
    cisco_hdlc,
    decrypted,
    eoip,
    ether,
    fcs,
    frame_relay,
    gre,
    hdlc,
    l2tp,
    mpacket,
    mpls,
    nsh,
    osi,
    outer,
    pflog,
    pktap,
    ppp,
    pptp,
    prism,
    snap,
    station,
    sun,
    tzsp,
    udp,
    wifi,
    wifi_qos,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Framing:
    """One encapsulation of IP.

    Attributes:
        link_type: number of the link type.
        wrap: IP packet → frame.
        layers: the expected value of the engine's column `layers`; None if the tests do not check it.
        v6: whether the packet is IPv6.
    """

    link_type: int
    wrap: Callable[[bytes], Packet | bytes]
    layers: str | None = None
    v6: bool = False


LOCAL: dict[str, Framing] = {
    "ethernet-padded": Framing(1, lambda p: ether(p) + bytes(20), "eth/ip/tcp"),
    "ethernet-802.3": Framing(1, lambda p: Dot3(dst=station(2), src=station(1)) / Raw(snap(p)), "eth/llc/ip/tcp"),
    "ethernet-802.3-ip-sap": Framing(1, lambda p: Dot3(dst=station(2), src=station(1)) / Raw(b"\x06\x06\x03" + p), "eth/llc/ip/tcp"),
    "qinq": Framing(1, lambda p: ether(Dot1AD(vlan=5, type=0x8100) / Dot1Q(vlan=6, type=0x800) / Raw(p), 0x88A8), "eth/vlan/vlan/ip/tcp"),
    "802.1ah": Framing(1, lambda p: ether(bytes(4) + ether(p), 0x88E7), "eth/pbb/eth/ip/tcp"),
    "fabricpath": Framing(1, lambda p: ether(bytes(2) + fcs(ether(p)), 0x8903), "eth/fabricpath/eth/ip/tcp"),
    "isl": Framing(1, lambda p: bytes.fromhex("01000c000000 020000000001") + (len(ether(p)) + 16).to_bytes(2, "big")
                   + bytes.fromhex("aaaa03 020000 0002 0000 0000") + fcs(ether(p)) + b"CRC.", "eth/eth/ip/tcp"),
    "cisco-metadata": Framing(1, lambda p: ether(bytes.fromhex("0101 0001 0005 0800") + p, 0x8909), "eth/cmd/ip/tcp"),
    "hsr": Framing(1, lambda p: ether(bytes.fromhex("0040 0001 0800") + p, 0x892F), "eth/hsr/ip/tcp"),
    "macsec-in-clear": Framing(1, lambda p: ether(bytes.fromhex("0000 00000001 0800") + p + bytes(16), 0x88E5), "eth/macsec/ip/tcp"),
    "macsec-in-clear-with-channel": Framing(1, lambda p: ether(b"\x20\0\0\0\0\1" + bytes(8) + b"\x08\0" + p + bytes(16), 0x88E5)),
    "trill": Framing(1, lambda p: ether(bytes.fromhex("0001 0001 0002") + ether(p), 0x22F3), "eth/trill/eth/ip/tcp"),
    "ethernet-mpacket": Framing(274, mpacket(0xD5), "eth/ip/tcp"),
    "ethernet-mpacket-short-preamble": Framing(274, mpacket(0xD5, 3)),
    "ethernet-mpacket-without-preamble": Framing(274, lambda p: fcs(ether(p))),
    "ethernet-mpacket-could-be-preempted": Framing(274, mpacket(0xE6)),
    "fddi": Framing(10, lambda p: b"\x50" + bytes(12) + snap(p), "llc/ip/tcp"),
    "fddi-snap-802.1h": Framing(10, lambda p: b"\x50" + bytes(12) + bytes.fromhex("aaaa03 0000f8 0800") + p),
    "fddi-bridged": Framing(10, lambda p: b"\x50" + bytes(12) + bridged(p), "llc/eth/ip/tcp"),
    "fddi-osi": Framing(10, lambda p: b"\x50" + bytes(12) + osi(p)),
    "token-ring": Framing(6, lambda p: bytes.fromhex("1040 020000000002 020000000001") + snap(p), "llc/ip/tcp"),
    "token-ring-routed": Framing(6, lambda p: bytes.fromhex("1040 020000000002 820000000001 0630 00110022") + snap(p), "llc/ip/tcp"),
    "arcnet-rfc1051": Framing(7, lambda p: bytes((1, 2, 240)) + p),
    "arcnet-rfc1201": Framing(7, lambda p: bytes((1, 2, 212, 0, 0, 1)) + p),
    "arcnet-exception": Framing(7, lambda p: bytes((1, 2, 212, 255, 255, 255, 212, 0, 0, 1)) + p),
    "arcnet-linux-rfc1051": Framing(129, lambda p: bytes((1, 2, 0, 0, 240)) + p),
    "arcnet-linux-rfc1201": Framing(129, lambda p: bytes((1, 2, 0, 0, 212, 0, 0, 1)) + p),
    "fibre-channel": Framing(122, lambda p: bytes(16) + snap(p), "llc/ip/tcp"),
    "ieee1394": Framing(138, lambda p: bytes(16) + b"\x08\0" + p),
    "infiniband": Framing(242, lambda p: bytes(40) + b"\x08\0\0\0" + p),
}  # fmt: skip

RADIO: dict[str, Framing] = {
    "802.11": Framing(105, wifi, "802.11/llc/ip/tcp"),
    "802.11-fcs": Framing(105, lambda p: fcs(wifi(p))),
    "802.11-qos": Framing(105, wifi_qos, "802.11/llc/ip/tcp"),
    "802.11-four-addresses": Framing(105, lambda p: wifi(p, FCfield=TO_DISTRIBUTION_SYSTEM | FROM_DISTRIBUTION_SYSTEM, addr4=station(3))),
    "802.11-ethernet-inside": Framing(105, lambda p: wifi(p)[:24] + ether(p), "802.11/ip/tcp"),
    "radiotap": Framing(127, lambda p: bytes(RadioTap()) + wifi(p), "802.11/llc/ip/tcp"),
    "radiotap-fcs": Framing(127, lambda p: bytes.fromhex("00000900 02000000 10") + fcs(wifi(p))),
    "radiotap-padded": Framing(127, lambda p: bytes.fromhex("00000900 02000000 20") + wifi_qos(p, bytes(2))),
    "radiotap-padded-behind-time": Framing(127, lambda p: bytes.fromhex("00001100 03000000") + bytes(8) + b"\x20" + wifi_qos(p, bytes(2))),
    "radiotap-padded-behind-words": Framing(
        127, lambda p: bytes.fromhex("00001900 030000a0 00000020") + bytes(4) + bytes(8) + b"\x20" + wifi_qos(p, bytes(2))
    ),
    "prism": Framing(119, lambda p: prism(0x44) + wifi(p), "802.11/llc/ip/tcp"),
    "prism-41": Framing(119, lambda p: prism(0x41) + wifi(p)),
    "prism-left-out": Framing(119, wifi),
    "prism-avs": Framing(119, lambda p: AVS + wifi(p)),
    "avs": Framing(163, lambda p: AVS + wifi(p), "802.11/llc/ip/tcp"),
    "centrino": Framing(1, lambda p: ether(wifi(p), 0x2452), "eth/802.11/llc/ip/tcp"),
    "centrino-wep": Framing(1, lambda p: ether(decrypted(p, b"\1\2\3\0"), 0x2452), "eth/802.11/llc/ip/tcp"),
    "centrino-ccmp": Framing(1, lambda p: ether(decrypted(p, b"\1\2\0\x20\3\4\5\6"), 0x2452)),
    "ax25": Framing(3, lambda p: AX25 + b"\x03\xcc" + p, "ip/tcp"),
    "ax25-information": Framing(3, lambda p: AX25 + b"\x22\xcc" + p),
    "ax25-repeated": Framing(3, lambda p: AX25[:-1] + b"\x60" + AX25[7:] + b"\x03\xcc" + p),
    "ax25-kiss": Framing(202, lambda p: b"\0" + AX25 + b"\x03\xcc" + p),
}

SERIAL: dict[str, Framing] = {
    "ppp": Framing(9, hdlc, "ppp/ip/tcp"),
    "ppp-ipv6": Framing(9, hdlc, "ppp/ipv6/tcp", v6=True),
    "ppp-scapy": Framing(50, lambda p: HDLC() / PPP(proto=0x21) / Raw(p)),
    "ppp-bare": Framing(9, ppp),
    "ppp-compressed": Framing(9, lambda p: b"\x21" + p),
    "ppp-ether-type": Framing(9, lambda p: b"\xff\x03\x08\0" + p),
    "ppp-cisco": Framing(50, cisco_hdlc),
    "ppp-mpls": Framing(9, lambda p: b"\xff\x03\x02\x81" + mpls(p), "ppp/mpls/ip/tcp"),
    "ppp-multilink-whole": Framing(9, lambda p: b"\xff\x03\0\x3d\xc0\0\0\1" + ppp(p), "ppp/ppp/ip/tcp"),
    "ppp-bridged": Framing(9, lambda p: b"\xff\x03\0\x31\0\1" + ether(p), "ppp/eth/ip/tcp"),
    "ppp-with-direction": Framing(204, lambda p: b"\1" + hdlc(p), "ppp/ip/tcp"),
    "pppoe": Framing(1, lambda p: ether(PPPoE(sessionid=1) / PPP(proto=0x21) / Raw(p), 0x8864), "eth/pppoe/ppp/ip/tcp"),
    "ppp-ether": Framing(51, lambda p: PPPoE(sessionid=1) / PPP(proto=0x21) / Raw(p), "pppoe/ppp/ip/tcp"),
    "cisco-hdlc": Framing(104, cisco_hdlc),
    "hdlc-netbsd": Framing(112, cisco_hdlc),
    "frame-relay": Framing(107, frame_relay),
    "frame-relay-ipv6": Framing(107, frame_relay, v6=True),
    "frame-relay-address-of-1": Framing(107, lambda p: b"\x19\x03\xcc" + p),
    "frame-relay-address-of-3": Framing(107, lambda p: b"\x18\x40\x41\x03\xcc" + p),
    "frame-relay-address-of-4": Framing(107, lambda p: b"\x18\x40\x02\x41\x03\xcc" + p),
    "frame-relay-cisco": Framing(107, lambda p: b"\x18\x41\x08\0" + p),
    "frame-relay-ppp": Framing(107, lambda p: b"\x18\x41\x03\xcf" + ppp(p), "ppp/ip/tcp"),
    "frame-relay-snap": Framing(107, lambda p: b"\x18\x41\x03\0\x80\0\0\0\x08\0" + p),
    "frame-relay-bridged": Framing(107, lambda p: bytes.fromhex("1841 03 00 80 0080c2 0007") + ether(p), "eth/ip/tcp"),
    **{
        f"raw-{number}-{name}": Framing(number, wrap)
        for number in (12, 14, 101)
        for name, wrap in {
            "ppp": hdlc,
            "isdn-byte": lambda p: b"\x45" + hdlc(p),
            "isdn-station": lambda p: b"\x45\0\0\0\0\0" + hdlc(p),
            "isdn-line-down": lambda p: bytes(10) + p,
        }.items()
    },
}

CAPTURED: dict[str, Framing] = {
    "cooked": Framing(113, lambda p: CookedLinux(proto=0x800) / Raw(p), "ip/tcp"),
    "cooked-802.2": Framing(113, lambda p: CookedLinux(proto=4) / Raw(snap(p)), "llc/ip/tcp"),
    "cooked-vlan": Framing(113, lambda p: CookedLinux(proto=0x8100) / Dot1Q(vlan=5, type=0x800) / Raw(p), "vlan/ip/tcp"),
    "cooked-v2": Framing(276, lambda p: CookedLinuxV2(proto=0x800) / Raw(p), "ip/tcp"),
    "cooked-v2-ipv6": Framing(276, lambda p: CookedLinuxV2(proto=0x86DD) / Raw(p), "ipv6/tcp", v6=True),
    "null-ppp": Framing(0, hdlc, "ppp/ip/tcp"),
    **{f"pflog-{length}": Framing(117, pflog(length)) for length in (20, 48, 61, 64, 72, 100)},
    "pflog-ipv6": Framing(117, pflog(61), v6=True),
    "enc-big": Framing(109, lambda p: bytes((0, 0, 0, 2)) + bytes(8) + p),
    "enc-little": Framing(109, lambda p: bytes((2, 0, 0, 0)) + bytes(8) + p),
    "enc-openbsd": Framing(13, lambda p: bytes((2, 0, 0, 0)) + bytes(8) + p),
    "enc-ipv6": Framing(109, lambda p: bytes((24, 0, 0, 0)) + bytes(8) + p, v6=True),
    "ipnet": Framing(226, lambda p: bytes((1, 2, 0, 0)) + len(p).to_bytes(4, "big") + bytes(16) + p),
    "ipnet-ipv6": Framing(226, lambda p: bytes((1, 26, 0, 0)) + len(p).to_bytes(4, "big") + bytes(16) + p, v6=True),
    "symantec": Framing(99, lambda p: bytes((1,) * 6) + b"\x08\0" + bytes(36) + p),
    "ppi": Framing(192, lambda p: bytes((0, 0, 8, 0, 105, 0, 0, 0)) + wifi(p), "802.11/llc/ip/tcp"),
    "pktap": Framing(258, lambda p: pktap(1, ether(p)), "eth/ip/tcp"),
    "pktap-raw": Framing(258, lambda p: pktap(12, p), "ip/tcp"),
    "pktap-null-ipv6": Framing(258, lambda p: pktap(0, b"\x1e\0\0\0" + p), v6=True),
    "nflog": Framing(239, lambda p: bytes((2, 0, 0, 1)) + (len(p) + 4).to_bytes(2, "little") + b"\x09\0" + p),
    "tzsp": Framing(128, lambda p: tzsp(1, ether(p)), "eth/ip/tcp"),
    "tzsp-token-ring": Framing(128, lambda p: tzsp(2, bytes.fromhex("1040 020000000002 020000000001") + snap(p))),
    "tzsp-ppp": Framing(128, lambda p: tzsp(4, hdlc(p))),
    "tzsp-fddi": Framing(128, lambda p: tzsp(5, b"\x50" + bytes(12) + snap(p))),
    "tzsp-raw": Framing(128, lambda p: tzsp(7, p)),
    "tzsp-802.11": Framing(128, lambda p: tzsp(18, wifi(p))),
    "tzsp-prism": Framing(128, lambda p: tzsp(119, prism(0x44) + wifi(p))),
    "tzsp-avs": Framing(128, lambda p: tzsp(127, AVS + wifi(p))),
}

CELLS: dict[str, Framing] = {
    "atm-bsd": Framing(11, snap, "aal5/llc/ip/tcp"),
    **{f"clip-{number}": Framing(number, lambda p: p, "aal5/ip/tcp") for number in (16, 18, 19)},
    "sunatm-llc": Framing(123, lambda p: sun(2, snap(p)), "aal5/llc/ip/tcp"),
    "sunatm-llc-bridged": Framing(123, lambda p: sun(2, bridged(p)), "aal5/llc/eth/ip/tcp"),
    "sunatm-llc-ppp": Framing(123, lambda p: sun(2, b"\xfe\xfe\x03\xcf" + ppp(p)), "aal5/llc/ppp/ip/tcp"),
    "sunatm-lane": Framing(123, lambda p: sun(1, bytes(2) + ether(p)), "eth/ip/tcp"),
    **{f"sunatm-{kind:#x}-ip": Framing(123, partial(sun, kind), "aal5/ip/tcp") for kind in (0, 3, 4, 0x80)},
    "sunatm-0-llc": Framing(123, lambda p: sun(0, snap(p))),
    "sunatm-0-bridged": Framing(123, lambda p: sun(0, bridged(p))),
    "sunatm-0-bridged-alone": Framing(123, lambda p: sun(0, bytes(2) + ether(p)), "aal5/eth/ip/tcp"),
    "sunatm-0-ppp": Framing(123, lambda p: sun(0, ppp(p)), "aal5/ppp/ip/tcp"),
}

TUNNELS: dict[str, Framing] = {
    "mpls": Framing(1, lambda p: ether(mpls(p), 0x8847), "eth/mpls/ip/tcp"),
    "mpls-pseudowire": Framing(1, lambda p: ether(MPLS(label=17, s=1) / Raw(bytes(4) + PSEUDOWIRE_STATIONS + ether(p)[12:]), 0x8847),
                               "eth/mpls/eth/ip/tcp"),
    "ip-in-ip": Framing(1, lambda p: outer(4, p), "eth/ip/ip/tcp"),
    "6in4": Framing(1, lambda p: outer(41, p), "eth/ip/ipv6/tcp", v6=True),
    "ip-in-ipv6": Framing(1, lambda p: ether(IPv6(src="2001:db8::7", dst="2001:db8::8", nh=4) / Raw(p)), "eth/ipv6/ip/tcp"),
    "etherip": Framing(1, lambda p: outer(97, b"\x30\0" + ether(p)), "eth/ip/etherip/eth/ip/tcp"),
    "mpls-in-ip": Framing(1, lambda p: outer(137, mpls(p)), "eth/ip/mpls/ip/tcp"),
    "gre": Framing(1, lambda p: gre(0x0800, p), "eth/ip/gre/ip/tcp"),
    "gre-ipv6": Framing(1, lambda p: gre(0x86DD, p), "eth/ip/gre/ipv6/tcp", v6=True),
    "gre-all-fields": Framing(1, lambda p: gre(0x0800, p, chksum_present=1, key_present=1, seqnum_present=1), "eth/ip/gre/ip/tcp"),
    "gre-ethernet": Framing(1, lambda p: gre(0x6558, ether(p), key_present=1), "eth/ip/gre/eth/ip/tcp"),
    "gre-mpls": Framing(1, lambda p: gre(0x8847, mpls(p)), "eth/ip/gre/mpls/ip/tcp"),
    "gre-pptp": Framing(1, pptp, "eth/ip/gre/ppp/ip/tcp"),
    "gre-eoip": Framing(1, eoip, "eth/ip/gre/eth/ip/tcp"),
    "gre-wccp": Framing(1, lambda p: gre(0x883E, bytes(4) + p), "eth/ip/gre/wccp/ip/tcp"),
    "erspan-1": Framing(1, lambda p: gre(0x88BE, ether(p)), "eth/ip/gre/erspan/eth/ip/tcp"),
    "erspan-2": Framing(1, lambda p: gre(0x88BE, bytes(ERSPAN_II() / Raw(ether(p))), seqnum_present=1), "eth/ip/gre/erspan/eth/ip/tcp"),
    "erspan-3": Framing(1, lambda p: gre(0x22EB, bytes(ERSPAN_III() / Raw(ether(p))), seqnum_present=1), "eth/ip/gre/erspan/eth/ip/tcp"),
    "nsh": Framing(1, lambda p: ether(nsh(p), 0x894F), "eth/nsh/ip/tcp"),
    "vxlan": Framing(1, lambda p: udp(4789, VXLAN(vni=3) / Raw(ether(p))), "eth/ip/udp/vxlan/eth/ip/tcp"),
    "vxlan-ipv6": Framing(1, lambda p: udp(4789, VXLAN(vni=3) / Raw(ether(p))), "eth/ip/udp/vxlan/eth/ipv6/tcp", v6=True),
    "vxlan-gpe": Framing(1, lambda p: udp(4790, bytes.fromhex("0c000001 00000300") + p), "eth/ip/udp/vxlan-gpe/ip/tcp"),
    "geneve": Framing(1, lambda p: udp(6081, GENEVE(vni=3, proto=0x6558) / Raw(ether(p))), "eth/ip/udp/geneve/eth/ip/tcp"),
    "geneve-options": Framing(1, lambda p: udp(6081, bytes.fromhex("01000800 00000300 01020300") + p), "eth/ip/udp/geneve/ip/tcp"),
    "gtp": Framing(1, lambda p: udp(2152, b"\x30\xff" + len(p).to_bytes(2, "big") + bytes((0, 0, 0, 1)) + p), "eth/ip/udp/gtp/ip/tcp"),
    "teredo": Framing(1, lambda p: udp(3544, p), "eth/ip/udp/teredo/ipv6/tcp", v6=True),
    "l2tp": Framing(1, lambda p: udp(1701, bytes.fromhex("0002 0001 0002") + hdlc(p)), "eth/ip/udp/l2tp/ppp/ip/tcp"),
    "l2tp-all-fields": Framing(1, l2tp, "eth/ip/udp/l2tp/ppp/ip/tcp"),
    "lisp": Framing(1, lambda p: udp(4341, bytes.fromhex("80000001 00000001") + p), "eth/ip/udp/lisp/ip/tcp"),
    "gre-in-udp": Framing(1, lambda p: udp(4754, GRE(proto=0x800) / Raw(p)), "eth/ip/udp/gre/ip/tcp"),
    "mpls-in-udp": Framing(1, lambda p: udp(6635, mpls(p)), "eth/ip/udp/mpls/ip/tcp"),
    "tzsp-in-udp": Framing(1, lambda p: udp(37_008, tzsp(1, ether(p))), "eth/ip/udp/tzsp/eth/ip/tcp"),
    "tunnel-in-tunnel": Framing(
        1, lambda p: ether(Dot1Q(vlan=5, type=0x800) / Raw(udp(4789, VXLAN(vni=3) / Raw(gre(0x0800, p)))[14:]), 0x8100),
        "eth/vlan/ip/udp/vxlan/eth/ip/gre/ip/tcp",
    ),
    "atomic-fragment": Framing(1, lambda p: ether(p[:4] + (len(p) - 32).to_bytes(2, "big") + b"\x2c" + p[7:40]
                               + bytes(IPv6ExtHdrFragment(nh=6)) + p[40:]), "eth/ipv6/tcp", v6=True),
}  # fmt: skip

PLAIN: Mapping[str, Framing] = {**LOCAL, **RADIO, **SERIAL, **CAPTURED, **CELLS, **TUNNELS}
"""All encapsulations by name, except those of Juniper."""
