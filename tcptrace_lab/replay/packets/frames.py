"""Selects frames of a capture, and rewrites them. Only one frame at a time is in memory."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from shutil import which
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.capture import decompression
from tcptrace_lab.errors import CaptureInsufficient, CaptureUnreadable, MissingTool, NotACapture, UsageError, place

if TYPE_CHECKING:
    from collections.abc import Iterator

ETHERNET, RAW, RAW_BSD, IPV4, IPV6, NULL, LOOP, SLL, SLL2 = 1, 101, 12, 228, 229, 0, 108, 113, 276
HEADER_BYTES: Final = {ETHERNET: 0, RAW: 0, RAW_BSD: 0, IPV4: 0, IPV6: 0, NULL: 4, LOOP: 4, SLL: 16, SLL2: 20}
"""Size in bytes of the link header that is removed, for each link type that can be sent. Ethernet headers are kept."""

LINK_TYPE_BITS: Final = 0xFFFF
"""Mask of the link type in the pcap header's link type field. The upper bits describe the FCS (draft-ietf-opsawg-pcap, section 4)."""

ETHERNET_BYTES: Final = 14
IPV4_TYPE, IPV6_TYPE = b"\x08\x00", b"\x86\xdd"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Changes to each frame. Empty values change nothing.

    Attributes:
        source_mac, destination_mac: new MAC addresses.
        addresses: old IP address → new one.
        ports: old TCP or UDP port → new one.
        checksums: recompute all checksums. Without this option, checksums are recomputed only if IP or a higher layer changes.
        mtu_bytes: cut the payload of longer packets at the end; 0: no limit.
    """

    source_mac: str = ""
    destination_mac: str = ""
    addresses: tuple[tuple[str, str], ...] = ()
    ports: tuple[tuple[int, int], ...] = ()
    checksums: bool = False
    mtu_bytes: int = 0

    def touches(self, packet_bytes: int) -> bool:
        """Return whether an IP packet of this length must be rewritten."""
        return bool(self.addresses or self.ports or self.checksums or 0 < self.mtu_bytes < packet_bytes)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: its number in the capture, its timestamp in ns, its bytes, and whether the bytes start with an Ethernet header."""

    number: int
    ts_ns: int
    data: bytes
    has_link: bool


def frames(path: str, chosen: tuple[int, int] | None, display_filter: str) -> Iterator[Frame]:
    """Yield the selected frames of a capture, by number.

    Args:
        path: a pcap or pcapng file, plain or compressed.
        chosen: first and last frame number; None: all frames.
        display_filter: Wireshark display filter, evaluated by tshark; empty: all frames.

    Raises:
        NotACapture: the file is neither pcap nor pcapng.
        CaptureUnreadable: the operating system refuses to open the file, or the file is damaged before the last selected frame.
        CaptureInsufficient: frames of this link type cannot be sent.
        MissingTool: a filter is given, and tshark is not installed.
        UsageError: tshark rejects the filter.
        OutputUnwritable: no space to decompress the file.
    """
    with decompression.plain(path) as plain:
        wanted = _numbers(plain, display_filter) if display_filter else None
        following = next(wanted, 0) if wanted is not None else 0
        first, last = chosen or (1, 1 << 62)
        for frame in _read(path, plain):
            if wanted is not None and frame.number == following:
                following = next(wanted, 0)
            elif wanted is not None:
                continue
            if frame.number >= first:
                yield frame
            if frame.number >= last:
                return


def _read(path: str, plain: str) -> Iterator[Frame]:
    """Yield all frames of the uncompressed file `plain`. Error messages show the name `path` instead."""
    from dpkt.dpkt import UnpackError  # noqa: PLC0415
    from dpkt.pcap import UniversalReader  # noqa: PLC0415

    number = 0
    with open(plain, "rb") as file:  # noqa: PTH123  (opens the path exactly as the user gave it)
        try:
            reader = UniversalReader(file)
            link = reader.datalink() & LINK_TYPE_BITS
        except (ValueError, OSError, EOFError, UnpackError) as error:
            raise NotACapture("neither pcap nor pcapng", where=path, remedy="convert it with editcap") from error
        if link not in HEADER_BYTES:
            raise CaptureInsufficient(f"frames of link type {link} cannot be sent into an interface", where=path)
        try:
            for number, (ts, data) in enumerate(reader, 1):
                yield Frame(number, int(ts * 1_000_000_000), data[HEADER_BYTES[link] :], link == ETHERNET)
        except (ValueError, EOFError, UnpackError) as error:
            remedy = f"--range 1-{number} sends what is before" if number else "copy or capture it again"
            raise CaptureUnreadable("damaged", where=place(path, number + 1, None), remedy=remedy) from error


def _numbers(path: str, display_filter: str) -> Iterator[int]:
    if which("tshark") is None:
        raise MissingTool("not installed", where="tshark", remedy="install Wireshark's command-line tools, or leave out --filter")
    command = ["tshark", "-r", path, "-Y", display_filter, "-T", "fields", "-e", "frame.number"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101
            for line in process.stdout:
                yield int(line)
            words = process.stderr.read() if process.stderr is not None else ""
            if process.wait():
                raise UsageError(f"--filter: {_complaint(words)}")
        finally:
            process.kill()


def _complaint(words: str) -> str:
    """Return the line of tshark's output that says what is wrong with a filter."""
    lines = [line.removeprefix("tshark: ").strip() for line in words.splitlines() if not line.startswith((" ", "Running as user"))]
    return "tshark says: " + (next((line for line in lines if line), "nothing"))[:200]


def ip_of(frame: Frame) -> bytes | None:
    """Return the IP packet of a frame; None if the frame has a VLAN tag or is not IP."""
    if not frame.has_link:
        return frame.data if frame.data[:1] and frame.data[0] >> 4 in {4, 6} else None
    return frame.data[ETHERNET_BYTES:] if frame.data[12:14] in {IPV4_TYPE, IPV6_TYPE} else None


def destination(packet: bytes) -> bytes:
    """Return the destination address of an IP packet; empty if the packet is truncated before the end of the address."""
    first, size = (16, 4) if packet[:1] < b"\x50" else (24, 16)
    address = packet[first : first + size]
    return address if len(address) == size else b""


def rewritten(frame: Frame, rewrite: Rewrite, *, ethernet: bool) -> bytes:
    """Return the bytes to send. With `ethernet`, they form an Ethernet frame, otherwise an IP packet.

    Raises:
        CaptureInsufficient: a packet to rewrite is truncated, or the frame has no IP packet where one is needed.
    """
    packet = ip_of(frame)
    if packet is not None and rewrite.touches(_length(packet)):
        packet = _changed(packet, rewrite, frame.number)
    if not ethernet:
        if packet is None:
            raise CaptureInsufficient(f"frame {frame.number} is not an IP packet, and the interface accepts no others", remedy=_LEAVE_OUT)
        return packet
    if frame.has_link:
        header, rest = frame.data[:ETHERNET_BYTES], frame.data[ETHERNET_BYTES:] if packet is None else packet
    elif packet is not None:
        header, rest = bytes(12) + (IPV4_TYPE if packet[0] >> 4 == 4 else IPV6_TYPE), packet  # noqa: PLR2004
    else:
        raise CaptureInsufficient(f"frame {frame.number} is not an IP packet, and has no Ethernet header", remedy=_LEAVE_OUT)
    target = _mac(rewrite.destination_mac) or header[:6]
    return target + (_mac(rewrite.source_mac) or header[6:12]) + header[12:] + rest


_LEAVE_OUT: Final = "exclude it with --range, or --filter ip"


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", "")) if text else b""


def _length(packet: bytes) -> int:
    """Return the length of an IP packet according to its header."""
    return int.from_bytes(packet[2:4]) if packet[0] >> 4 == 4 else 40 + int.from_bytes(packet[4:6])  # noqa: PLR2004


def _changed(packet: bytes, rewrite: Rewrite, number: int) -> bytes:
    from scapy.layers.inet import IP, TCP, UDP  # noqa: PLC0415
    from scapy.layers.inet6 import IPv6  # noqa: PLC0415

    is_v4 = packet[0] >> 4 == 4  # noqa: PLR2004
    length = _length(packet)
    if len(packet) < length:
        raise CaptureInsufficient(f"frame {number} is truncated, so its checksums cannot be recomputed", remedy="capture with -s 0")
    made: Any = (IP if is_v4 else IPv6)(packet[:length])
    addresses, ports = dict(rewrite.addresses), dict(rewrite.ports)
    made.src, made.dst = addresses.get(made.src, made.src), addresses.get(made.dst, made.dst)
    for layer in (TCP, UDP):
        if layer in made:
            inner = made[layer]
            inner.sport, inner.dport = ports.get(inner.sport, inner.sport), ports.get(inner.dport, inner.dport)
            if rewrite.mtu_bytes and length > rewrite.mtu_bytes:
                keep = max(0, len(bytes(inner.payload)) - (length - rewrite.mtu_bytes))
                data = bytes(inner.payload)[:keep]
                inner.remove_payload()
                inner.add_payload(data)
            del inner.chksum
            if layer is UDP:
                del inner.len
    if is_v4:
        del made.chksum, made.len
    else:
        del made.plen
    return bytes(made)
