"""The commands that are compared: the engine, `analyze`, tcptrace, tshark, capinfos and the bare walk.

The bare walk is a program that only steps from packet to packet.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from measure import Check, Command, Printed

HERE: Final = Path(__file__).resolve().parents[1]
"""The folder `benchmarks`."""
_CONSUME: Final = Path(__file__).with_name("consume.py")
_WALK: Final = HERE / "walk"

KINDS: Final = ("mixed", "full", "single", "short")
"""The kinds of captures on which all tools are measured."""
ENGINE_DRAIN: Final = "engine, drained"
ENGINE_FRAMES: Final = "engine, Polars frames"
ENGINE_SMALL: Final = "engine, small frames"
ENGINE_EVERYTHING: Final = "engine, everything"
ANALYZE: Final = "analyze, with report"
TCPTRACE: Final = "tcptrace -lr -n"
TSHARK: Final = "tshark -T fields"
CAPINFOS: Final = "capinfos -c"
WALK: Final = "bare walk (mmap)"
HELP: Final = "--help"
OURS: Final = (ENGINE_DRAIN, ENGINE_FRAMES, ENGINE_SMALL, ENGINE_EVERYTHING, ANALYZE)
TOOLS: Final = (*OURS, TCPTRACE, TSHARK, CAPINFOS, WALK)
"""All tools, in the order of the table."""

TSHARK_FIELDS: Final = (
    "frame.number",
    "frame.time_epoch",
    "tcp.stream",
    "ip.src",
    "ip.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq",
    "tcp.ack",
    "tcp.len",
    "frame.cap_len",
    "tcp.flags",
    "tcp.window_size",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "ip.id",
    "ip.ttl",
    "ip.dsfield.ecn",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
    "tcp.analysis.keep_alive",
    "tcp.analysis.keep_alive_ack",
    "tcp.analysis.zero_window",
    "tcp.analysis.zero_window_probe",
    "tcp.analysis.window_update",
    "tcp.analysis.bytes_in_flight",
    "tcp.analysis.push_bytes_sent",
    "tcp.analysis.acks_frame",
    "tcp.analysis.ack_rtt",
    "tcp.time_delta",
)
"""The fields of tshark that correspond to columns of the segments table."""

_PREFIX_PACKETS: Final = 1_000_000
"""tshark reads at most this many packets of a capture. Its time per packet is constant, so it is scaled to the whole capture."""
_START_PACKETS: Final = 1000
"""Number of packets in the capture on which the start of `analyze` is measured."""
_HUNDRED_MB_PACKETS: Final = {"mixed": 975_000, "single": 1_000_000, "short": 1_000_000}
"""Number of packets in the first 100 MB of a capture. A record has 102 bytes on average, or 90 bytes if connections are short."""
START: Final = "start"
HUNDRED_MB: Final = {kind: f"100 MB {kind}" for kind in _HUNDRED_MB_PACKETS}
"""Maps the kind of a capture to the name of its first 100 MB."""


@dataclass(frozen=True)
class Capture:
    """A capture, and the counts that the generator made while writing it."""

    kind: str
    path: Path
    packets: int
    connections: int
    retransmissions: int
    file_bytes: int


def first_packets(capture: Capture, packets: int) -> Path:
    """Return a file beside the capture with its first `packets` packets. If the capture has no more packets, return the capture itself."""
    if packets >= capture.packets:
        return capture.path
    target = capture.path.with_name(f"{capture.path.stem}-first-{packets}.pcap")
    if target.exists() and target.stat().st_mtime_ns >= capture.path.stat().st_mtime_ns:
        return target
    unfinished = target.with_suffix(".unfinished")
    with capture.path.open("rb") as whole, unfinished.open("wb") as part:
        part.write(whole.read(24))
        for _ in range(packets):
            header = whole.read(16)
            part.write(header + whole.read(struct.unpack_from("<I", header, 8)[0]))
    unfinished.replace(target)
    return target


def build_walk() -> None:
    """Compile the bare walk if cargo is installed. Without cargo and without the program, the row of the walk says so."""
    if cargo := shutil.which("cargo"):
        subprocess.run([cargo, "build", "--release", "--quiet", "--locked"], cwd=_WALK, check=True)


def commands(capture: Capture, reports: Path) -> list[Command]:
    """Return the commands of all tools for one capture. `analyze` writes its reports to the folder `reports`."""
    path, whole = str(capture.path), capture.packets
    prefix_packets = min(_PREFIX_PACKETS, whole)
    report = reports / f"{capture.kind}.html"
    engine = (sys.executable, str(_CONSUME))
    counted = _all_of(segments=whole, connections=capture.connections)
    fields = tuple(word for name in TSHARK_FIELDS for word in ("-e", name))
    tshark = ("tshark", "-n", "-r", str(first_packets(capture, prefix_packets)), "-T", "fields", *fields)

    def command(tool: str, arguments: tuple[str, ...], check: Check, packets: int = whole) -> Command:
        return Command(tool, capture.kind, arguments, packets, whole, check)

    return [
        command(ENGINE_DRAIN, (*engine, "drain", path), counted),
        command(ENGINE_FRAMES, (*engine, "frames", path), counted),
        command(ENGINE_SMALL, (*engine, "small", path), counted),
        command(ENGINE_EVERYTHING, (*engine, "everything", path), counted),
        command(ANALYZE, (*PROGRAM, "analyze", path, "-o", str(report), "--quiet"), lambda _: report_is_there(report)),
        command(TCPTRACE, ("tcptrace", "-lr", "-n", path), _tcptrace_read_all(capture)),
        command(TSHARK, tshark, lambda printed: _equal("lines", printed.lines, prefix_packets), prefix_packets),
        command(CAPINFOS, ("capinfos", "-c", "-M", path), _all_of(**{"Number of packets": whole})),
        command(WALK, (str(_WALK / "target" / "release" / "walk"), path), _all_of(packets=whole)),
    ]


def starts(capture: Capture, reports: Path) -> list[Command]:
    """Return commands that show the cost of starting: `--help`, and engine and `analyze` on the first packets of `capture`."""
    small = str(first_packets(capture, _START_PACKETS))
    drain = (sys.executable, str(_CONSUME), "drain", small)
    said = (*PROGRAM, "--help")
    return [
        Command(HELP, START, said, 1, 1, lambda printed: None if "analyze" in printed.head else "no help"),
        Command(ENGINE_DRAIN, START, drain, _START_PACKETS, _START_PACKETS, _all_of(segments=_START_PACKETS)),
        _analyze_first(capture, START, _START_PACKETS, reports),
    ]


def hundred_mb(capture: Capture, reports: Path) -> list[Command]:
    """Return `analyze` on the first 100 MB of `capture`, to compare its memory with the promise.

    The list is empty if the capture is smaller.
    """
    packets = _HUNDRED_MB_PACKETS.get(capture.kind, capture.packets)
    return [_analyze_first(capture, HUNDRED_MB[capture.kind], packets, reports)] if capture.packets > packets else []


def _analyze_first(capture: Capture, called: str, packets: int, reports: Path) -> Command:
    report = reports / f"{capture.kind}-{packets}.html"
    arguments = (*PROGRAM, "analyze", str(first_packets(capture, packets)), "-o", str(report), "--quiet")
    return Command(ANALYZE, called, arguments, packets, packets, lambda _: report_is_there(report))


PROGRAM: Final = (str(Path(sys.executable).with_name("tcptrace-lab")),)
"""The command installed for the Python that runs this script."""


def _equal(what: str, got: int, expected: int) -> str | None:
    return None if got == expected else f"{what}: {got}, expected {expected}"


def _all_of(**expected: int) -> Check:
    """Return a check that the output has these numbers, written as `NUMBER name` or `name: NUMBER`."""

    def check(printed: Printed) -> str | None:
        for name, number in expected.items():
            said = re.search(rf"(\d+) {name}|{name}:\s+(\d+)", printed.head)
            if said is None:
                return f"does not say how many {name}"
            if wrong := _equal(name, int(said[1] or said[2]), number):
                return wrong
        return None

    return check


def _tcptrace_read_all(capture: Capture) -> Check:
    return _all_of(**{"packets seen": capture.packets, "TCP connections? traced": capture.connections})


def report_is_there(report: Path) -> str | None:
    """Return what is wrong with a report that should have been written, or None."""
    return None if report.exists() and report.stat().st_size else "wrote no report"
