"""The commands that are compared: the engine, `analyze`, tcptrace, tshark, capinfos and the bare walk."""

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
"""The captures that everything is measured on."""
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
"""In the order of the table."""

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
"""What tshark has of the columns of the segments table."""

_PREFIX_PACKETS: Final = 1_000_000
"""tshark reads at most this many packets of a capture; its time is per packet, so it is scaled to the whole."""
_START_PACKETS: Final = 1000
"""Size of the capture whose `analyze` is timed as a start."""
_HUNDRED_MB_PACKETS: Final = {"mixed": 975_000, "single": 1_000_000, "short": 1_000_000}
"""Packets of captures in 100 MB: 102 bytes a record on average; where connections are short, 90."""
START: Final = "start"
HUNDRED_MB: Final = {kind: f"100 MB {kind}" for kind in _HUNDRED_MB_PACKETS}
"""Kind of capture → what its beginning is called."""


@dataclass(frozen=True)
class Capture:
    """A capture and what the generator counted in it."""

    kind: str
    path: Path
    packets: int
    connections: int
    retransmissions: int
    file_bytes: int


def first_packets(capture: Capture, packets: int) -> Path:
    """The capture's first `packets` packets as a file beside it; the capture itself if it has no more."""
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
    """Compiles the bare walk, if cargo is there; without cargo or the built program its row says so."""
    if cargo := shutil.which("cargo"):
        subprocess.run([cargo, "build", "--release", "--quiet", "--locked"], cwd=_WALK, check=True)


def commands(capture: Capture, reports: Path) -> list[Command]:
    """All tools on one capture; reports of `analyze` go to the folder `reports`."""
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
    """`--help`, and engine and `analyze` on the first packets of `capture`: what starting costs."""
    small = str(first_packets(capture, _START_PACKETS))
    drain = (sys.executable, str(_CONSUME), "drain", small)
    said = (*PROGRAM, "--help")
    return [
        Command(HELP, START, said, 1, 1, lambda printed: None if "analyze" in printed.head else "no help"),
        Command(ENGINE_DRAIN, START, drain, _START_PACKETS, _START_PACKETS, _all_of(segments=_START_PACKETS)),
        _analyze_first(capture, START, _START_PACKETS, reports),
    ]


def hundred_mb(capture: Capture, reports: Path) -> list[Command]:
    """`analyze` on the first 100 MB of `capture`, to compare its memory with the promise. Empty if the capture is smaller."""
    packets = _HUNDRED_MB_PACKETS.get(capture.kind, capture.packets)
    return [_analyze_first(capture, HUNDRED_MB[capture.kind], packets, reports)] if capture.packets > packets else []


def _analyze_first(capture: Capture, called: str, packets: int, reports: Path) -> Command:
    report = reports / f"{capture.kind}-{packets}.html"
    arguments = (*PROGRAM, "analyze", str(first_packets(capture, packets)), "-o", str(report), "--quiet")
    return Command(ANALYZE, called, arguments, packets, packets, lambda _: report_is_there(report))


PROGRAM: Final = (str(Path(sys.executable).with_name("tcptrace-lab")),)
"""The installed command of the Python that runs this."""


def _equal(what: str, got: int, expected: int) -> str | None:
    return None if got == expected else f"{what}: {got}, expected {expected}"


def _all_of(**expected: int) -> Check:
    """Checks that the output says the expected numbers: `NUMBER name` or `name: NUMBER`."""

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
    """What is wrong with a report that should have been written."""
    return None if report.exists() and report.stat().st_size else "wrote no report"
