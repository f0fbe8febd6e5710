"""The judge against the kernel on all transfers of a part, as tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tcptrace_lab.lab.kernel_ledger.agreement import POINTS
from tcptrace_lab.text.numbers import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tcptrace_lab.lab.corpus.judging import Headline, Judged, Key

MOST_LIKELY, POSSIBLY, UNKNOWN = "most likely", "possibly", "unknown"
_GRADES = {"proved": MOST_LIKELY, "consistent": MOST_LIKELY, "possible": POSSIBLY}
COSTS = {(MOST_LIKELY, True): 0.0, (MOST_LIKELY, False): 10.0, (POSSIBLY, True): 0.4, (POSSIBLY, False): 1.9}
UNKNOWN_COST = 1.0
"""What a time costs by how sure the judge was of it, and whether it was right: `most likely` pays from 90 % on against `unknown`."""
MIN_CONFUSED_S = 0.05
"""Less is not printed in the matrix."""


def report(every: Sequence[Judged], largest: int) -> Iterator[str]:
    """The lines of a comparison."""
    judged = [one for one in every if not one.error]
    yield from (f"{one.entry['name']}: {one.error}" for one in every if one.error)
    total = _added(judged)
    yield f"{len(judged)} transfers, {_s(sum(total.values()))} s of data directions at {len(POINTS)} points"
    yield from _scores(total)
    yield from _shares("kernel says", {group: _where(total, group=group) for group in {key.group for key in total}}, total)
    for title, name in (("program", "program"), ("path", "path"), ("congestion control", "congestion_control")):
        values = sorted({one.entry[name] for one in judged})
        yield from _shares(title, {value: _added(one for one in judged if one.entry[name] == value) for value in values}, None)
    yield from _shares("an end is paused", {"paused": _added(one for one in judged if one.entry["paused"])}, None)
    yield from _calibration(total)
    for at in POINTS:
        yield from _matrix(total, at)
    yield from _headlines(judged)
    yield from _disagreements(judged, largest)


def _added(judged: Iterable[Judged]) -> dict[Key, int]:
    total: dict[Key, int] = defaultdict(int)
    for one in judged:
        for key, ns in one.sums.items():
            total[key] += ns
    return total


def _where(sums: Mapping[Key, int], **wanted: str) -> dict[Key, int]:
    """The sums whose keys have these values."""
    return {key: ns for key, ns in sums.items() if all(getattr(key, name) == value for name, value in wanted.items())}


def _ns(sums: Mapping[Key, int], test: Callable[[Key], bool] = lambda _key: True) -> int:
    return sum(ns for key, ns in sums.items() if test(key))


def _s(ns: int) -> str:
    return f"{ns / NS_PER_S:.2f}"


def cost_of(cause: str, confidence: str, *, is_right: bool) -> float:
    """What a second with this answer costs."""
    return UNKNOWN_COST if cause == UNKNOWN else COSTS[_GRADES[confidence], is_right]


def cost(sums: Mapping[Key, int]) -> float:
    """The mean cost of a second; 0 is perfect, 1 is never to say anything."""
    whole = _ns(sums)
    return sum(ns * cost_of(key.cause, key.confidence, is_right=key.is_accepted) for key, ns in sums.items()) / whole if whole else 0.0


def _scores(total: Mapping[Key, int]) -> Iterator[str]:
    yield ""
    yield "| at | s | accepted | exact | strict | unknown | most likely and wrong | proved and wrong | cost of a second |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for at in POINTS:
        sums = _where(total, at=at)
        whole = _ns(sums)
        if not whole:
            continue
        tests: tuple[Callable[[Key], bool], ...] = (
            lambda key: key.is_accepted,
            lambda key: key.is_exact,
            lambda key: key.is_strict,
            lambda key: key.cause == UNKNOWN,
            lambda key: not key.is_accepted and key.cause != UNKNOWN and _GRADES[key.confidence] == MOST_LIKELY,
            lambda key: not key.is_accepted and key.cause != UNKNOWN and key.confidence == "proved",
        )
        shares = [f"{_ns(sums, test) / whole:.1%}" for test in tests]
        yield f"| {at} | {_s(whole)} | {' | '.join(shares)} | {cost(sums):.3f} |"


def _shares(title: str, groups: Mapping[str, Mapping[Key, int]], total: Mapping[Key, int] | None) -> Iterator[str]:
    yield ""
    columns = [f"{at} {what}" for at in POINTS for what in ("s", "accepted", "exact", "cost")]
    yield f"| {title} | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    ordered = sorted(groups.items(), key=lambda item: -_ns(item[1]))
    for name, sums in [*([("all", total)] if total is not None else []), *ordered]:
        yield f"| {name} | {' | '.join(cell for at in POINTS for cell in _cells(_where(sums, at=at)))} |"


def _cells(sums: Mapping[Key, int]) -> list[str]:
    whole = _ns(sums)
    if not whole:
        return ["", "", "", ""]
    shares = (_ns(sums, lambda key: key.is_accepted) / whole, _ns(sums, lambda key: key.is_exact) / whole)
    return [_s(whole), *(f"{share:.1%}" for share in shares), f"{cost(sums):.2f}"]


def _calibration(total: Mapping[Key, int]) -> Iterator[str]:
    """How much of the time with one answer and one confidence is right, by cause, over all capture points."""
    words = ("proved", "consistent", "possible")
    yield ""
    yield f"| the ledger says | {' | '.join(f'{word} s | right' for word in words)} |"
    yield f"|---|{'---:|' * 2 * len(words)}"
    causes = sorted({key.cause for key in total}, key=lambda cause: -_ns(_where(total, cause=cause)))
    for cause in ("all", *causes):
        mine = _where(total, cause=cause) if cause != "all" else {key: ns for key, ns in total.items() if key.cause != UNKNOWN}
        yield f"| {cause} | {' | '.join(cell for word in words for cell in _right(_where(mine, confidence=word)))} |"


def _right(sums: Mapping[Key, int]) -> list[str]:
    whole = _ns(sums)
    return [_s(whole), f"{_ns(sums, lambda key: key.is_accepted) / whole:.1%}"] if whole else ["", ""]


def _matrix(total: Mapping[Key, int], at: str) -> Iterator[str]:
    """Seconds by what the kernel says (lines) and what the ledger says (columns); what is not accepted in brackets."""
    seconds: dict[tuple[str, str], int] = defaultdict(int)
    wrong: dict[tuple[str, str], int] = defaultdict(int)
    for key, ns in total.items():
        if key.at == at:
            seconds[key.exact, key.cause] += ns
            wrong[key.exact, key.cause] += ns * (not key.is_accepted)
    causes = sorted({cause for (_, cause), ns in seconds.items() if ns >= MIN_CONFUSED_S * NS_PER_S})
    yield ""
    yield f"Seconds at the {at}: the kernel's exact cause (lines), the ledger's (columns); in brackets, of these not accepted"
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
    yield "Headlines: the cause that the verdict names, against the kernel's largest of the same direction"
    yield "| at | captures | right | wrong and most likely | wrong and possibly | unknown |"
    yield "|---|---:|---:|---:|---:|---:|"
    for at in (*POINTS, "all"):
        mine = [headline for _, headline in every if at in {headline.at, "all"}]
        if mine:
            counts = Counter(map(_outcome, mine))
            cells = [
                f"{counts[what]} ({counts[what] / len(mine):.0%})"
                for what in ("right", f"wrong, {MOST_LIKELY}", f"wrong, {POSSIBLY}", UNKNOWN)
            ]
            yield f"| {at} | {len(mine)} | {' | '.join(cells)} |"
    wrong = [(one, headline) for one, headline in every if _outcome(headline).startswith("wrong")]
    if wrong:
        yield ""
        yield "| wrong headline | at | named | kernel | sentence |"
        yield "|---|---|---|---|---|"
        for one, headline in sorted(wrong, key=lambda item: (_outcome(item[1]), item[1].said, item[0].entry["name"])):
            how = f"{_GRADES.get(headline.confidence or '', '')}: {headline.said}"
            yield f"| {one.entry['name']} | {headline.at} | {how} | {headline.kernel} | {headline.sentence} |"


def _outcome(headline: Headline) -> str:
    if headline.confidence is None:
        return UNKNOWN
    return "right" if headline.is_right else f"wrong, {_GRADES[headline.confidence]}"


def _disagreements(judged: Sequence[Judged], largest: int) -> Iterator[str]:
    """Confusions by their size: all times in which one transfer's ledger says the same wrong thing, with its longest waits."""
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
