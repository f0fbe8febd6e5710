"""Kills runs of `batch` at random moments, and checks that the resumed archive equals the archive of an undisturbed run.

`python benchmarks/archives/archive_kills.py FOLDER 50` archives the captures of a folder once without interruption, and then 50 more times.
`archive_captures.py` makes such a folder.

SIGKILL ends each run at a random moment. It also ends the runs that resume the archive, until one of them completes. Every file of the
dataset and the index must then be equal, byte for byte. No capture must be analyzed twice.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAX_KILLS = 3


def main() -> None:
    """Print the result of each round. Exit with 1 if an archive differs."""
    parser = argparse.ArgumentParser(description="Kills runs of batch, and compares what they leave.")
    parser.add_argument("captures", type=Path)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)  # noqa: S311  (moments, not secrets)
    with tempfile.TemporaryDirectory(prefix="archive-kills-") as folder:
        whole = Path(folder, "whole")
        begin = time.monotonic()
        subprocess.run(_command(options.captures, whole), check=False)
        length_s = time.monotonic() - begin
        expected, parts = _hashes(whole), _parts(whole)
        print(f"undisturbed: {len(parts)} captures in {length_s:.0f} s, {len(expected)} files of tables and index")
        same = 0
        for number in range(options.rounds):
            out = Path(folder, f"round-{number}")
            kills, twice = _round(options.captures, out, length_s, chance)
            equal = _hashes(out) == expected and set(_parts(out)) == set(parts)
            same += equal and not twice
            print(
                f"round {number + 1}: killed {kills} times; {'the same' if equal else 'DIFFERENT'}; {twice} captures analyzed twice",
                flush=True,
            )
            shutil.rmtree(out)
        print(f"{same} of {options.rounds} the same, nothing repeated")
    sys.exit(same != options.rounds)


def _round(captures: Path, out: Path, length_s: float, chance: random.Random) -> tuple[int, int]:
    """Return how often the run was killed, and how many parts were written twice."""
    kills = twice = 0
    seen: dict[str, int] = {}
    while True:
        running = subprocess.Popen(_command(captures, out))
        try:
            running.wait(chance.uniform(0, length_s) if kills < MAX_KILLS else None)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
            running.wait()
            kills += 1
        now = _parts(out)
        twice += sum(now[name] != inode for name, inode in seen.items())
        seen = now
        if running.returncode >= 0:
            return kills, twice


def _command(captures: Path, out: Path) -> list[str | Path]:
    return [sys.executable, "-m", "tcptrace_lab", "batch", captures, "-o", out, "--jobs", "2", "--no-reports", "--quiet"]


def _hashes(out: Path) -> dict[str, str]:
    files = [*(path for path in (out / "tables").rglob("*") if path.is_file()), out / "index.html"]
    return {path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _parts(out: Path) -> dict[str, int]:
    """Map the name of each part to its inode. A part that is written again gets another inode."""
    return {path.name: path.stat().st_ino for path in out.rglob("*.part")}


if __name__ == "__main__":
    main()
