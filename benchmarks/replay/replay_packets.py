"""Compares rate and timing of `replay packets` and tcpreplay in one run.

    python benchmarks/replay/replay_packets.py [--runs N]

Both programs send the same files from one private namespace to another over a veth pair. They take turns after a warm-up each, with one
real-time priority. Two modes are measured:

- As fast as possible. The results are the frames per second that the program reports, the frames that the interface counted, and the time
  of the process.
- At the capture's own times. At the other end, dumpcap records when each frame arrives. The error of a frame is the difference of its time
  since the first frame, between the recording and the file.

The limits of the machine are measured too. One limit is how late a bare loop wakes that only sleeps until each frame is due
(`clock_nanosleep` at that priority). The other limit is the time that the host withholds (`steal` in /proc/stat). The script needs root,
dumpcap, tcpreplay and chrt, and it takes two minutes.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tcptrace_lab.lab.capturing.capture import capturing
from tcptrace_lab.lab.experiment import REAL_TIME_PRIORITY
from tcptrace_lab.lab.networks.network import INTERFACE, Medium
from tcptrace_lab.replay.packets.frames import frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.lab.networks.network import Network

CAPTURES: Final = Path(__file__).resolve().parents[2] / "captures"
TIMED: Final = ("ethernet-nagle-on.pcapng", "ethernet-application-limited.pcapng", "atm9180-loss.pcap")
FAST: Final = {"200,000 frames of 60 bytes": (200_000, 60), "100,000 frames of 1,514 bytes": (100_000, 1_514)}

OURS, PEER, PRELOADED = "replay packets", "tcpreplay", "tcpreplay -K"
ETHERTYPE: Final = b"\x88\xb5"
"""An EtherType for experiments (IEEE Std 802), which no kernel answers."""

NOTHING_ELSE: Final = "tcp[tcpflags] & tcp-rst == 0"
"""A capture filter that excludes RSTs. The receiving kernel does not know these connections, so it answers with RSTs."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One run of a program.

    It has the frames per second that the program reports, the number of frames that arrived at the interface, and the seconds of the whole
    process.
    """

    rate: float
    came: int
    whole_s: float


def made(path: Path, count: int, size: int) -> None:
    """Write a capture of `count` frames of `size` bytes."""
    data = bytes.fromhex("020000000002020000000001") + ETHERTYPE + bytes(size - 14)
    record = struct.pack("<IIII", 0, 0, size, size) + data
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1) + count * record)


def ours(path: Path, scratch: Path, *, fast: bool) -> tuple[list[str], Callable[[str], float]]:
    """Return our command for a capture, and a function that reads frames per second from its output."""
    told = scratch / "told.json"
    more = ["--topspeed"] if fast else []
    command = [sys.executable, "-m", "tcptrace_lab", "replay", "packets", str(path), "-i", INTERFACE, *more, "-q", "--json", str(told)]

    def rate(_: str) -> float:
        document = json.loads(told.read_text())
        return float(document["frames"] / document["duration_s"])

    return command, rate


def theirs(path: Path, *, fast: bool, preloaded: bool) -> tuple[list[str], Callable[[str], float]]:
    """Return the command of tcpreplay for a capture, and a function that reads frames per second from its output."""
    more = [*(["-t"] if fast else []), *(["-K"] if preloaded else [])]
    command = ["chrt", "--fifo", str(REAL_TIME_PRIORITY), "tcpreplay", *more, "-i", INTERFACE, str(path)]
    return command, _told_rate


def _told_rate(words: str) -> float:
    found = re.search(r"Actual: (\d+) packets .* sent in ([\d.]+) seconds", words)
    if found is None:
        raise SystemExit(f"tcpreplay says {words!r}")
    return int(found[1]) / float(found[2])


def _commands(path: Path, scratch: Path, *, fast: bool) -> dict[str, tuple[list[str], Callable[[str], float]]]:
    peers = {name: theirs(path, fast=fast, preloaded=preloaded) for name, preloaded in ((PEER, False), (PRELOADED, True))}
    return {OURS: ours(path, scratch, fast=fast), **peers}


def _came(network: Network) -> int:
    with network.server.entered():
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    return next(int(line.split(":")[1].split()[1]) for line in lines if line.strip().startswith(f"{INTERFACE}:"))


def run(network: Network, command: list[str], rate: Callable[[str], float]) -> Sent:
    """Run one of the two programs in the client's namespace."""
    before, begun_s = _came(network), time.monotonic()
    with network.client.entered():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return Sent(rate(done.stdout), _came(network) - before, time.monotonic() - begun_s)


def fast(runs: int, scratch: Path) -> None:
    """Print the table of runs in which the programs send as fast as possible."""
    print("| as fast as possible | | frames/s (median) | spread | of tcpreplay -K | came | whole process |\n|---|---|---|---|---|---|---|")
    for words, (count, size) in FAST.items():
        path = scratch / f"{size}.pcap"
        made(path, count, size)
        with Medium("veth", 1_500).network() as network:
            turns: dict[str, list[Sent]] = {}
            for turn in range(runs + 1):
                for name, command in _commands(path, scratch, fast=True).items():
                    sent = run(network, *command)
                    if turn:
                        turns.setdefault(name, []).append(sent)
        peer = statistics.median(sent.rate for sent in turns[PRELOADED])
        for name, all_of in turns.items():
            rates = [sent.rate for sent in all_of]
            middle = statistics.median(rates)
            spread, least = (max(rates) - min(rates)) / middle, min(sent.came for sent in all_of)
            whole_s = statistics.median(sent.whole_s for sent in all_of)
            print(f"| {words} | {name} | {middle:,.0f} | {spread:.0%} | {middle / peer:.2f} | {least:,} | {whole_s:.2f} s |")


def errors_us(sent: Path, got: Path) -> list[float]:
    """Return the timing error of each frame in µs: the difference of its time since the first frame between both captures."""
    original, came = ([frame.ts_ns for frame in frames(str(path), None, "")] for path in (sent, got))
    if len(original) != len(came):
        raise SystemExit(f"{len(came)} frames came of {len(original)}")
    return [abs((one - came[0]) - (due - original[0])) / 1_000 for one, due in zip(came, original, strict=True)]


BARE: Final = """
import ctypes, json, sys, time
class Timespec(ctypes.Structure): _fields_ = (("s", ctypes.c_long), ("ns", ctypes.c_long))
due, late, libc = json.load(sys.stdin), [], ctypes.CDLL(None)
begin = time.monotonic_ns() + 5_000_000
for at in due:
    libc.clock_nanosleep(1, 1, ctypes.byref(Timespec(*divmod(begin + at, 10**9))), None)
    late.append(time.monotonic_ns() - begin - at)
print(json.dumps(late))
"""
"""A loop that sleeps until each frame is due. The arguments 1 and 1 are CLOCK_MONOTONIC and TIMER_ABSTIME."""


def bare_us(path: Path) -> list[float]:
    """Return how late a loop wakes for each frame (µs). The loop only sleeps until each frame is due."""
    times = [frame.ts_ns for frame in frames(str(path), None, "")]
    command = ["chrt", "--fifo", str(REAL_TIME_PRIORITY), sys.executable, "-c", BARE]
    done = subprocess.run(command, input=json.dumps([at - times[0] for at in times]), capture_output=True, text=True, check=True)
    return [late / 1_000 for late in json.loads(done.stdout)]


def stolen_s() -> float:
    """Return the time in seconds that the host withheld from this machine's processors. proc(5) gives it in hundredths of a second."""
    return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / 100


def in_time(runs: int, scratch: Path) -> None:
    """Print the table of runs at the capture's own times."""
    print("\n| in its own time, error on arrival | | p50 | p99 | most |\n|---|---|---|---|---|")
    before_s = stolen_s()
    for name in TIMED:
        found: dict[str, list[float]] = {}
        for turn in range(runs):
            for program, (command, rate) in _commands(CAPTURES / name, scratch, fast=False).items():
                out = scratch / f"{turn}-{program}.pcapng"
                with (
                    Medium("veth", 9_188).network() as network,
                    capturing(network.points["server"], out, snaplen_bytes=65_535, capture_filter=NOTHING_ELSE) as capture,
                ):
                    run(network, command, rate)
                    capture.await_end(1)
                found.setdefault(program, []).extend(errors_us(CAPTURES / name, out))
            found.setdefault("a bare loop wakes", []).extend(bare_us(CAPTURES / name))
        for program, errors in found.items():
            cuts = statistics.quantiles(errors, n=100, method="inclusive")
            print(f"| {name} | {program} | {cuts[49]:,.0f} µs | {cuts[98]:,.0f} µs | {max(errors):,.0f} µs |")
    print(f"\nThe host took {stolen_s() - before_s:.2f} s meanwhile.")


def main(arguments: list[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python benchmarks/replay/replay_packets.py", description="replay packets beside tcpreplay.")
    parser.add_argument("--only-time", action="store_true", help="only in the captures' own time")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="of each, by turns")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        if not options.only_time:
            fast(options.runs, Path(scratch))
        in_time(options.runs, Path(scratch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
