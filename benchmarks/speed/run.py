"""Measures this engine and its peers on big captures: `python benchmarks/speed/run.py`.

The script makes the captures and builds the bare walk if they are missing. It measures whole processes in turn, prints one table, and
stores the table in `benchmarks/results/` as text and JSON. The exit code is 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import peers
import promises
import small_captures
import table
from measure import Command, measure

_QUICK_DIVISOR: Final = 100
_KINDS: Final = (*peers.KINDS, *small_captures.KINDS)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures the engine, analyze and their peers on big captures.")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_DIVISOR} times smaller captures; promises are not judged")
    parser.add_argument("--only", nargs="+", choices=_KINDS, default=_KINDS, metavar="CAPTURE", help=f"of {', '.join(_KINDS)}")
    parser.add_argument("--tools", nargs="+", metavar="WORD", help=f"only tools with such a word in their name: {'; '.join(peers.TOOLS)}")
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each command, after one warm-up (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=peers.HERE / "data", metavar="FOLDER", help="where the captures are kept")
    parser.add_argument("--results", type=Path, default=peers.HERE / "results", metavar="FOLDER", help="where the results are written")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    return options


def captures(divisor: int, kinds: list[str], folder: Path) -> list[peers.Capture]:
    """Make the missing captures in another process, so that its memory does not count for this process."""
    if not kinds:
        return []
    maker = [
        sys.executable,
        str(peers.HERE / "traffic" / "make_captures.py"),
        "--divisor",
        str(divisor),
        "--into",
        str(folder),
        "--only",
        *kinds,
    ]
    subprocess.run(maker, check=True)
    suffix = "" if divisor == 1 else f"-{divisor}th"
    found = []
    for kind in kinds:
        (facts,) = (path for path in (folder / f"{kind}{suffix}.json", folder / f"{kind}-96{suffix}.json") if path.exists())
        made = json.loads(facts.read_text())
        numbers = (made["packets"], made["connections"], made["retransmissions"], made["file_bytes"])
        found.append(peers.Capture(kind, facts.with_suffix(".pcap"), *numbers))
    return found


def _commands(captures: list[peers.Capture], kinds: list[str], words: list[str] | None, data: Path, reports: Path) -> list[Command]:
    commands = [command for capture in captures for command in peers.commands(capture, reports)]
    commands += [command for capture in captures if capture.kind == "mixed" for command in peers.starts(capture, reports)]
    commands += [command for capture in captures for command in peers.hundred_mb(capture, reports)]
    if small_captures.SMALL in kinds:
        commands += small_captures.small(reports)
    if small_captures.BATCH in kinds:
        commands += small_captures.batch(data / "batch", reports)
    return [command for command in commands if not words or any(word in command.tool for word in words)]


def progress(doing: str) -> None:
    """Show the current step on a terminal. Print nothing to a log."""
    if sys.stderr.isatty():
        print(f"{doing:<79}", file=sys.stderr, end="\r", flush=True)


def _engine_build() -> tuple[str, int] | None:
    """Return the file name and the modification time of the compiled engine, or None if it is not installed."""
    found = importlib.util.find_spec("tcptrace_lab")
    built = sorted(Path(found.origin).parent.glob("_core*.so")) if found and found.origin else []
    return (built[0].name, built[0].stat().st_mtime_ns) if built else None


def main() -> int:
    """Measure, print and store the results. Return 1 if a promise is broken."""
    options = _options()
    generated = [kind for kind in options.only if kind in peers.KINDS]
    made = captures(_QUICK_DIVISOR if options.quick else 1, generated, options.data)
    about = {"date": dt.datetime.now(tz=dt.UTC).strftime("%Y-%m-%d %H:%M UTC"), **table.machine()}
    with tempfile.TemporaryDirectory() as folder:
        commands = _commands(made, list(options.only), options.tools, options.data, Path(folder))
        if any(command.tool == peers.WALK for command in commands):
            peers.build_walk()
        before = _engine_build()
        measured = measure(commands, options.runs, progress)
        if _engine_build() != before:
            about["warning"] = "the engine was rebuilt during the run: the figures mix two builds"
        report = Path(folder) / "mixed.html"
        report_bytes = report.stat().st_size if report.exists() else None
    works = {(found.command.capture, found.command.tool): found for found in measured if found.works}
    verdicts = [] if options.quick else promises.judge(works, report_bytes)
    printed = table.text(about, made, measured, verdicts)
    print(printed, end="")
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "latest.txt").write_text(printed)
    (options.results / "latest.json").write_text(json.dumps(table.as_json(about, made, measured, verdicts), indent=1) + "\n")
    return int(any(verdict.holds is False for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
