"""`python -m tcptrace_lab.lab.kernel_ledger`: makes transfers with the kernel's ledger beside their captures, and compares the two ledgers.

    python -m tcptrace_lab.lab.kernel_ledger run FOLDER [NAME…]     makes transfers with known causes (needs root)
    python -m tcptrace_lab.lab.kernel_ledger list                   lists the names of these transfers
    python -m tcptrace_lab.lab.kernel_ledger make FOLDER…           makes the ledgers again from the events, after a change of the rules
    python -m tcptrace_lab.lab.kernel_ledger compare FOLDER…        compares the kernel's ledgers with those of the captures

For `compare` and `make`, FOLDER is the folder of a transfer, or a folder that contains such folders.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.errors import EXIT_MISSING_TOOL, TcptraceLabError, UsageError
from tcptrace_lab.lab.kernel_ledger import compare, transfers
from tcptrace_lab.lab.kernel_ledger.build import tracer
from tcptrace_lab.lab.kernel_ledger.ledger import write_ledger
from tcptrace_lab.lab.kernel_ledger.trace import EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: list[str] | None = None) -> int:
    """Run the requested command. Return 0, or the exit code of the error."""
    options = _parse(arguments)
    try:
        match options.command:
            case "list":
                print("\n".join(transfers.KNOWN))  # noqa: T201
            case "run":
                return _run(options.folder, options.names)
            case "make":
                for folder in _transfers(options.folders):
                    write_ledger(folder)
            case "compare":
                for line in compare.report(_transfers(options.folders), all_directions=options.all_directions, largest=options.largest):
                    print(line, flush=True)  # noqa: T201
    except TcptraceLabError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


def _run(folder: Path, names: Sequence[str]) -> int:
    """Make each transfer. Report transfers that fail, and return the exit code of their error."""
    asked = [name for name in transfers.KNOWN if not names or any(name.startswith(begin) for begin in names)]
    if not asked:
        raise UsageError("no such transfer", where=", ".join(names), remedy="`list` shows their names")
    tracer()
    exit_code = 0
    for name in asked:
        try:
            costs = transfers.make(name, folder / name)
        except (TcptraceLabError, OSError, EOFError) as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)  # noqa: T201
            exit_code = getattr(error, "exit_code", EXIT_MISSING_TOOL)
            continue
        runs, ns = (sum(program[what] for program in costs["programs"].values()) for what in ("runs", "ns"))
        print(f"{name}: {costs['records']:,} records, {ns / max(runs, 1):,.0f} ns per run of a hook", flush=True)  # noqa: T201
    return exit_code


def _transfers(folders: Sequence[Path]) -> list[Path]:
    found = [path.parent for folder in folders for path in sorted(folder.rglob(EVENTS))]
    if not found:
        raise UsageError("no transfer with the kernel's events", where=", ".join(map(str, folders)), remedy="make some with `run`")
    return found


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tcptrace_lab.lab.kernel_ledger", description="Ledgers of transfers from the kernel's view."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the transfers that `run` can make")
    run = commands.add_parser("run", help="make transfers (needs root, clang, libbpf and bpftool)")
    run.add_argument("folder", type=Path, metavar="FOLDER")
    run.add_argument("names", nargs="*", metavar="NAME", help="only transfers whose names begin with NAME (default: all)")
    make = commands.add_parser("make", help="rebuild the ledgers from the recorded events")
    make.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    comparison = commands.add_parser("compare", help="compare the ledgers of the captures with the kernel's")
    comparison.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    comparison.add_argument(
        "--all-directions", action="store_true", help="compare both directions of a connection, not only the one with more bytes"
    )
    comparison.add_argument(
        "--largest", type=int, default=compare.LARGEST, metavar="N", help="number of disagreements to list (default: 10)"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
