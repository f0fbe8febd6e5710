"""One dumpcap at one interface: started when it says so, stopped when the connections' ends are in its file.

dumpcap names its file on stderr once the interface and the file are open; from then on the kernel keeps every frame for it. Frames reach
the file some time after they passed the interface, so the end is looked for in the file itself.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import struct
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dpkt

from tcptrace_lab.errors import LabFailed, MissingTool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tcptrace_lab.lab.network import Point

TOOLS = ("setpriv", "dumpcap")
START_TIMEOUT_S = 10.0
END_TIMEOUT_S = 10.0
POLL_INTERVAL_S = 0.05
# dumpcap stops by itself after this long, should this program be killed in a way that leaves it behind.
LIFETIME_S = 60
BUFFER_MIB = 16
IP_OFFSET_BYTES = {1: 14, 12: 0, 101: 0, 113: 16, 276: 20}  # by link type: Ethernet, RAW (two numbers), Linux SLL, SLL2
IPV4, IPV6_HEADER_BYTES = 4, 40
BOTH_ENDS = 2
FIN, RST, ACK = 0x01, 0x04, 0x10


class CaptureError(LabFailed):
    """dumpcap did not start, did not see the end, or dropped frames."""


@dataclass(slots=True)
class Capture:
    """A running dumpcap and its file."""

    path: Path
    process: subprocess.Popen[bytes]
    words: str = ""
    dropped: int = field(default=0)

    def await_start(self) -> None:
        """Wait until the kernel keeps frames for this capture."""
        self._read_until(lambda: "\nFile: " in self.words, START_TIMEOUT_S)

    def await_end(self, connections: int) -> None:
        """Wait until the file holds the close of so many connections."""
        deadline_s = time.monotonic() + END_TIMEOUT_S
        while ended_connections(self.path) < connections:
            if time.monotonic() > deadline_s:
                raise CaptureError(f"{self.path.name}: {connections} ends of connections are not in the file after {END_TIMEOUT_S:.0f} s")
            time.sleep(POLL_INTERVAL_S)

    def stop(self) -> None:
        """End dumpcap and hold it to what it says about drops."""
        self.process.send_signal(signal.SIGINT)
        self._read_until(lambda: False, START_TIMEOUT_S)
        self.process.wait(START_TIMEOUT_S)
        counts = re.search(r"received/dropped on interface '.*': (\d+)/(\d+)", self.words)
        if counts is None:
            raise CaptureError(f"{self.path.name}: dumpcap said {self.words.strip()!r}")
        self.dropped = int(counts[2])
        if self.dropped:
            raise CaptureError(f"{self.path.name}: dumpcap dropped {self.dropped} frames; make it again on a quieter machine")

    def _read_until(self, done: Callable[[], bool], timeout_s: float) -> None:
        """Read dumpcap's words until `done`, or until it has closed its stderr."""
        assert self.process.stderr is not None  # noqa: S101  (it is a pipe)
        deadline_s = time.monotonic() + timeout_s
        stderr_fd = self.process.stderr.fileno()
        while not done():
            readable, _, _ = select.select([stderr_fd], [], [], max(0.0, deadline_s - time.monotonic()))
            if not readable:
                raise CaptureError(f"{self.path.name}: dumpcap is silent; it said {self.words.strip()!r}")
            words = os.read(stderr_fd, 4096)
            if not words:
                if "\nFile: " not in self.words:
                    raise CaptureError(f"{self.path.name}: dumpcap did not start: {self.words.strip()!r}")
                return
            self.words += words.decode(errors="replace")


@contextmanager
def capturing(point: Point, path: Path, *, snaplen_bytes: int, link_type: str | None = None) -> Iterator[Capture]:
    """Capture TCP at a point of a network; pcap when the file is called `.pcap`, else pcapng with nanoseconds.

    Raises:
        MissingTool: there is no dumpcap or no setpriv.
        CaptureError: dumpcap does not start, or the kernel dropped frames that it should have kept.
    """
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise MissingTool("not installed", where=tool, remedy="install Wireshark's command-line tools and util-linux")
    command = ["setpriv", "--pdeathsig", "TERM", "dumpcap", "-q", "-i", point.interface, "-f", "tcp", "-s", str(snaplen_bytes)]
    command += ["-B", str(BUFFER_MIB), "-a", f"duration:{LIFETIME_S}", "-w", str(path)]
    command += ["-P"] if path.suffix == ".pcap" else []
    command += ["-y", link_type] if link_type else []
    with point.space.entered():
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        capture = Capture(path, process)
        capture.await_start()
        yield capture
        capture.stop()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def ended_connections(path: Path) -> int:
    """How many connections have ended in a capture that may still grow: both FINs acknowledged, or a reset.

    A connection that reuses the ports of an ended one counts again.
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
    """(source, destination, flags) of every TCP segment that is wholly in the file by now."""
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
