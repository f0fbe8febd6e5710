"""The measurements as text of 80 columns and as JSON."""

from __future__ import annotations

import dataclasses
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import peers
import small_captures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from measure import Measured
    from promises import Verdict

_WIDTH: Final = 80
_MB: Final = 1_000_000
_QUIET_LOAD: Final = 0.5
"""Maximum load average of a quiet machine. The value is a guess, and a median of three runs tolerates it."""
_HEADINGS: Final = f"{'':<23}{'wall s':>8}{'spread':>7}{'cpu s':>8}{'Mpkt/s':>8}{'peak MB':>9}{'x engine':>10}{'runs':>5}"


def machine() -> dict[str, str]:
    """Return what the figures depend on: the processor, the kernel, and the versions of the tools."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")]
    versions = {tool: _version(tool) for tool in ("tcptrace", "tshark", "capinfos")}
    processor = f"{models[0]}, {len(models)} cores" if models else platform.processor()
    load = f"{os.getloadavg()[0]:.1f} before the first run{'' if quiet() else ': other programs spoil the wall times'}"
    return {
        "processor": processor,
        "load": load,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **versions,
    }


def quiet() -> bool:
    """Return whether the machine is otherwise idle."""
    return os.getloadavg()[0] < _QUIET_LOAD


def _version(tool: str) -> str:
    """Return the first line with a digit in the version output of a tool."""
    if not shutil.which(tool):
        return "missing"
    said = subprocess.run([tool, "-v"], capture_output=True, text=True, errors="replace", check=False)
    lines = (said.stdout + said.stderr).splitlines()
    return next((line.strip() for line in lines if any(letter.isdigit() for letter in line)), "unknown")


def text(about: dict[str, str], captures: Sequence[peers.Capture], measured: Sequence[Measured], verdicts: Sequence[Verdict]) -> str:
    """Return all results as text for people."""
    lines = [f"{key:<10} {value}"[:_WIDTH] for key, value in about.items()]
    for capture in captures:
        lines += ["", *_heading(capture), _HEADINGS, *_rows(capture.kind, measured)]
    lines += ["", "Start, and small captures", _HEADINGS]
    for kind in (peers.START, *peers.HUNDRED_MB.values(), *small_captures.KINDS):
        lines += _rows(kind, measured)
    lines += [
        "",
        "Each row is a whole process, page cache warm: median wall time, (max - min) /",
        "median, user + system time; peak is the resident set, mapped file included.",
        "x engine: wall time over that of the Polars frames. ~: scaled per packet from",
        "the first million packets.",
    ]
    if verdicts:
        lines += [
            "",
            "Promises, judged by wall time (cpu is steadier, and counts all threads)",
            *(_verdict(verdict) for verdict in verdicts),
        ]
    return "\n".join(lines) + "\n"


def _heading(capture: peers.Capture) -> Iterator[str]:
    yield f"{capture.path.name}: {capture.packets:,} packets, {capture.file_bytes / _MB:,.0f} MB,"
    yield f"  {capture.connections:,} connection{'s' * (capture.connections > 1)}, {capture.retransmissions:,} retransmissions"


def _rows(kind: str, measured: Sequence[Measured]) -> Iterator[str]:
    of_kind = [found for found in measured if found.command.capture == kind]
    engine = next((found for found in of_kind if found.command.tool == peers.ENGINE_FRAMES and found.works), None)
    for found in of_kind:
        name = f"{found.command.tool.split(',')[0]}, {kind}" if kind in peers.HUNDRED_MB.values() else found.command.tool
        if not found.works:
            yield f"{name:<23} {found.failure}"[:_WIDTH]
            continue
        about = "~" if found.scale > 1 else ""
        wall = f"{about}{found.wall_median_s:.2f}"
        spread = f"{(max(found.wall_s) - min(found.wall_s)) * found.scale / found.wall_median_s:.0%}" if len(found.wall_s) > 1 else "-"
        reads_packets = found.command.tool != peers.HELP and kind != small_captures.BATCH  # `batch` counts captures
        rate = f"{found.packets_per_s / 1e6:.3f}" if reads_packets else "-"
        ratio = f"{about}{found.wall_median_s / engine.wall_median_s:.2f}" if engine else "-"
        peak = f"{found.peak_max_bytes / _MB:,.0f}"
        yield f"{name:<23}{wall:>8}{spread:>7}{found.cpu_median_s:>8.2f}{rate:>8}{peak:>9}{ratio:>10}{len(found.wall_s):>5}"


def _verdict(verdict: Verdict) -> str:
    word = {True: "holds", False: "BROKEN", None: "not measured"}[verdict.holds]
    return f"  {verdict.promise:<35}{word:<8} {verdict.measured}".rstrip()


def as_json(
    about: dict[str, str], captures: Sequence[peers.Capture], measured: Sequence[Measured], verdicts: Sequence[Verdict]
) -> dict[str, Any]:
    """Return all results as JSON for programs. The times are those of each run and are not scaled."""
    return {
        "about": about,
        "captures": [dataclasses.asdict(capture) | {"path": capture.path.name} for capture in captures],
        "measured": [
            {
                "tool": found.command.tool,
                "capture": found.command.capture,
                "packets": found.command.packets,
                "of_packets": found.command.of_packets,
                "wall_s": found.wall_s,
                "cpu_s": found.cpu_s,
                "peak_bytes": found.peak_bytes,
                "failure": found.failure,
            }
            for found in measured
        ],
        "promises": [dataclasses.asdict(verdict) for verdict in verdicts],
    }
