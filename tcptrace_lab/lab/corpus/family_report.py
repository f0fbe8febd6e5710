"""Makes the transfers of `families`, and compares them with the kernel's ledger: one line for each transfer and capture point."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tcptrace_lab.analysis import analyze
from tcptrace_lab.lab.corpus import gains, making, manifest
from tcptrace_lab.lab.corpus.compare import outcome
from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT
from tcptrace_lab.lab.corpus.families import FAMILIES, of_families
from tcptrace_lab.lab.corpus.judging import judge_all, points
from tcptrace_lab.lab.corpus.sums import is_sure_and_wrong, ns_of, where
from tcptrace_lab.lab.kernel_ledger.agreement import capture_of
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from tcptrace_lab.lab.corpus.gains import Gain
    from tcptrace_lab.lab.corpus.judging import Judged, Key

SHOWN = 3
"""Number of causes in a line. The largest causes are shown."""
HEADER = (
    "| family | program | at | kernel (s) | headline | tcptrace-lab | accepted | strict | sure and wrong | result |",
    "|---:|---|---|---|---|---|---:|---:|---:|---|",
)


def report(numbers: Sequence[int], folder: Path, at_a_time: int) -> Iterator[str]:
    """Make the missing transfers of these families. Yield a line about each transfer at each of the family's capture points."""
    wanted = of_families(numbers)
    yield from making.make([one for _, one in wanted], folder, at_a_time)
    part = folder / DEVELOPMENT
    entries = {entry["name"]: entry for entry in manifest.entries(part)}
    there = [(FAMILIES[number], number, entries[one.name]) for number, one in wanted if one.name in entries]
    of_lines = [entry for family, _, entry in there if family.has_gains]
    promised = gains.gains(part, of_lines, at_a_time) if of_lines else []
    yield from HEADER
    for (family, number, entry), judged in zip(there, judge_all(part, [entry for *_, entry in there], at_a_time), strict=True):
        found = tuple(wrong_findings(part / entry["name"], entry, family.never))
        for at in family.points:
            yield line(number, judged, at, [*wrong_gains(promised, entry["name"], at), *found])


def wrong_findings(transfer: Path, entry: dict[str, Any], never: Collection[str]) -> Iterator[str]:
    """Yield the findings in the captures of this transfer that `Family.never` excludes."""
    for name in [name for name, _ in points(entry)] if never else ():
        for one in analyze(capture_of(transfer, name)).findings:
            if any(words in f"{one.id} {one.title}" for words in never):
                yield f"{name}: {one.title}"


def wrong_gains(promised: Sequence[Gain], transfer: str, at: str) -> Iterator[str]:
    """Yield the predicted gains of a transfer at a capture point that differ too much from the possible gains."""
    for one in promised:
        if (one.transfer, one.at) == (transfer, at) and max(one.excess_ns, one.missing_ns) >= gains.NOTICED * one.active_ns:
            possible_ns = min(one.cost_ns, one.free_ns)
            yield f"{one.finding} would save {one.gain_ns / NS_PER_S:.2f} s, and {possible_ns / NS_PER_S:.2f} s are possible"


def line(number: int, judged: Judged, at: str, wrong: Sequence[str] = ()) -> str:
    """Return a line of the table. `wrong` are findings that contradict what is known about this transfer."""
    sums = where(judged.sums, at=at)
    whole_ns = ns_of(sums)
    if judged.error or not whole_ns:
        return f"| {number} | {judged.entry['program']} | {at} | {judged.error or 'no data'} |"
    kernel = (f"{cause} {ns / NS_PER_S:.2f}" for cause, ns in _largest(sums, "exact"))
    ledger = (f"{cause} {ns / whole_ns:.0%}" for cause, ns in _largest(sums, "cause"))
    tests: tuple[Callable[[Key], bool], ...] = (lambda key: key.is_accepted, lambda key: key.is_strict, is_sure_and_wrong)
    shares = [f"{ns_of(sums, test) / whole_ns:.0%}" for test in tests]
    mine = [headline for headline in judged.headlines if headline.at == at]
    headlines = "; ".join(f"{headline.said} ({headline.confidence})" for headline in mine)
    results = "; ".join([*map(outcome, mine), *wrong]) or "no headline"
    cells = [number, judged.entry["program"], at, ", ".join(kernel), headlines, ", ".join(ledger), *shares, results]
    return f"| {' | '.join(map(str, cells))} |"


def _largest(sums: Mapping[Key, int], name: str) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for key, ns in sums.items():
        counts[getattr(key, name)] += ns
    return counts.most_common(SHOWN)
