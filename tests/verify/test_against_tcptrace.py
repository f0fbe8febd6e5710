"""Every figure of every connection is compared with the long listing of tcptrace 6.6.7.

The tests compare all captures that tcptrace can read. If a figure differs, either a known computation gives tcptrace's figure
(`tcptrace_rules.printed`), or there is a known reason for the difference. `golden/tcptrace-deviations.tsv` counts the differences with a
reason. A test fails if such a count changes or if a difference is new.

To renew the file: `TCPTRACE_RENEW=1 pytest tests/verify/test_against_tcptrace.py`.
"""

from __future__ import annotations

import csv
import os
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab import schema
from tcptrace_lab.outputs.tcptrace_figures import FIGURES, Direction
from tests.support import engine, needs
from tests.support.captures.real_captures import real
from tests.support.peers import tcptrace, tcptrace_rules
from tests.support.peers.golden import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tcptrace_lab.outputs.tcptrace_figures import Figure

RENEW = os.environ.get("TCPTRACE_RENEW") == "1"

Deviations = dict[str, str]
"""Maps a reason to the figures that differ for it, each with the number of directions."""


def _golden() -> Mapping[str, Deviations]:
    found: dict[str, Deviations] = defaultdict(dict)
    if GOLDEN.exists():
        with GOLDEN.open(encoding="utf-8", newline="") as file:
            for capture, reason, figures in csv.reader(file, delimiter="\t"):
                found[capture][reason] = figures
    return found


def test_there_are_70_figures_and_each_is_made_of_columns() -> None:
    assert len(FIGURES) == len({figure.name for figure in FIGURES}) == 70
    assert {column for figure in FIGURES for column in figure.columns} <= set(schema.DIRECTION_NAMES)


@pytest.mark.parametrize("capture", needs.each(real()))
def test_figures_equal_tcptraces(capture: Path, tmp_path: Path) -> None:
    copy = tcptrace.readable(capture, tmp_path)
    listed = tcptrace.listed(copy) if copy is not None else []
    found = _deviations(engine.read(copy).connections.rows(named=True), listed) if copy is not None and listed else {}
    if RENEW:
        _renew(capture.name, found)
    assert found == _golden().get(capture.name, {})


@needs.shared_captures
def test_golden_deviations_are_of_real_captures() -> None:
    assert set(_golden()) <= {path.name for path in real()}


def _deviations(ours: Sequence[Mapping[str, Any]], theirs: Sequence[tcptrace.Listed]) -> Deviations:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in _pairs(ours, theirs, counts):
        for reason, figure in _differences(pair):
            counts[reason][figure] += 1
    return {
        reason: " ".join(f"{figure}:{count}" for figure, count in sorted(figures.items())) for reason, figures in sorted(counts.items())
    }


Pair = tuple[tuple[Direction, "Mapping[str, str]"], tuple[Direction, "Mapping[str, str]"]]
"""The two directions of a connection. Each has our row and the figures that tcptrace lists."""


def _pairs(ours: Iterable[Mapping[str, Any]], theirs: Iterable[tcptrace.Listed], counts: dict[str, Counter[str]]) -> Iterator[Pair]:
    """Yield pairs of connections between two ends, in order: one connection of tcptrace-lab and one of tcptrace.

    Connections between two ends are left out if the programs find different numbers of them.
    """
    mine: dict[frozenset[tcptrace.End], list[Mapping[str, Any]]] = defaultdict(list)
    for row in ours:
        mine[frozenset([(row["client_addr"], row["client_port"]), (row["server_addr"], row["server_port"])])].append(row)
    others: dict[frozenset[tcptrace.End], list[tcptrace.Listed]] = defaultdict(list)
    for one in theirs:
        others[one.key].append(one)
    for key, listed in others.items():
        if len(listed) != len(mine[key]):
            counts[tcptrace_rules.PARTED]["connections"] += len(listed)
            continue
        for row, one in zip(mine[key], listed, strict=True):
            sides = ("client", "server") if one.ends[0] == (row["client_addr"], row["client_port"]) else ("server", "client")
            first, second = (Direction(row, side) for side in sides)
            yield (first, one.figures[0]), (second, one.figures[1])


def _differences(pair: Pair) -> Iterator[tuple[str, str]]:
    if any(_reads_otherwise(direction, theirs) for direction, theirs in pair):
        yield tcptrace_rules.COPIES if _copies(pair) else tcptrace_rules.READ, "connections"
        return
    for direction, theirs in pair:
        for figure in FIGURES:
            printed = theirs[figure.name]
            if tcptrace_rules.same(figure, direction, printed):
                yield tcptrace_rules.SAME, "figures"
            else:
                yield _reason(direction, figure, printed), figure.name


def _copies(pair: Pair) -> bool:
    """Return whether duplicates explain the difference. Only tcptrace counts duplicates as packets."""
    copies = [direction["capture_duplicates"] + direction["network_duplicates"] for direction, _ in pair]
    return any(copies) and all(
        direction["segments"] + count == int(theirs["total_packets"]) for (direction, theirs), count in zip(pair, copies, strict=True)
    )


def _reads_otherwise(direction: Direction, theirs: Mapping[str, str]) -> bool:
    return any(
        direction[column] != int(theirs[name]) for column, name in (("segments", "total_packets"), ("payload_bytes", "actual_data_bytes"))
    )


def _reason(direction: Direction, figure: Figure, printed: str) -> str:
    return tcptrace_rules.reason(figure, direction, printed) or f"no reason: {figure.text(direction)} {printed}"


def _renew(capture: str, found: Deviations) -> None:
    golden = {**_golden(), capture: found}
    GOLDEN.parent.mkdir(exist_ok=True)
    with GOLDEN.open("w", encoding="utf-8", newline="") as file:
        rows = ((name, reason, figures) for name, reasons in sorted(golden.items()) for reason, figures in reasons.items())
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)
