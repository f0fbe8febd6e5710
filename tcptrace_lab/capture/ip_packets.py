"""Writes the IP packets that Wireshark's `tshark` finds in a capture to pcapng: `python -m tcptrace_lab.capture.ip_packets FILE`.

`convert` needs this module for link types that pcapng does not have, such as Network Monitor's 802.11. `tshark` shows where the IP header
of each frame begins; the bytes before the IP header are removed. An empty Ethernet frame takes the place of a frame without IP, so that all
frames keep Wireshark's numbers. If a frame contains several IP packets, the first is kept.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any

from tcptrace_lab.capture.pcapng_copy import (
    BYTE_ORDER_MAGIC,
    ENHANCED_PACKET,
    INTERFACE,
    OPTION_END,
    OPTION_RESOLUTION,
    SECTION,
    UNKNOWN_LENGTH,
    encoded_block,
    encoded_option,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TSHARK = "tshark"

LINKTYPE_ETHERNET, LINKTYPE_RAW = 1, 101

WITHOUT_IP, IP = 0, 1
"""Numbers of the two interfaces: Ethernet, and IP without a link layer."""

NOTHING = bytes(12) + bytes.fromhex("88b5")
"""An empty Ethernet frame, in place of a frame without IP (EtherType for local experiments, IEEE 802)."""

OPTIONS = ("-n", "-T", "json", "-x", "-J", "frame", "-o", "ip.defragment:FALSE", "--disable-protocol", "tcp", "--disable-protocol", "udp")
"""Options with which tshark prints the bytes of each frame, and the offset and length of each protocol up to IP."""


def write(lines: Iterable[str], target: IO[bytes]) -> None:
    """Convert the packets of tshark's JSON output to pcapng with a resolution of 1 ns."""
    target.write(encoded_block("<", SECTION, struct.pack("<IHHQ", BYTE_ORDER_MAGIC, 1, 0, UNKNOWN_LENGTH)))
    nanoseconds = encoded_option("<", OPTION_RESOLUTION, bytes([9])) + encoded_option("<", OPTION_END, b"")
    for link_type in (LINKTYPE_ETHERNET, LINKTYPE_RAW):
        target.write(encoded_block("<", INTERFACE, struct.pack("<HHI", link_type, 0, 0) + nanoseconds))
    for layers in _packets(lines):
        frame = layers["frame"]
        data, place = bytes.fromhex(layers["frame_raw"][0]), _ip(layers)
        if place is None:
            interface, packet, length = WITHOUT_IP, NOTHING, len(NOTHING)
        else:
            interface, packet, length = IP, data[place:], int(frame["frame.len"]) - place
        time_ns = int(Decimal(frame["frame.time_epoch"]) * 1_000_000_000)
        head = struct.pack("<5I", interface, time_ns >> 32, time_ns & 0xFFFF_FFFF, len(packet), length)
        target.write(encoded_block("<", ENHANCED_PACKET, head + packet + bytes(-len(packet) % 4)))


def _packets(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the layers of each packet. tshark indents the braces of a packet by two blanks, and the content of a packet by more."""
    text: list[str] = []
    for line in lines:
        if line.startswith("  }"):
            yield json.loads(f"{''.join(text)}}}", object_pairs_hook=_first)["_source"]["layers"]
            text = []
        elif line.startswith("  "):
            text.append(line)


def _first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dict. A key that occurs several times keeps its first value, which belongs to the outermost header."""
    return dict(reversed(pairs))


def _ip(layers: dict[str, Any]) -> int | None:
    """Return the offset of the first IP header; None if the frame has no IP header outside reassembled bytes."""
    parts = [layers[name] for name in ("ip_raw", "ipv6_raw") if name in layers]
    frame = layers["frame_raw"][0]
    places = [place for text, place, length, *_ in parts if frame[2 * place : 2 * (place + length)] == text]
    return min(places, default=None)


def main(path: str) -> int:
    """Write the IP packets of a file to standard output as pcapng, and return tshark's exit code.

    The path can name an inherited file descriptor.
    """
    command = [TSHARK, *OPTIONS, "-r", path]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, close_fds=False) as tshark:
        assert tshark.stdout is not None  # noqa: S101  (it is a pipe)
        write(tshark.stdout, sys.stdout.buffer)
    return tshark.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
