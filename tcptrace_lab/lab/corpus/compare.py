"""Tables that compare the causes found by the engine with those of the kernel, over all transfers of one part of the corpus."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tcptrace_lab.lab.corpus.calibration import by_cause as calibration_by_cause
from tcptrace_lab.lab.corpus.sums import MOST_LIKELY, POSSIBLY, UNKNOWN, added, cost, is_sure, is_sure_and_wrong, ns_of, where
from tcptrace_lab.lab.kernel_ledger.agreement import POINTS
from tcptrace_lab.text.numbers import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tcptrace_lab.lab.corpus.judging import Headline, Judged, Key

MIN_CONFUSED_S = 0.05
"""Smallest value, in seconds, in the matrix."""


def report(every: Sequence[Judged], largest: int) -> Iterator[str]:
    """Yield the lines of a report that compares the engine with the kernel."""
    judged = [one for one in every if not one.error]
    yield from (f"{one.entry['name']}: {one.error}" for one in every if one.error)
    total = added(judged)
    yield f"{len(judged)} transfers, {_s(sum(total.values()))} s of data directions at {len(POINTS)} points"
    yield from _scores(total)
    yield from _shares("kernel says", {group: where(total, group=group) for group in {key.group for key in total}}, total)
    for title, name in (("program", "program"), ("path", "path"), ("congestion control", "congestion_control")):
        values = sorted({one.entry[name] for one in judged})
        yield from _shares(title, {value: added(one for one in judged if one.entry[name] == value) for value in values}, None)
    yield from _shares("an end is paused", {"paused": added(one for one in judged if one.entry["paused"])}, None)
    yield ""
    yield from calibration_by_cause(total)
    for at in POINTS:
        yield from _matrix(total, at)
    yield from _headlines(judged)
    yield from _disagreements(judged, largest)


def _s(ns: int) -> str:
    return f"{ns / NS_PER_S:.2f}"


def _scores(total: Mapping[Key, int]) -> Iterator[str]:
    yield ""
    yield "| at | s | accepted | exact | strict | unknown | most likely and wrong | proved and wrong | cost of a second |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for at in POINTS:
        sums = where(total, at=at)
        whole = ns_of(sums)
        if not whole:
            continue
        tests: tuple[Callable[[Key], bool], ...] = (
            lambda key: key.is_accepted,
            lambda key: key.is_exact,
            lambda key: key.is_strict,
            lambda key: key.cause == UNKNOWN,
            is_sure_and_wrong,
            lambda key: not key.is_accepted and key.cause != UNKNOWN and key.confidence == "proved",
        )
        shares = [f"{ns_of(sums, test) / whole:.1%}" for test in tests]
        yield f"| {at} | {_s(whole)} | {' | '.join(shares)} | {cost(sums):.3f} |"


def _shares(title: str, groups: Mapping[str, Mapping[Key, int]], total: Mapping[Key, int] | None) -> Iterator[str]:
    yield ""
    columns = [f"{at} {what}" for at in POINTS for what in ("s", "accepted", "exact", "cost")]
    yield f"| {title} | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    ordered = sorted(groups.items(), key=lambda item: -ns_of(item[1]))
    for name, sums in [*([("all", total)] if total is not None else []), *ordered]:
        yield f"| {name} | {' | '.join(cell for at in POINTS for cell in _cells(where(sums, at=at)))} |"


def _cells(sums: Mapping[Key, int]) -> list[str]:
    whole = ns_of(sums)
    if not whole:
        return ["", "", "", ""]
    shares = (ns_of(sums, lambda key: key.is_accepted) / whole, ns_of(sums, lambda key: key.is_exact) / whole)
    return [_s(whole), *(f"{share:.1%}" for share in shares), f"{cost(sums):.2f}"]


def _matrix(total: Mapping[Key, int], at: str) -> Iterator[str]:
    """Yield a matrix of seconds: one row for each cause of the kernel, and one column for each cause of the ledger.

    The number in brackets is the time for which the kernel rejects the ledger's cause.
    """
    seconds: dict[tuple[str, str], int] = defaultdict(int)
    wrong: dict[tuple[str, str], int] = defaultdict(int)
    for key, ns in total.items():
        if key.at == at:
            seconds[key.exact, key.cause] += ns
            wrong[key.exact, key.cause] += ns * (not key.is_accepted)
    causes = sorted({cause for (_, cause), ns in seconds.items() if ns >= MIN_CONFUSED_S * NS_PER_S})
    yield ""
    yield f"Seconds at the {at}: the kernel's exact cause (lines), the ledger's cause (columns); in brackets: seconds not accepted"
    yield f"| kernel | {' | '.join(causes)} |"
    yield f"|---|{'---:|' * len(causes)}"
    lines = {exact: sum(ns for (one, _), ns in seconds.items() if one == exact) for exact, _ in list(seconds)}
    for exact, ns in sorted(lines.items(), key=lambda item: -item[1]):
        if ns >= MIN_CONFUSED_S * NS_PER_S:
            yield f"| {exact} | {' | '.join(_confused(seconds[exact, cause], wrong[exact, cause]) for cause in causes)} |"


def _confused(ns: int, wrong_ns: int) -> str:
    if ns < MIN_CONFUSED_S * NS_PER_S:
        return ""
    return _s(ns) + (f" [{_s(wrong_ns)}]" if wrong_ns >= MIN_CONFUSED_S * NS_PER_S else "")


def _headlines(judged: Sequence[Judged]) -> Iterator[str]:
    every = [(one, headline) for one in judged for headline in one.headlines]
    yield ""
    yield "Headlines: the cause that the verdict names, against the kernel's largest cause of the same direction"
    yield "| at | captures | right | wrong and most likely | wrong and possibly | unknown |"
    yield "|---|---:|---:|---:|---:|---:|"
    for at in (*POINTS, "all"):
        mine = [headline for _, headline in every if at in {headline.at, "all"}]
        if mine:
            counts = Counter(map(outcome, mine))
            cells = [
                f"{counts[what]} ({counts[what] / len(mine):.0%})"
                for what in ("right", f"wrong, {MOST_LIKELY}", f"wrong, {POSSIBLY}", UNKNOWN)
            ]
            yield f"| {at} | {len(mine)} | {' | '.join(cells)} |"
    wrong = [(one, headline) for one, headline in every if outcome(headline).startswith("wrong")]
    if wrong:
        yield ""
        yield "| wrong headline | at | named | kernel | sentence |"
        yield "|---|---|---|---|---|"
        for one, headline in sorted(wrong, key=lambda item: (outcome(item[1]), item[1].said, item[0].entry["name"])):
            how = f"{MOST_LIKELY if is_sure(headline.confidence or '') else POSSIBLY}: {headline.said}"
            yield f"| {one.entry['name']} | {headline.at} | {how} | {headline.kernel} | {headline.sentence} |"


def outcome(headline: Headline) -> str:
    """Return whether a headline is right, in the words of the tables."""
    if headline.confidence is None:
        return UNKNOWN
    return "right" if headline.is_right else f"wrong, {MOST_LIKELY if is_sure(headline.confidence) else POSSIBLY}"


def _disagreements(judged: Sequence[Judged], largest: int) -> Iterator[str]:
    """Yield the largest confusions, with their longest waits.

    A confusion consists of a transfer, the kernel's gates, and a wrong cause in the ledger. The size of a confusion is the total time of
    the waits with the wrong cause.
    """
    wrong = [(ns, one, key) for one in judged for key, ns in one.sums.items() if not key.is_accepted]
    yield ""
    yield f"The {largest} largest disagreements"
    yield "| transfer | path | at | kernel: opened last (also closed) | ledger | s | longest: frames (ms) |"
    yield "|---|---|---|---|---|---:|---|"
    for ns, one, key in sorted(wrong, key=lambda item: -item[0])[:largest]:
        waits = ", ".join(
            f"{wait.conn + 1}: {wait.frame_before or '…'}–{wait.frame_after or '…'} ({wait.ns / NS_PER_MS:.1f})" for wait in one.waits[key]
        )
        path = f"{one.entry['path']}, {one.entry['congestion_control']}"
        yield f"| {one.entry['name']} | {path} | {key.at} | {key.gates} | {key.cause} ({key.confidence}) | {_s(ns)} | {waits} |"
