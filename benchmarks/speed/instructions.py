"""Counts the engine's instructions per packet, stage by stage: `python benchmarks/speed/instructions.py [--renew]`.

Instructions hardly depend on what else the machine does, but seconds do. `rust/examples/pass.rs` is built for one plain processor. It runs
under Valgrind, which counts every instruction, once on the captures below and once on a small capture. The difference leaves out the start
of the process. `--renew` writes the figures to `instructions.json`. Without it, a stage that takes over 5 % more than its figure is an
error.

Valgrind simulates a processor of its own. So the C library's choice of functions such as `memcpy` depends hardly on the machine, but it
depends on the version of the library. Two things vary between runs: the points at which threads meet, and the seeds of hash tables.

The exit code is 1 if a stage takes more or has no figure. Without cargo or valgrind, the comparison is left out, and the exit code is 0. If
the environment variable CI is set, this is an error instead.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FIGURES: Final = Path(__file__).with_name("instructions.json")
STAGES: Final = ("segments", "accounts", "ledger", "details")
MAX_SHARE: Final = 1.05
"""A stage can take this multiple of its figure. Runs differ by less, and changes that need attention differ by more."""
TARGETS: Final = {"x86_64": ("x86_64-unknown-linux-gnu", "x86-64"), "aarch64": ("aarch64-unknown-linux-gnu", "generic")}
"""Maps a machine to Rust's target and to the processor for which the engine is built."""
SMALL: Final = "ethernet-syn-loss.pcapng"
"""A pass over this capture is little more than the start of the process."""
LARGE: Final = (
    "ethernet-queue-overflow.pcapng",
    "ethernet-bottleneck.pcapng",
    "ethernet-bbr.pcapng",
    "ethernet-random-loss.pcapng",
    "ethernet-ipv6-bulk.pcapng",
    "ethernet-reordering.pcapng",
    "ethernet-loss.pcapng",
    "ethernet-slow-start.pcapng",
    "ethernet-bulk.pcapng",
    "ethernet-two-way.pcapng",
    "ethernet-application-limited.pcapng",
    "ethernet-small-send-buffer.pcapng",
    "cooked-bulk.pcapng",
    "ethernet-small-receive-window.pcapng",
)
"""These captures are read as one: bulk transfers with and without losses, and small messages."""


class NotPossibleError(Exception):
    """An error: the instructions cannot be counted on this machine."""


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotPossibleError(f"{name} is not installed")
    return found


def built_in() -> Path:
    """Return the folder in which cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "rust" / "target").resolve()


def build(into: Path) -> Path:
    """Build `pass` for a plain processor, whatever processor this machine has. Return the path of the program."""
    machine = platform.machine()
    if machine not in TARGETS:
        raise NotPossibleError(f"no figures for the machine {machine}")
    target, processor = TARGETS[machine]
    command = [_tool("cargo"), "build", "--quiet", "--release", "--locked", "--example", "pass", "--target", target]
    # RUSTFLAGS overrides the flags in a user's Cargo configuration.
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_ENCODED_RUSTFLAGS"}
    environment |= {"RUSTFLAGS": f"-Ctarget-cpu={processor}", "CARGO_TARGET_DIR": str(into)}
    subprocess.run(command, cwd=ROOT / "rust", env=environment, check=True)
    return into / target / "release" / "examples" / "pass"


def counted(program: Path, stage: str, captures: list[Path]) -> tuple[int, int]:
    """Return the number of instructions of one pass, and the number of packets that it reads."""
    with tempfile.NamedTemporaryFile() as log:
        options = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={log.name}"]
        command = [_tool("valgrind"), *options, str(program), stage, *map(str, captures)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = re.search(r"I\s+refs:\s+([\d,]+)", Path(log.name).read_text())
    packets = re.match(r"(\d+) packets", said)
    if found is None or packets is None:
        raise RuntimeError(f"valgrind or pass said nothing: {said}")
    return int(found[1].replace(",", "")), int(packets[1])


def per_packet(program: Path, stage: str) -> float:
    """Return the instructions per packet of one stage, without the start of the process."""
    folder = ROOT / "captures"
    instructions, packets = counted(program, stage, [folder / name for name in LARGE])
    start_instructions, start_packets = counted(program, stage, [folder / SMALL])
    return (instructions - start_instructions) / (packets - start_packets)


def compared(figures: dict[str, float], found: dict[str, float]) -> list[str]:
    """Return one line for each stage that takes too many instructions or has no figure."""
    wrong = []
    for stage, instructions in found.items():
        figure = figures.get(stage)
        if figure is None:
            wrong.append(f"{stage}: no figure to compare with; make instructions")
        elif instructions > MAX_SHARE * figure:
            wrong.append(f"{stage}: {instructions:,.0f} instructions per packet, {instructions / figure - 1:+.1%} of {figure:,.0f}")
    return wrong


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Counts the engine's instructions per packet.")
    parser.add_argument("--renew", action="store_true", help="write the figures instead of comparing with them")
    return parser.parse_args()


def main() -> int:
    """Count the instructions, print them, and compare them with the figures or renew the figures."""
    options = _options()
    try:
        _tool("valgrind")
        program = build(built_in())
    except NotPossibleError as error:
        print(f"instructions are not counted: {error}", file=sys.stderr)
        return int(bool(os.environ.get("CI")))
    machine = platform.machine()
    stored = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    figures: dict[str, float] = stored.get(machine, {})
    found = {}
    for stage in STAGES:
        found[stage] = per_packet(program, stage)
        beside = f"{found[stage] / figures[stage] - 1:+.1%}" if stage in figures else "new"
        print(f"{stage:<10} {found[stage]:>8,.0f} instructions per packet  {beside}")
    if options.renew:
        stored[machine] = {stage: round(instructions) for stage, instructions in found.items()}
        FIGURES.write_text(json.dumps(stored, indent=1) + "\n")
        return 0
    wrong = compared(figures, found)
    print("".join(f"{line}\n" for line in wrong), file=sys.stderr, end="")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
