"""Counts the engine's instructions per packet, stage by stage: `python benchmarks/speed/instructions.py [--renew]`.

Seconds depend on what else the machine does, instructions hardly do. `rust/examples/pass.rs` is built for one plain processor and run under
Valgrind, which counts every instruction, once over the captures below and once over a small one: what both have in common, the start of
the process, is taken away. `--renew` writes the figures to `instructions.json`; without it, a stage that takes more than 5 % above its
figure there is an error.

Valgrind shows the program a processor of its own, so that the choice of `memcpy` and the like by the C library hardly depends on the
machine; it remains with the version of that library. What varies from run to run are the threads that meet at different points, and
the seeds of hash tables.

Exit code 1: a stage takes more, or there is nothing to compare with. Without cargo or valgrind the comparison is left out (exit code
0), but not where the environment variable CI is set.
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
"""A stage may take this much of its figure: more than runs differ by, and less than a change that is worth a look."""
TARGETS: Final = {"x86_64": ("x86_64-unknown-linux-gnu", "x86-64"), "aarch64": ("aarch64-unknown-linux-gnu", "generic")}
"""Machine → Rust's target and the processor that the engine is built for."""
SMALL: Final = "ethernet-syn-loss.pcapng"
"""Its pass is little more than the start of the process."""
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
"""Read as one capture: bulk transfers with and without losses, and small messages."""


class NotPossibleError(Exception):
    """Nothing can be counted here."""


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotPossibleError(f"{name} is not installed")
    return found


def built_in() -> Path:
    """The folder that cargo builds in."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "rust" / "target").resolve()


def build(into: Path) -> Path:
    """Builds `pass` for a plain processor, whatever this one has; gives the program."""
    machine = platform.machine()
    if machine not in TARGETS:
        raise NotPossibleError(f"no figures for the machine {machine}")
    target, processor = TARGETS[machine]
    command = [_tool("cargo"), "build", "--quiet", "--release", "--locked", "--example", "pass", "--target", target]
    # RUSTFLAGS override flags in a user's Cargo configuration.
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_ENCODED_RUSTFLAGS"}
    environment |= {"RUSTFLAGS": f"-Ctarget-cpu={processor}", "CARGO_TARGET_DIR": str(into)}
    subprocess.run(command, cwd=ROOT / "rust", env=environment, check=True)
    return into / target / "release" / "examples" / "pass"


def counted(program: Path, stage: str, captures: list[Path]) -> tuple[int, int]:
    """Instructions that one pass takes, and the packets that it reads."""
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
    """Instructions per packet of one stage, the start of the process left out."""
    folder = ROOT / "captures"
    instructions, packets = counted(program, stage, [folder / name for name in LARGE])
    start_instructions, start_packets = counted(program, stage, [folder / SMALL])
    return (instructions - start_instructions) / (packets - start_packets)


def compared(figures: dict[str, float], found: dict[str, float]) -> list[str]:
    """What is wrong with the stages that were found, one line each; nothing if none takes more than it may."""
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
    """Counts, prints and compares, or renews the figures."""
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
