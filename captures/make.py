"""Make the captures of this directory from this machine's kernel, each with a JSON of its setting beside it.

    python captures/make.py [NAME…] [-o DIR] [--list]

Needs root (network namespaces, raw capture), iproute2, ethtool, dumpcap and, for one file, zstd. Everything happens in private namespaces
that vanish with the process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from _scenarios import SCENARIOS, Scenario

from tcptrace_lab.errors import LabFailed, MissingTool
from tcptrace_lab.lab.experiment import run

if TYPE_CHECKING:
    from types import FrameType

    from tcptrace_lab.lab.experiment import Outcome

EXIT_FAILED, EXIT_USAGE, EXIT_TOOL_MISSING = 1, 2, 5
TOOLS = ("dumpcap", "ip", "ethtool", "setpriv", "zstd")
SCHEMA_VERSION = 2
HERE = Path(__file__).parent


def make(scenario: Scenario, directory: Path) -> list[Path]:
    """Run one scenario and put its captures and their JSON into `directory`; returns the captures.

    A capture appears under its name only when it is whole.
    """
    with tempfile.TemporaryDirectory(prefix="captures-") as work:
        outcome = run(scenario.experiment(), Path(work))
        files = []
        for vantage, stem in scenario.files():
            path = directory / (stem + scenario.suffix)
            pack(outcome.captures[vantage], path)
            setting = {**describe(scenario, outcome, vantage), **outcome.seen_only_here}
            (directory / f"{stem}.json").write_text(json.dumps({"file": path.name} | setting, indent=1) + "\n")
            files.append(path)
        return files


def describe(scenario: Scenario, outcome: Outcome, vantage: str) -> dict[str, object]:
    """Everything a reader of the capture may want to know that is not in it."""
    medium = scenario.medium
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": scenario.name,
        "description": scenario.shows,
        "vantage": "both" if medium.kind == "lo" else vantage,
        "interface": outcome.interface,
        "snaplen_bytes": scenario.snaplen_bytes,
        "medium": {
            "kind": medium.kind,
            "mtu_bytes": medium.mtu_bytes,
            "offloads": medium.offloads or medium.kind == "lo",
            "ipv6": medium.ipv6,
            "sysctls": dict(medium.sysctls),
        },
        "relay": outcome.relay.describe() if outcome.relay else None,
        "socket_options": scenario.options.describe(),
        "schedule": scenario.program.describe(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "connections": outcome.accounts,
        "connections_ended": outcome.ended,
    }


def pack(source: Path, target: Path) -> None:
    """Move a capture to its place, compressed as its name says."""
    if target.suffix == ".gz":
        target.write_bytes(gzip.compress(source.read_bytes(), mtime=0))
    elif target.suffix == ".zst":
        done = subprocess.run(["zstd", "-q", "-19", "-c", str(source)], check=True, stdout=subprocess.PIPE)
        target.write_bytes(done.stdout)
    else:
        shutil.copyfile(source, target)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="captures/make.py", description="Make small real captures in private network namespaces.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenario to make (default: all)")
    parser.add_argument("-o", "--output", type=Path, default=HERE, metavar="DIR", help="where to put them (default: beside this script)")
    parser.add_argument("--list", action="store_true", help="print the names and what they show, and stop")
    parsed = parser.parse_args(arguments)
    unknown = [name for name in parsed.names if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario called {', '.join(unknown)}; --list shows them")
    return parsed


def main(arguments: list[str] | None = None) -> int:
    """Make the captures that were asked for; returns the exit code."""
    options = parse(arguments)
    if options.list:
        for scenario in SCENARIOS.values():
            print(f"{scenario.name:32} {scenario.shows}")
        return 0
    if os.geteuid() != 0:
        return complain("needs root: it builds network namespaces and captures from them", EXIT_USAGE)
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return complain(f"these programs are missing: {', '.join(missing)}", EXIT_TOOL_MISSING)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or SCENARIOS:
        started_s = time.monotonic()
        try:
            files = make(SCENARIOS[name], options.output)
        except (LabFailed, MissingTool, OSError, EOFError) as error:
            return complain(f"{name}: {error}", EXIT_FAILED)
        for file in files:
            print(f"{file.name:44} {file.stat().st_size:>8} bytes  {time.monotonic() - started_s:5.2f} s", file=sys.stderr)
    return 0


def complain(what: str, code: int) -> int:
    """One line on stderr."""
    print(f"captures/make.py: {what}", file=sys.stderr)
    return code


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    """Leave through the context managers, so that children end and files half made are removed."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
