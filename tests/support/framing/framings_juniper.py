"""Frames of Juniper's link types.

Each kind of card puts its own cookie before the packet. The common header has several forms.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING

from scapy.layers.inet import IP
from scapy.packet import Raw

from tests.support.framing.framings import Framing
from tests.support.framing.link_headers import bridged, cisco_hdlc, ether, frame_relay, hdlc, juniper, juniper_protocol, osi, ppp, snap

if TYPE_CHECKING:
    from collections.abc import Callable


def behind(header: Callable[[bytes], bytes], wrap: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Return a framing that puts `header` before the frame made by `wrap`."""
    return lambda packet: header(wrap(packet))


def juniper_framings() -> dict[str, Framing]:
    """Return all framings of Juniper's link types, with each form of the common header."""
    services = {"in": bytes(16), "out": bytes(12), "ext": bytes(16), "old": bytes(12)}
    headers = {
        "in": juniper,
        "out": lambda payload: juniper(payload, flags=0),
        "ext": lambda payload: juniper(payload, extended=True),
        "old": bytes,  # before JUNOS 7, routers wrote no header
    }
    link: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
        "ethernet": (178, ether),
        "pppoe": (167, ether),
        "ppp": (179, hdlc),
        "frame-relay": (180, frame_relay),
        "cisco-hdlc": (181, cisco_hdlc),
        "voice": (183, lambda p: bytes(18) + p),
        "ggsn": (133, lambda p: b"\2\0\0\0" + p),
        "ggsn-ppp": (133, lambda p: b"\xc8\0\0\0" + ppp(p)),
        "atm1": (137, lambda p: bytes(4) + p),
        "atm1-llc": (137, lambda p: bytes(4) + snap(p)),
        "atm1-osi": (137, lambda p: bytes(4) + osi(p)),
        "atm1-cisco": (137, lambda p: bytes(4) + b"\x03\xcc" + p),
        "atm2": (135, lambda p: bytes(8) + p),
        "atm2-llc": (135, lambda p: bytes(8) + snap(p)),
        "atm2-bridged": (135, lambda p: bytes(8) + bridged(p)),
        "atm2-osi": (135, lambda p: bytes(8) + osi(p)),
        "atm2-ppp": (135, lambda p: bytes(8) + ppp(p)),
        "atm2-cisco": (135, lambda p: bytes(8) + b"\x03\xcc" + p),
        "mlppp-link-services": (130, lambda p: b"\x54\0\0\0" + ppp(p)),
        "mlppp-adaptive-services": (130, lambda p: b"\x40\0\0\0\3\0\0\0" + p),
        "mlppp-multilink": (130, lambda p: b"\0\7" + ppp(p)),
        "mlppp-member": (130, ppp),
        "mlppp-member-hdlc": (130, hdlc),
        "mlfr-link-services": (131, lambda p: b"\x54\0\0\0\xcc" + p),
        "mlfr-link-services-ui": (131, lambda p: b"\x54\0\0\0\3\xcc" + p),
        "mlfr-adaptive-services": (131, lambda p: b"\x47" + bytes(7) + p),
        "mlfr-multilink": (131, lambda p: b"\0\7\3\xcc" + p),
        "mlfr-multilink-pad": (131, lambda p: b"\0\7\0\3\xcc" + p),
    }
    found = {
        f"juniper-{name}-{form}": Framing(number, behind(header, wrap))
        for name, (number, wrap) in link.items()
        for form, header in headers.items()
    }
    for form, header in headers.items():
        found[f"juniper-services-{form}"] = Framing(136, behind(header, partial(operator.add, services[form])))
    stripped: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
        "ip": (2, lambda p: p),
        "ip-of-mpls": (3, lambda p: p),
        "mpls-of-ip": (4, lambda p: b"\0\1\x11\x40" + p),
        "mpls": (5, lambda p: b"\0\1\x11\x40" + p),
        "ppp": (200, ppp),
        "osi": (201, lambda p: b"\xcc" + p),
        "llc": (202, snap),
        "snap": (203, snap),
        "ethernet": (204, ether),
        "frame-relay": (207, frame_relay),
        "cisco-hdlc": (208, cisco_hdlc),
    }
    for name, (number, wrap) in stripped.items():
        for link_type in (130, 135, 137, 178, 181):
            found[f"juniper-{link_type}-stripped-{name}"] = Framing(link_type, behind(partial(juniper_protocol, number), wrap))
    found["juniper-178-stripped-ipv6"] = Framing(178, lambda p: juniper_protocol(6, p), v6=True)
    found["juniper-atm2-ethernet-out"] = Framing(135, lambda p: juniper(b"\0\0\0\1\0\0\0\0" + ether(p), flags=0))
    found["juniper-mlppp-adaptive-services-ppp-in"] = Framing(130, lambda p: juniper(b"\x40" + bytes(7) + ppp(p)))
    found["juniper-mlppp-adaptive-services-ipv6"] = Framing(130, lambda p: juniper(b"\x40\0\0\0\0\x10\0\0" + p), v6=True)
    found["juniper-secure-tunnel"] = Framing(200, lambda p: juniper(ether(IP(proto=50) / Raw(bytes(24) + p))))
    return found
