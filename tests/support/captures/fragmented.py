"""Exchanges whose packets are IP fragments."""

from __future__ import annotations

from typing import Any

from scapy.layers.inet import IP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, fragment6

from tests.support import packets
from tests.support.framing import link_headers as headers

TEXT = """
    0 C > S S  0:0(0)           win 64240 <mss 8960>
    1 S > C S. 0:0(0)    ack 1  win 65160 <mss 8960>
    2 C > S P. 1:1401    ack 1  {ttl 61}
    3 S > C .  1:1(0)    ack 1401
"""


HOSTS_V6 = "host A [2001:db8::1]:40000\nhost B [2001:db8::2]:80\n"


FRAGMENT_BYTES = 400


DATA_FRAME = 2
"""Index (from 0) of the segment that has data."""


def exchange(v6: bool = False) -> list[packets.Frame]:  # noqa: FBT001, FBT002  (IPv4 or IPv6)
    """Return the frames of an exchange without link headers."""
    lines = (HOSTS_V6 + TEXT.replace("C >", "A >").replace("> C", "> A").replace("S >", "B >").replace("> S", "> B")) if v6 else TEXT
    return packets.frames(lines, link="raw")


def in_parts(packet: bytes) -> list[bytes]:
    """Return the fragments of an IP packet, in order."""
    scapy: Any = (fragment, fragment6)  # Scapy's functions have no types
    split, split_v6 = scapy
    if headers.version(packet) == 4:
        return [bytes(part) for part in split(IP(packet), FRAGMENT_BYTES)]
    ip = IPv6(packet)
    fragmentable = IPv6(src=ip.src, dst=ip.dst, hlim=ip.hlim) / IPv6ExtHdrFragment(id=7) / ip.payload
    return [bytes(part) for part in split_v6(fragmentable, FRAGMENT_BYTES + 56)]
