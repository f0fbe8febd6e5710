"""Writes one capture with all framings, and captures of frames with arbitrary link types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dpkt.pcapng

from tests.support import packets
from tests.support.framing.framings import PLAIN, Framing
from tests.support.framing.framings_juniper import juniper_framings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

EXCHANGE = """
    0 {client} > {server} S   0:0(0)            win 64240 <mss 1400>
    1 {server} > {client} S.  0:0(0)     ack 1  win 65160 <mss 1400>
    2 {client} > {server} P.  1:101(100) ack 1  {{ttl 61}}
    3 {server} > {client} P.  1:4(3)     ack 101
"""
"""The exchange that each framing carries. It has segments with and without data, and one frame is shorter than Ethernet's minimum."""

EXCHANGE_FRAMES = 4

FRAMINGS: Mapping[str, Framing] = {**PLAIN, **juniper_framings()}
"""All framings by name."""


def frames_of(name: str) -> range:
    """Return the numbers of the frames that `write_all` writes for a framing."""
    first = 1 + EXCHANGE_FRAMES * list(FRAMINGS).index(name)
    return range(first, first + EXCHANGE_FRAMES)


def exchange_in(framing: Framing, number: int) -> list[bytes]:
    """Return the frames of the exchange in this framing. The client's port depends on `number`."""
    hosts = ("[2001:db8::1]", "[2001:db8::2]") if framing.v6 else ("10.0.0.1", "10.0.0.2")
    text = f"host A {hosts[0]}:{20_000 + number}\nhost B {hosts[1]}:9999\n" + EXCHANGE.format(client="A", server="B")
    return [bytes(framing.wrap(frame.data)) for frame in packets.frames(text, link="raw")]


def write_all(path: Path) -> None:
    """Write one capture with all framings, each on its own interface and with its own connection."""
    write(path, [(framing.link_type, exchange_in(framing, number)) for number, framing in enumerate(FRAMINGS.values())])


def write(path: Path, framed: list[tuple[int, list[bytes]]]) -> None:
    """Write a pcapng file with an interface for each link type in the list. The frames are 1 ms apart."""
    blocks = [dpkt.pcapng.SectionHeaderBlockLE()]
    blocks += [dpkt.pcapng.InterfaceDescriptionBlockLE(linktype=link_type, snaplen=packets.SNAPLEN_BYTES) for link_type, _ in framed]
    ts_us = packets.BASE_NS // 1000
    for interface, (_, frames) in enumerate(framed):
        for frame in frames:
            ts_us += 1000
            high, low = divmod(ts_us, 1 << 32)
            blocks.append(dpkt.pcapng.EnhancedPacketBlockLE(iface_id=interface, ts_high=high, ts_low=low, pkt_data=frame))
    path.write_bytes(b"".join(bytes(block) for block in blocks))
