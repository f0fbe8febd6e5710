"""Where the time of `analyze` goes, stage by stage: `python benchmarks/speed/stages.py [--quick]`.

Each row is a whole process that goes one stage further than the row before, on `mixed-96` (ten million packets; a hundredth with
`--quick`). All take turns with tcptrace, and the table gives each row's wall time as a part of tcptrace's in the same run, and what it
takes more than the row before: other programs on the machine spoil both alike. The engine's rows are `rust/examples/pass.rs`, built for
this machine's processor family; then comes `tcptrace_lab.analyze` in Python, which gives the findings, and the installed command.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import instructions
import peers
import run
from measure import Command, Measured, Printed, measure

_TCPTRACE: Final = "tcptrace -lr -n"
_ROWS: Final = (
    ("segments", "segments, without accounts"),
    ("accounts", "accounts of connections"),
    ("details", "ledger, and details"),
)
"""Stage of `pass` → its row."""
_QUICK_DIVISOR: Final = 100


def _commands(program: Path, capture: peers.Capture, folder: Path) -> list[Command]:
    report, path, packets = folder / "report.html", str(capture.path), capture.packets

    def all_read(printed: Printed) -> str | None:
        return None if printed.head.startswith(f"{packets} packets") else "not all packets are read"

    def command(row: str, *arguments: str) -> Command:
        return Command(row, capture.kind, arguments, packets, packets, lambda _: None)

    findings = (sys.executable, "-c", "import sys, tcptrace_lab; tcptrace_lab.analyze(sys.argv[1])", path)
    return [
        command(_TCPTRACE, "tcptrace", "-lr", "-n", path),
        *(Command(row, capture.kind, (str(program), stage, path), packets, packets, all_read) for stage, row in _ROWS),
        command("findings (in Python)", *findings),
        command("figures and page (analyze)", *peers.PROGRAM, "analyze", path, "--quiet", "-o", str(report)),
    ]


def text(measured: list[Measured]) -> str:
    """The table: wall seconds, their part of tcptrace's, and how much of that each stage adds."""
    whole = next((found.wall_median_s for found in measured if found.command.tool == _TCPTRACE and found.works), None)
    lines = [f"{'':<32}{'wall s':>8}{'cpu s':>8}{'x tcptrace':>12}{'adds':>8}"]
    before_s = 0.0
    for found in measured:
        if not found.works:
            lines.append(f"{found.command.tool:<32}{found.failure}")
            continue
        wall_s = found.wall_median_s
        part = f"{wall_s / whole:.2f}" if whole else "-"
        adds = f"{(wall_s - before_s) / whole:.2f}" if whole and found.command.tool != _TCPTRACE else "-"
        lines.append(f"{found.command.tool:<32}{wall_s:>8.2f}{found.cpu_median_s:>8.2f}{part:>12}{adds:>8}")
        before_s = before_s if found.command.tool == _TCPTRACE else wall_s
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measures and prints; 1 if a row could not be measured."""
    parser = argparse.ArgumentParser(description="Breaks the time of analyze down by stage.")
    parser.add_argument("--quick", action="store_true", help=f"a capture {_QUICK_DIVISOR} times smaller")
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each row, after one warm-up (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=peers.HERE / "data", metavar="FOLDER", help="where the captures are kept")
    options = parser.parse_args()
    try:
        program = instructions.build(instructions.built_in())
    except (instructions.NotPossibleError, subprocess.CalledProcessError) as error:
        print(f"the engine alone cannot be built: {error}", file=sys.stderr)
        return 1
    (capture,) = run.captures(_QUICK_DIVISOR if options.quick else 1, ["mixed"], options.data)
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(_commands(program, capture, Path(folder)), options.runs, run.progress)
    print(text(measured), end="")
    return int(not all(found.works for found in measured))


if __name__ == "__main__":
    sys.exit(main())
