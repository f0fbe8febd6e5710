"""Where the time of `analyze` goes, stage by stage: `python benchmarks/speed/stages.py [--quick]`.

Each row of the table is a whole process that does one stage more than the process of the previous row. The capture is `mixed-96` with ten
million packets, or a hundredth of it with `--quick`. All processes take turns with tcptrace. The table gives the wall time of each row as a
multiple of tcptrace's in the same run, because other programs on the machine delay both alike. It also gives what the row takes more than
the previous row.

The engine's rows are runs of `rust/examples/pass.rs`, built for the processor family of this machine. The next row is
`tcptrace_lab.analyze` in Python, which also gives the findings. The last row is the installed command.
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
"""Maps a stage of `pass` to the name of its row."""
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
    """Return the table: wall seconds, their multiple of tcptrace's wall time, and how much of this multiple each stage adds."""
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
    """Measure and print the stages. Return 1 if a row could not be measured."""
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
