"""What tshark sees in each capture: the figures that README.md quotes and that the tests hold the set to.

    python captures/figures.py [FILE…]          prints README's table, for the files given or the whole set

tshark is the witness here, not this project's engine.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).parent
SUFFIXES = (".pcap", ".pcapng", ".gz", ".zst")
# Linux's delayed-ACK timer: 40 ms at least; a jiffy of 4 ms and scheduling come on top.
STALL_FROM_S, STALL_TO_S = 0.035, 0.060
# What an ACK releases leaves in far less than this on all the paths of this set.
RELEASE_WITHIN_S = 0.001
NS_PER_S = 1_000_000_000
FIRST_CLIENT_PORT = 40_000  # every server of the set listens below

_FLAGS = (
    *("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "duplicate_ack", "lost_segment"),
    *("zero_window", "zero_window_probe", "window_full", "window_update", "keep_alive"),
)
_FIELDS = (
    *("frame.number", "frame.time_epoch", "frame.len", "tcp.stream", "tcp.srcport", "tcp.seq", "tcp.ack", "tcp.len", "tcp.window_size"),
    *("tcp.flags", "tcp.analysis.bytes_in_flight", "tcp.analysis.initial_rtt"),
    *(f"tcp.analysis.{flag}" for flag in _FLAGS),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One TCP segment, by the fields of tshark. Times in ns; `flags` are the names of tshark's analysis flags that are set."""

    number: int
    time_ns: int
    stream: int
    source_port: int
    seq: int
    ack: int
    payload_bytes: int
    window_bytes: int
    tcp_flags: int
    in_flight_bytes: int
    initial_rtt_s: float | None
    flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class Gap:
    """Silence between two frames of one capture."""

    before: int
    after: int
    length_s: float


def captures(directory: Path = HERE) -> list[Path]:
    """The captures of a directory, by name."""
    return sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)


def stem(path: Path) -> str:
    """The name of a capture without its suffixes."""
    return path.name.partition(".")[0]


def frames(path: Path) -> list[Frame]:
    """Every TCP segment of a capture, from one pass of tshark."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=,", "-E", "occurrence=f"]
    command += [word for name in _FIELDS for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [_frame(dict(zip(_FIELDS, row, strict=True))) for row in csv.reader(io.StringIO(done.stdout))]


def _frame(row: dict[str, str]) -> Frame:
    seconds, _, fraction = row["frame.time_epoch"].partition(".")
    return Frame(
        number=int(row["frame.number"]),
        time_ns=int(seconds) * NS_PER_S + int(fraction.ljust(9, "0")),
        stream=int(row["tcp.stream"]),
        source_port=int(row["tcp.srcport"]),
        seq=int(row["tcp.seq"]),
        ack=int(row["tcp.ack"] or 0),
        payload_bytes=int(row["tcp.len"]),
        window_bytes=int(row["tcp.window_size"]),
        tcp_flags=int(row["tcp.flags"], 16),
        in_flight_bytes=int(row["tcp.analysis.bytes_in_flight"] or 0),
        initial_rtt_s=float(row["tcp.analysis.initial_rtt"]) if row["tcp.analysis.initial_rtt"] else None,
        flags=frozenset(flag for flag in _FLAGS if row[f"tcp.analysis.{flag}"]),
    )


def count(segments: list[Frame], flag: str) -> int:
    """How many segments carry one of tshark's analysis flags."""
    return sum(flag in segment.flags for segment in segments)


def gaps(segments: list[Frame]) -> list[Gap]:
    """Silence before every frame but the first."""
    return [Gap(a.number, b.number, (b.time_ns - a.time_ns) / NS_PER_S) for a, b in pairwise(segments)]


def stalls(segments: list[Frame]) -> list[Gap]:
    """Gaps as long as Linux's delayed-ACK timer that held up data: they end with data, or with an ACK and data at once after it."""
    found = []
    for index, gap in enumerate(gaps(segments), start=1):
        released = [s for s in segments[index : index + 2] if (s.time_ns - segments[index].time_ns) / NS_PER_S <= RELEASE_WITHIN_S]
        if STALL_FROM_S <= gap.length_s <= STALL_TO_S and any(segment.payload_bytes for segment in released):
            found.append(gap)
    return found


def payload_bytes(segments: list[Frame], *, from_client: bool) -> int:
    """Payload in one direction, retransmissions included."""
    return sum(segment.payload_bytes for segment in segments if (segment.source_port >= FIRST_CLIENT_PORT) is from_client)


def describe(segments: list[Frame]) -> str:
    """Figures in words: those that are not zero."""
    duration_s = (segments[-1].time_ns - segments[0].time_ns) / NS_PER_S
    words = [f"{len(segments)} segments in {duration_s:.3f} s"]
    streams = len({segment.stream for segment in segments})
    if streams > 1:
        words.append(f"{streams} connections")
    words.append(f"longest segment {max(s.payload_bytes for s in segments):,} B")
    words.append(f"most in flight {max(s.in_flight_bytes for s in segments):,} B")
    rtt_s = next((s.initial_rtt_s for s in segments if s.initial_rtt_s is not None), None)
    if rtt_s is not None:
        words.append(f"handshake {rtt_s * 1000:.2f} ms")
    words += [f"{flag.replace('_', ' ')} {count(segments, flag)}" for flag in _FLAGS if count(segments, flag)]
    if found := stalls(segments):
        shortest, longest = (pick(gap.length_s for gap in found) * 1000 for pick in (min, max))
        words.append(f"{len(found)} segments delayed {shortest:.1f} to {longest:.1f} ms, first {found[0].before}→{found[0].after}")
    longest_gap = max(gaps(segments), key=lambda gap: gap.length_s)
    words.append(f"longest gap {longest_gap.length_s * 1000:.1f} ms ({longest_gap.before}→{longest_gap.after})")
    return "; ".join(words)


def main(arguments: list[str]) -> int:
    """Print one line of the table per capture."""
    print("| capture | what it shows | what tshark sees in it |\n|---|---|---|")
    for path in [Path(argument) for argument in arguments] or captures():
        shows = json.loads(path.with_name(f"{stem(path)}.json").read_text())["description"]
        print(f"| `{path.name}` | {shows} | {describe(frames(path))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
