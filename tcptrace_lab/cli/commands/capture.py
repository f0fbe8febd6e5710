"""`tcptrace-lab capture`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.commands.analyze import FailOn, Report, analyze
from tcptrace_lab.cli.options import Debug, Json, Markdown, Quiet, Where
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, UsageError
from tcptrace_lab.process import output
from tcptrace_lab.text.escape import printable
from tcptrace_lab.text.numbers import size
from tcptrace_lab.text.quantities import size_bytes

if TYPE_CHECKING:
    from tcptrace_lab.lab.capturing.live import Interface, Ring

_RING = re.compile(r"\s*(\d{1,6})\s*[x×*]\s*(.+)")
DEFAULT_RING = "10x100M"
"""Default of `--ring`: 10 files of 100 MB, so that a session takes at most 1 GB on the disk."""

SMALLEST_RING_FILE_BYTES = 1_000
"""Smallest size of a ring file: dumpcap counts in units of 1,000 bytes."""

Listed = Annotated[bool, typer.Option("--list", help="Only list the interfaces.")]
Interfaces = Annotated[
    list[str] | None,
    typer.Option(
        "-i", "--interface", metavar="NAME", help="Interface to capture on; may be repeated. Default: the first one that is not loopback."
    ),
]
Filter = Annotated[
    str, typer.Option("--filter", metavar="EXPR", help='Capture filter, such as "tcp port 80" (pcap-filter).', show_default=False)
]
RingOption = Annotated[
    str, typer.Option("--ring", metavar="FILES×SIZE", help="Begin a new capture file at SIZE, and keep only the last FILES files.")
]
Duration = Annotated[int | None, typer.Option("--duration", metavar="SECONDS", min=1, help="Stop after this time.", show_default=False)]
Packets = Annotated[int | None, typer.Option("--packets", metavar="N", min=1, help="Stop after this many packets.", show_default=False)]
Snaplen = Annotated[
    int | None, typer.Option("--snaplen", metavar="BYTES", min=64, max=262_144, help="Bytes to keep of each packet.", show_default="all")
]
Write = Annotated[
    str | None,
    typer.Option("-w", "--write", metavar="CAPTURE.pcapng", help="File for the packets.", show_default="reports/<interface>-<time>.pcapng"),
]


def capture(
    listed: Listed = False,
    interfaces: Interfaces = None,
    capture_filter: Filter = "",
    ring: RingOption = DEFAULT_RING,
    duration_s: Duration = None,
    packets: Packets = None,
    snaplen_bytes: Snaplen = None,
    write: Write = None,
    report: Report = None,
    json_path: Json = None,
    markdown: Markdown = None,
    where: Where = None,
    fail_on: FailOn = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Capture live through Wireshark's dumpcap, then analyze what was captured.

    Without options, list the interfaces. The capture stops after --duration or --packets, or on Ctrl-C. Then the capture is analyzed; its
    file is kept. A long session writes several files and keeps the last ones. These are analyzed together, and the verdict on each is
    printed.
    """
    from tcptrace_lab.lab.capturing import live  # noqa: PLC0415  (it starts programs, which `--help` does not need)

    asked = (interfaces, capture_filter, duration_s, packets, snaplen_bytes, write)
    if listed or not any(asked):
        _tell(live.interfaces())
        if not listed and not quiet:
            say("choose one: tcptrace-lab capture -i NAME; Ctrl-C stops the capture and starts the analysis")
        return EXIT_DONE
    request = live.Request(interfaces or (), capture_filter, duration_s, packets, snaplen_bytes, kept := _ring(ring))
    target = Path(write) if write is not None else _default_path(request.interfaces)
    output.check_all({"-w": str(target), "-o": report, "--json": json_path, "--markdown": markdown}, (), ("-w", "-o"))
    with activity("capturing; Ctrl-C stops it", quiet=quiet) as shown:
        recorded = live.record(
            request,
            target,
            lambda count, size_bytes: shown.doing(f"{count:,} packets, {size(size_bytes)} captured; Ctrl-C stops it"),
            None if quiet else lambda: _begin(target, kept),
        )
    if not quiet:
        say(live.summary(recorded))
    files = [str(path) for path in recorded.files]
    code = analyze(files, report, json_path, markdown, where=where, fail_on=fail_on, quiet=quiet, _debug=debug)
    if len(files) > 1 and not quiet and output.STDOUT not in {json_path, markdown}:
        _tell_each(files, where)
    return code


def _tell_each(files: list[str], where: str | None) -> None:
    """Print the verdict on each file to standard output."""
    from tcptrace_lab import verdict  # noqa: PLC0415
    from tcptrace_lab.analysis import analyze as analyze_paths  # noqa: PLC0415
    from tcptrace_lab.cli.console import console, paragraph  # noqa: PLC0415

    out = console()
    out.print()
    for file in files:
        with activity("reading", quiet=False) as shown:
            words = verdict.sentence(analyze_paths(file, where=where, progress=shown.segments))
        paragraph(out, f"{printable(file)}: {printable(words)}")


def _begin(target: Path, ring: Ring) -> None:
    """Print the path of the capture file, how much of a long session is kept, and how to end the session."""
    say("Ctrl-C stops the capture and starts the analysis")
    say(f"capturing to {target}; a long session keeps its last {ring.files} files of {size(ring.file_bytes)}")


def _ring(text: str) -> Ring:
    from tcptrace_lab.lab.capturing.live import Ring  # noqa: PLC0415

    match = _RING.fullmatch(text)
    if match is None:
        raise UsageError(f"not a file ring: {text!r}", remedy="write it as 5x100M")
    ring = Ring(int(match[1]), size_bytes(match[2]))
    if ring.files < 1 or ring.file_bytes < SMALLEST_RING_FILE_BYTES:
        raise UsageError(f"file ring too small: {text!r}", remedy="use at least 1 file of at least 1000 bytes")
    return ring


def _default_path(interfaces: object) -> Path:
    names = [str(name) for name in interfaces] if isinstance(interfaces, (list, tuple)) else []
    name = "-".join(re.sub(r"[^\w.]+", "_", name) for name in names) or "capture"
    return output.reports() / f"{name}-{output.now()}.pcapng"


def _tell(interfaces: list[Interface]) -> None:
    """Print the interfaces to standard output, because they are the result of the command."""
    width = max((len(one.name) for one in interfaces), default=0)
    for one in interfaces:
        words = [word for word in (one.title, *one.addresses) if word]
        sys.stdout.write(f"{printable(one.name):<{width}}  {printable(', '.join(words))}".rstrip() + "\n")
