"""Writes a simulated run as a capture file: Ethernet, loopback, raw IP, or one of the ATM and ERF formats."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tcptrace_lab.capture.atm import AtmForm, convert
from tcptrace_lab.process import temporary
from tcptrace_lab.simulation.frames import frames

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from tcptrace_lab.stacks import Run, Setting

BASE_NS: Final = 1_000_000_000 * 1_000_000_000
"""Start of every run in its capture, in nanoseconds since 1970 (2001-09-09). It is constant, so that equal runs give equal files."""

_ETHERNET_HEADERS: Final = {
    True: bytes.fromhex("020000000002 020000000001 0800"),
    False: bytes.fromhex("020000000001 020000000002 0800"),
}
"""Ethernet headers with locally administered addresses and the type IPv4, by direction (True: from the client)."""

_ETHERNET_MIN_BYTES: Final = 60
"""Minimum size of a frame without FCS (IEEE 802.3). Shorter frames are padded, as in a capture at the receiver."""

_NULL_HEADER: Final = (2).to_bytes(4, "little")
"""AF_INET in the byte order of the capturing machine (LINKTYPE_NULL). This machine is assumed to be little-endian."""

_SNAPLEN_BYTES: Final = 262_144


class At(StrEnum):
    """The host at which the capture is made."""

    CLIENT = "client"
    SERVER = "server"


class Medium(StrEnum):
    """Link type and framing of the capture. The ATM and ERF formats are those of `atm.AtmForm`."""

    ETHERNET = "ethernet"
    LOOPBACK = "loopback"
    RAW = "raw"
    RFC1483_LLC = AtmForm.RFC1483_LLC
    RFC1483_BRIDGED = AtmForm.RFC1483_BRIDGED
    RFC1483_VCMUX = AtmForm.RFC1483_VCMUX
    CLIP = AtmForm.CLIP
    CLIP_VCMUX = AtmForm.CLIP_VCMUX
    FORE_IP = AtmForm.FORE_IP
    SUNATM = AtmForm.SUNATM
    ERF_AAL5 = AtmForm.ERF_AAL5
    ERF_CELLS = AtmForm.ERF_CELLS
    ERF_ETH = AtmForm.ERF_ETH
    ERF_POS = AtmForm.ERF_POS
    ERF_FILE_AAL5 = AtmForm.ERF_FILE_AAL5
    ERF_FILE_CELLS = AtmForm.ERF_FILE_CELLS
    ERF_FILE_ETH = AtmForm.ERF_FILE_ETH
    ERF_FILE_POS = AtmForm.ERF_FILE_POS


def _ethernet(packet: bytes, *, from_client: bool) -> bytes:
    return (_ETHERNET_HEADERS[from_client] + packet).ljust(_ETHERNET_MIN_BYTES, b"\0")


def _null(packet: bytes, *, from_client: bool) -> bytes:  # noqa: ARG001  (the loopback header has no direction)
    return _NULL_HEADER + packet


def _raw(packet: bytes, *, from_client: bool) -> bytes:  # noqa: ARG001  (raw IP has no link-layer header)
    return packet


_LINKS: Final[dict[Medium, tuple[int, Callable[..., bytes]]]] = {
    Medium.ETHERNET: (1, _ethernet),
    Medium.LOOPBACK: (0, _null),
    Medium.RAW: (101, _raw),
}
"""LINKTYPE_ number of each medium, and the function that frames a packet."""


def write_capture(run: Run, setting: Setting, stream: IO[bytes], *, at: At = At.CLIENT, medium: Medium = Medium.ETHERNET) -> int:
    """Write the capture of one host, as pcap with nanosecond timestamps or as ERF records.

    Args:
        run: the result of simulating `setting`.
        setting: the input of the run. It contains the TCP options that the stacks use.
        stream: receives the file's bytes.
        at: the host whose network interface captures.
        medium: link type and framing of the file. The framing of the run's path is in `setting`.

    Returns:
        The number of packets written.
    """
    if medium in _LINKS:
        return _write_pcap(run, setting, stream, at, medium)
    with temporary.folder() as folder:
        bare, converted = Path(folder, "bare.pcap"), Path(folder, "converted")
        with bare.open("wb") as file:
            count = _write_pcap(run, setting, file, at, Medium.RAW)
        convert(bare, converted, medium.value)
        with converted.open("rb") as file:
            while block := file.read(1 << 20):
                stream.write(block)
    return count


def _write_pcap(run: Run, setting: Setting, stream: IO[bytes], at: At, medium: Medium) -> int:
    from dpkt import pcap  # noqa: PLC0415  (imported late, so that `--help` stays fast)

    link_type, framed = _LINKS[medium]
    writer = pcap.Writer(stream, snaplen=_SNAPLEN_BYTES, linktype=link_type, nano=True)
    count = 0
    for time_ns, from_client, packet in frames(run, setting, at_client=at is At.CLIENT):
        writer.writepkt_time(framed(packet, from_client=from_client), Decimal(BASE_NS + time_ns).scaleb(-9))
        count += 1
    return count
