"""Runs dumpcap on one interface of a network.

dumpcap is stopped when the capture file contains the end of all connections. dumpcap writes frames with a delay, so this module searches
the file for the last FINs and RSTs.
"""

from __future__ import annotations

import os
import struct
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dpkt

from tcptrace_lab.lab.capturing.dumpcap import PATIENCE_S, CaptureError, Dumpcap, require, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcptrace_lab.lab.networks.network import Point

END_TIMEOUT_S = 10.0
POLL_INTERVAL_S = 0.05
# Maximum run time of dumpcap. The limit applies even if this process is killed.
LIFETIME_S = 60
BUFFER_MIB = 16
MAX_WORDS = 400  # characters of dumpcap's last output that an error message quotes
TAIL_BYTES = 1 << 20  # `shows` searches this many bytes at the end of the file
IP_OFFSET_BYTES = {1: 14, 12: 0, 101: 0, 113: 16, 276: 20}  # link type → offset of the IP header: Ethernet, RAW (two numbers), SLL, SLL2
IPV4, IPV6_HEADER_BYTES = 4, 40
BOTH_ENDS = 2
FIN, RST, ACK = 0x01, 0x04, 0x10


@dataclass(slots=True)
class Capture:
    """A running dumpcap and its file."""

    path: Path
    dumpcap: Dumpcap
    dropped: int = field(default=0)

    def await_end(self, connections: int) -> None:
        """Wait until the file contains the ends of this many connections."""
        deadline_s = time.monotonic() + END_TIMEOUT_S
        while ended_connections(self.path) < connections:
            if time.monotonic() > deadline_s:
                raise CaptureError(
                    f"{self.path.name}: fewer than {connections} connections have ended in the file within {END_TIMEOUT_S:.0f} s"
                )
            self._await_more()

    def shows(self, token: bytes, within_s: float) -> bool:
        """Search the end of the file for `token` for up to `within_s` seconds. Return whether it was found."""
        deadline_s = time.monotonic() + within_s
        while True:
            with self.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                if token in file.read():
                    return True
            if time.monotonic() > deadline_s:
                return False
            self._await_more()

    def _await_more(self) -> None:
        """Give dumpcap time to write. Raise CaptureError if dumpcap has already ended."""
        if self.dumpcap.process.poll() is not None:
            self.dumpcap.read_until(lambda: False, PATIENCE_S)
            words = " ".join(self.dumpcap.words.partition("Packets captured:")[0].split())[-MAX_WORDS:]
            raise CaptureError(f"dumpcap ended early: {words}", where=str(self.path), remedy="check free disk space")
        time.sleep(POLL_INTERVAL_S)

    def stop(self) -> None:
        """Stop dumpcap.

        Raise CaptureError if dumpcap reports dropped frames and `drops_allowed` is False.
        """
        self.dumpcap.stop()
        counts = self.dumpcap.received_and_dropped
        if counts is None:
            raise CaptureError(f"{self.path.name}: dumpcap reported {self.dumpcap.words.strip()!r}")
        self.dropped = counts[1]


@contextmanager
def capturing(
    point: Point,
    path: Path,
    *,
    snaplen_bytes: int,
    link_type: str | None = None,
    capture_filter: str = "tcp",
    lifetime_s: int = LIFETIME_S,
    drops_allowed: bool = False,
) -> Iterator[Capture]:
    """Run dumpcap at a capture point during the `with` block.

    A file whose name ends in `.pcap` has the format pcap. Any other file is pcapng with nanosecond timestamps.

    Raises:
        MissingTool: dumpcap or setpriv is not installed.
        CaptureError: dumpcap does not start, or frames were dropped although `drops_allowed` is False.
    """
    require()
    command = ["-q", "-i", point.interface, "-f", capture_filter, "-s", str(snaplen_bytes)]
    command += ["-B", str(BUFFER_MIB), "-a", f"duration:{lifetime_s}", "-w", str(path)]
    command += ["-P"] if path.suffix == ".pcap" else []
    command += ["-y", link_type] if link_type else []
    with ExitStack() as stack:
        with point.space.entered():
            dumpcap = stack.enter_context(running(command, path.name))
        capture = Capture(path, dumpcap)
        dumpcap.await_start()
        yield capture
        capture.stop()
    if capture.dropped and not drops_allowed:
        raise CaptureError(f"{path.name}: dumpcap dropped {capture.dropped} frames; repeat it on a less loaded machine")


def ended_connections(path: Path) -> int:
    """Count the ended connections in a capture. dumpcap is possibly still writing this capture.

    A connection has ended if both FINs are acknowledged, or after a RST. Successive connections with the same ports count separately.
    """
    ended = 0
    fins: dict[frozenset[tuple[bytes, int]], set[tuple[bytes, int]]] = {}
    for packet in _packets(path):
        source, destination, flags = packet
        key = frozenset((source, destination))
        seen = fins.setdefault(key, set())
        if flags & RST or (len(seen) == BOTH_ENDS and flags & ACK and not flags & FIN):
            ended += 1
            del fins[key]
        elif flags & FIN:
            seen.add(source)
    return ended


def _packets(path: Path) -> Iterator[tuple[tuple[bytes, int], tuple[bytes, int], int]]:
    try:
        with path.open("rb") as file:
            reader = dpkt.pcap.UniversalReader(file)
            offset = IP_OFFSET_BYTES[reader.datalink()]
            for _, frame in reader:
                yield _endpoints(frame[offset:])
    except (ValueError, struct.error, dpkt.UnpackError):
        return  # the last block is not complete yet


def _endpoints(packet: bytes) -> tuple[tuple[bytes, int], tuple[bytes, int], int]:
    if packet[0] >> 4 == IPV4:
        header_bytes, source, destination = (packet[0] & 0xF) * 4, packet[12:16], packet[16:20]
    else:
        header_bytes, source, destination = IPV6_HEADER_BYTES, packet[8:24], packet[24:40]
    source_port, destination_port = struct.unpack_from("!HH", packet, header_bytes)
    return (source, source_port), (destination, destination_port), packet[header_bytes + 13]
