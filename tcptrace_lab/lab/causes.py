"""Performs transfers with known causes of waiting, and prints which share of the waiting time the ledger assigns to these causes.

    python -m tcptrace_lab.lab.causes [NAME…] [--drawn N --seed S [--several]] [-o DIR]

The output has one line per connection and capture point. Needs root and dumpcap, like all experiments.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.lab.known_causes import sharing, transfers
from tcptrace_lab.lab.known_causes.scoring import judge, late_ns, make
from tcptrace_lab.text.numbers import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tcptrace_lab.lab.known_causes.scoring import Known, Verdict

EVERY = {**transfers.TRANSFERS, **sharing.SHARED}
"""All fixed transfers: the transfers with one connection, then those with several."""

SAID = 0.005
"""Smallest share of the time for which a cause is printed."""

LATE_NS = 3_000_000
"""If a packet takes longer than the fastest packet by more than this, the machine was too busy.

The relay itself adds less delay, even to a flight of 320 segments (measured).
"""


def main(arguments: list[str] | None = None) -> int:
    """Perform transfers and print the ledger's results. Return 1 if the ledger is wrong about any transfer, else 0."""
    options = _parse(arguments)
    draw = sharing.drawn if options.several else transfers.drawn
    asked: Iterable[tuple[str, Known]] = draw(options.seed, options.drawn) if options.drawn else EVERY.items()
    lines = holding = 0
    print("| transfer | at | truth | ledger | of the known | most beyond | verdict |\n|---|---|---|---|---|---|---|")  # noqa: T201
    for number, (name, known) in enumerate(asked):
        if options.names and not any(name.startswith(begin) for begin in options.names):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) if options.output is None else options.output / f"{number + 1:03}"
            folder.mkdir(parents=True, exist_ok=True)
            outcome = make(known, folder)
            late = late_ns(known, outcome) or 0
            for conn, vantage in product(range(len(known.dues)), outcome.captures):
                verdict = judge(known, outcome, vantage, conn)
                lines, holding = lines + 1, holding + verdict.holds
                which = f"{number + 1}. {name}" + (f" ({conn + 1})" if known.beside else "")
                print(_line(which, vantage, verdict, late), flush=True)  # noqa: T201
    print(f"\n{holding} of {lines} lines hold.")  # noqa: T201
    return int(holding < lines)


def _line(name: str, vantage: str, verdict: Verdict, late: int) -> str:
    other, share = verdict.worst_other
    fails = f"FAILS (path up to {late / NS_PER_MS:.0f} ms late)" if late >= LATE_NS else "FAILS"
    cells = (
        name,
        vantage,
        _shares({state: share for state, share in verdict.truth.items() if state}),
        _shares(verdict.found),
        f"{verdict.least:.0%}",
        f"{other} {share:.1%}" if share >= SAID else "",
        "holds" if verdict.holds else fails,
    )
    return f"| {' | '.join(cells)} |"


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{what} {share:.0%}" for what, share in sorted(shares.items(), key=lambda item: -item[1]) if share >= SAID)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tcptrace_lab.lab.causes", description="Compare the ledger with transfers whose causes are known."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only transfers whose names begin with NAME (default: all)")
    parser.add_argument(
        "--drawn", type=int, default=0, metavar="N", help="run N random transfers of the same kinds instead of the fixed transfers"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="random seed (default: 1)")
    parser.add_argument("--several", action="store_true", help="draw transfers with several concurrent connections")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder in which the captures remain")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
