"""`python -m tcptrace_lab.lab.corpus`: makes many transfers with the kernel's ledger, and compares the engine with it.

    python -m tcptrace_lab.lab.corpus programs                         lists the programs, and which of them are not installed
    python -m tcptrace_lab.lab.corpus make -n 60                       makes the first 60 transfers of a seed, two at a time (needs root)
    python -m tcptrace_lab.lab.corpus make -n 8 --only redis mosq      makes transfers only of programs with these names
    python -m tcptrace_lab.lab.corpus make shared -n 40 --competing 8  in folder `shared`: each shares its bottleneck with 1 to 8 programs
    python -m tcptrace_lab.lab.corpus table                            shows the number of transfers per program and path
    python -m tcptrace_lab.lab.corpus compare                          compares the engine with the kernel, on the development part
    python -m tcptrace_lab.lab.corpus compare --held-back              compares on the held-back part, which is used once, at the end
    python -m tcptrace_lab.lab.corpus calibration                      writes docs/how-sure.md: the correct share by confidence
    python -m tcptrace_lab.lab.corpus gains shared                     compares predicted gains with the free time of the bottleneck
    python -m tcptrace_lab.lab.corpus faults -n 60                     compares captures before and after faults are added
    python -m tcptrace_lab.lab.corpus families build/families          makes transfers whose causes are easily mistaken, and compares them

Transfers are stored in build/transfers/, which git ignores. `make` skips transfers that are already stored there.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcptrace_lab.errors import TcptraceLabError, UsageError
from tcptrace_lab.lab.corpus import calibration, compare, drawn, families, family_report, faulted, faults, gains, making, manifest
from tcptrace_lab.lab.corpus.judging import judge_all
from tcptrace_lab.lab.corpus.paths import PATHS
from tcptrace_lab.lab.corpus.programs import PROGRAMS
from tcptrace_lab.lab.kernel_ledger.build import tracer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcptrace_lab.lab.corpus.judging import Judged

CHECKOUT = Path(__file__).parents[3]
FOLDER = CHECKOUT / "build" / "transfers"
STACK = "gvisor"
"""Folder with the transfers of another TCP stack than Linux (`other_stacks`).

It is next to the folders of the corpus parts.
"""
SEED, AT_A_TIME, LARGEST, LARGEST_OF_A_FAULT = 1, 2, 30, 3


def main(arguments: list[str] | None = None) -> int:
    """Run the requested command. Return 0, or the exit code of the error that ended the command."""
    options = _parse(arguments)
    try:
        for line in options.does(options):
            print(line, flush=True)  # noqa: T201
    except TcptraceLabError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


def _programs(_options: argparse.Namespace) -> Iterator[str]:
    for name, program in PROGRAMS.items():
        missing = program.missing()
        lacks = f"not installed: {', '.join(missing)}" if missing else ""
        yield f"{name:32} {program.family:12} {drawn.part_of_family(program.family):12} {lacks}".rstrip()


def _make(options: argparse.Namespace) -> Iterator[str]:
    names = [name for name in PROGRAMS if not options.only or any(name.startswith(begin) for begin in options.only)]
    if not names:
        raise UsageError("no such program", where=", ".join(options.only), remedy="`programs` shows their names")
    tracer()
    wanted = drawn.transfers(options.seed, range(options.first, options.first + options.number), names, options.competing)
    yield from making.make(wanted, options.folder, options.at_a_time)


def _table(options: argparse.Namespace) -> Iterator[str]:
    """Yield a table of the numbers of transfers by program and path, over both parts of the corpus.

    These numbers reveal no results of the held-back part.
    """
    every = [entry for part in drawn.PARTS for entry in manifest.entries(options.folder / part)]
    counts = Counter((entry["program"], entry["path"]) for entry in every)
    yield f"| {len(every)} transfers | all | {' | '.join(PATHS)} |"
    yield f"|---|{'---:|' * (1 + len(PATHS))}"
    for program in PROGRAMS:
        row = [counts[program, path] for path in PATHS]
        yield f"| {program} | {sum(row)} | {' | '.join(str(count or '') for count in row)} |"


def _compare(options: argparse.Namespace) -> Iterator[str]:
    part = drawn.HELD_BACK if options.held_back else drawn.DEVELOPMENT
    yield from compare.report(_judged(options, Path(part), options.only), options.largest)


def _calibration(options: argparse.Namespace) -> Iterator[str]:
    folders = {part: Path(part) for part in (drawn.DEVELOPMENT, *([drawn.HELD_BACK] if options.held_back else []))}
    if (options.folder / STACK / drawn.DEVELOPMENT / manifest.MANIFEST).exists():
        folders[calibration.OTHER_STACK] = Path(STACK, drawn.DEVELOPMENT)
    yield from calibration.write(options.page_folder, {part: _judged(options, folder) for part, folder in folders.items()})


def _gains(options: argparse.Namespace) -> Iterator[str]:
    folder = options.folder / (drawn.HELD_BACK if options.held_back else drawn.DEVELOPMENT)
    entries = _wanted(folder, options.only)
    yield from gains.report(gains.gains(folder, entries, options.processes), len(entries), options.largest)


def _faults(options: argparse.Namespace) -> Iterator[str]:
    """Judge captures with faults. Only the development part is used, so the results of the held-back part stay unseen."""
    folder = options.folder / drawn.DEVELOPMENT
    entries = list(manifest.entries(folder))
    if not entries:
        raise UsageError("no transfers", where=str(folder), remedy="make some with `make`")
    wanted = entries[:: max(len(entries) // options.number, 1)][: options.number]
    names = list(faults.names(options.only))
    if not names:
        raise UsageError("no such fault", where=", ".join(options.only), remedy=f"there are {', '.join(faults.FAULTS)}")
    yield from faulted.report(list(faulted.judge_faulty(folder, wanted, names, options.processes, options.keep)), options.largest)


def _families(options: argparse.Namespace) -> Iterator[str]:
    tracer()
    yield from family_report.report(options.only, options.folder, options.at_a_time)


def _judged(options: argparse.Namespace, part: Path, only: Sequence[str] = ()) -> list[Judged]:
    folder = options.folder / part
    return list(judge_all(folder, _wanted(folder, only), options.processes))


def _wanted(folder: Path, only: Sequence[str]) -> list[dict[str, Any]]:
    wanted = [entry for entry in manifest.entries(folder) if not only or any(entry["program"].startswith(begin) for begin in only)]
    if not wanted:
        raise UsageError("no transfers", where=str(folder), remedy="make some with `make`")
    return wanted


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tcptrace_lab.lab.corpus", description="Transfers at scale.")
    commands = parser.add_subparsers(required=True)
    programs = commands.add_parser("programs", help="list the programs, and which of them are not installed")
    programs.set_defaults(does=_programs)
    make = commands.add_parser("make", help="make transfers (needs root, clang, libbpf and bpftool)")
    make.add_argument("folder", nargs="?", type=Path, default=FOLDER, metavar="FOLDER")
    make.add_argument("-n", "--number", type=int, default=60, metavar="N", help="number of transfers (default: 60)")
    make.add_argument("--first", type=int, default=0, metavar="N", help="number of the first transfer of this seed (default: 0)")
    make.add_argument("--seed", type=int, default=SEED, metavar="N")
    make.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only programs whose names begin with NAME (default: all)")
    make.add_argument(
        "--competing", type=int, default=0, metavar="N", help="let 1 to N other programs use the same bottleneck (default: none)"
    )
    make.add_argument("--at-a-time", type=int, default=AT_A_TIME, metavar="N", help="number of parallel transfers (default: 2)")
    make.set_defaults(does=_make)
    table = commands.add_parser("table", help="count the transfers of each program over each path")
    table.add_argument("folder", nargs="?", type=Path, default=FOLDER, metavar="FOLDER")
    table.set_defaults(does=_table)
    comparison = commands.add_parser("compare", help="compare the judge with the kernel's ledger")
    _compared(comparison)
    comparison.add_argument(
        "--held-back", action="store_true", help="use the held-back part, on which no rules are developed, instead of the development part"
    )
    comparison.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="only programs whose names begin with NAME (default: all)"
    )
    comparison.add_argument(
        "--largest", type=int, default=LARGEST, metavar="N", help=f"number of disagreements to list (default: {LARGEST})"
    )
    comparison.set_defaults(does=_compare)
    promised = commands.add_parser("gains", help="compare the gains that findings predict with the free time of the bottleneck")
    _compared(promised)
    promised.add_argument("--held-back", action="store_true", help="use the held-back part")
    promised.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only programs whose names begin with NAME (default: all)")
    promised.add_argument("--largest", type=int, default=LARGEST, metavar="N", help=f"number of gains to list (default: {LARGEST})")
    promised.set_defaults(does=_gains)
    page = commands.add_parser("calibration", help=f"write the page {calibration.PAGE}: how often the verdict is right at each confidence")
    _compared(page)
    page.add_argument("--page-folder", type=Path, default=CHECKOUT / "docs", metavar="FOLDER", help="where the page goes (default: docs/)")
    page.add_argument("--held-back", action="store_true", help="add the held-back part to the page; it is looked at only once")
    page.set_defaults(does=_calibration)
    broken = commands.add_parser("faults", help="compare the engine with the kernel's ledger on captures with faults")
    _compared(broken)
    broken.add_argument("-n", "--number", type=int, default=60, metavar="N", help="number of transfers, spread evenly (default: 60)")
    broken.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only faults whose names begin with NAME (default: all)")
    broken.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the captures with faults there")
    broken.add_argument(
        "--largest", type=int, default=LARGEST_OF_A_FAULT, metavar="N", help="number of largest errors to list for each fault (default: 3)"
    )
    broken.set_defaults(does=_faults)
    of_families = commands.add_parser("families", help="make transfers whose causes are easily mistaken, and compare them (needs root)")
    of_families.add_argument("folder", type=Path, metavar="FOLDER")
    numbers = list(families.FAMILIES)
    of_families.add_argument("--only", nargs="+", type=int, choices=numbers, default=numbers, metavar="N", help="only these families")
    of_families.add_argument("--at-a-time", type=int, default=AT_A_TIME, metavar="N", help="number of parallel transfers (default: 2)")
    of_families.set_defaults(does=_families)
    return parser.parse_args(arguments)


def _compared(command: argparse.ArgumentParser) -> None:
    """Add the options of a command that judges transfers: their folder, and the number of processes."""
    command.add_argument("folder", nargs="?", type=Path, default=FOLDER, metavar="FOLDER")
    command.add_argument("--processes", type=int, default=AT_A_TIME, metavar="N", help=f"number of processes (default: {AT_A_TIME})")


if __name__ == "__main__":
    sys.exit(main())
