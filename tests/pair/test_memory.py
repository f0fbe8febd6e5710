"""`analyze --pair` needs more memory than `analyze` on the same two captures, but at most by the promised amount.

The test measures the memory with and without `--pair`. The difference must be less than the promised memory of a pair (`pair.packets`). A
fixed limit would not do, because resident memory varies by some megabytes between runs. Both runs load the code of `--pair` and NumPy,
which need the same memory for any number of segments.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

from tcptrace_lab.engine import memory
from tcptrace_lab.pair.packets import MAX_PACKETS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEGMENTS = 120_000
"""Number of segments in each capture.

With this number, half a kB per segment is more than the variation between runs. All segments still fit in memory.
"""

PROMISED_BYTES = 1_050_000_000 / MAX_PACKETS
"""The promised memory of `analyze --pair` per segment, in bytes, at the maximum number of segments.

The promise includes the analyses of both captures, so the pairing alone needs far less.
"""

DATA_BYTES, HEADERS_BYTES, WAY_US = 1_000, 54, 5_000

PEAK = """
import sys
from tcptrace_lab.engine import memory

memory.bound()
import tcptrace_lab.pair.packet_fates, tcptrace_lab.pair.clocks, tcptrace_lab.pair.match, tcptrace_lab.pair.pair
from tcptrace_lab.cli import run

code = run(sys.argv[1:])
with open("/proc/self/status", encoding="ascii") as status:
    print(code, next(line.split()[1] for line in status if line.startswith("VmHWM:")))
"""
"""A program that prints its maximum resident memory.

It does not use `getrusage`, because a child can report the memory of its parent after a fork. Like the console script, the program limits
memory before it loads a library. Without the limit, pages that one step freed would stay in memory during the next step.
"""


def exchange(segments: int) -> Iterator[tuple[int, bool, int, int, int, int]]:
    """Yield one tuple per segment.

    The tuple has the time at the client (µs), whether the client sends the segment, sequence number, ACK number, flags, and bytes of data.
    The server acknowledges every second segment.
    """
    yield 0, True, 0, 0, 0x02, 0
    yield 2 * WAY_US, False, 0, 1, 0x12, 0
    yield 2 * WAY_US, True, 1, 1, 0x10, 0
    for at in range((segments - 3) * 2 // 3):
        sent_us = 4 * WAY_US + 100 * at
        yield sent_us, True, 1 + at * DATA_BYTES, 1, 0x10, DATA_BYTES
        if at % 2:
            yield sent_us + 2 * WAY_US, False, 1, 1 + (at + 1) * DATA_BYTES, 0x10, 0


def captured(path: Path, *, at_server: bool) -> Path:
    """Write the capture of the exchange at one host, and return its path.

    One data segment in 1,000 does not reach the server.
    """
    packets = []
    for number, (ts_us, from_client, seq, ack, flags, data) in enumerate(exchange(SEGMENTS)):
        if at_server and data and number % 1_000 == 0:
            continue
        hosts = b"\x0a\0\0\1\x0a\0\0\2" if from_client else b"\x0a\0\0\2\x0a\0\0\1"
        ports = (40_000, 80) if from_client else (80, 40_000)
        here_us = ts_us + (0 if not at_server else WAY_US if from_client else -WAY_US)
        record = struct.pack("<IIII", 1_700_000_000 + here_us // 1_000_000, here_us % 1_000_000, HEADERS_BYTES, HEADERS_BYTES + data)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + data, number & 0xFFFF, 0, 64, 6, 0) + hosts
        tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, 0x50, flags, 0xFFFF, 0, 0)
        packets.append((here_us, record + bytes(12) + b"\x08\0" + ip + tcp))
    packets.sort(key=lambda packet: packet[0])
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, HEADERS_BYTES, 1) + b"".join(packet for _, packet in packets))
    return path


def peak_bytes(folder: Path, *arguments: str | Path) -> int:
    """Run `analyze` with these arguments in a new process, and return its peak memory.

    The new process does not get the environment variables that Polars set in this process.
    """
    environment = {name: value for name, value in os.environ.items() if name not in memory.SETTINGS}
    command = [sys.executable, "-c", PEAK, "analyze", "--quiet", "-o", str(folder / "report.html"), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    code, kilobytes = done.stdout.split()
    assert (code, done.stderr) == ("0", "")
    return int(kilobytes) * 1024


def test_a_pair_adds_no_more_for_each_segment_than_is_promised(tmp_path: Path) -> None:
    ends = [captured(tmp_path / f"{name}.pcap", at_server=name == "server") for name in ("client", "server")]
    alone, pair = peak_bytes(tmp_path, *ends), peak_bytes(tmp_path, "--pair", *ends)
    assert pair - alone <= SEGMENTS * PROMISED_BYTES
