"""Whether two groups of captures differ: which numbers are held against each other, by which test, and what that allows to say.

What is sampled decides what can be told. Several captures of each group tell what the next capture would show; the connections or messages
of one capture each tell only that these two captures differ. One number of each tells nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tcptrace_lab.comparison.figures import FIGURES, Level
from tcptrace_lab.comparison.student import (
    CONFIDENCE_LEVEL,
    LEAST_SAMPLES,
    Difference,
    Sample,
    holm,
    of_numbers,
    t_quantile,
    two_sided_p,
    welch,
)
from tcptrace_lab.schema import CAUSES, SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcptrace_lab.comparison.match import Lane
    from tcptrace_lab.comparison.run import Service

WORTH_SHARE = 0.01
"""A cause with less of a direction's life in every group is not told."""


class Verdict(StrEnum):
    """What can be said of a change."""

    BETTER = "better"
    WORSE = "worse"
    MORE = "more"
    LESS = "less"
    SAME = "same"
    NONE_SHOWN = "none-shown"
    UNKNOWN = "unknown"


class Method(StrEnum):
    """How a difference was tested."""

    WELCH = "welch"
    POOLED = "pooled"
    """One number against several: Student's test with the spread of the several, which must be that of the one, too."""


@dataclass(frozen=True, slots=True)
class Change:
    """A group against the first one.

    Attributes:
        change: the later mean less the first one; None where either is not known.
        share: that as a share of the first mean; None where that is 0, too.
        tested: the test's result; None where there is nothing to test.
        method: which one.
        p_adjusted: its chance, among all the tests of the same comparison (Holm).
        verdict: what can be said.
    """

    change: float | None
    share: float | None
    tested: Difference | None
    method: Method | None
    p_adjusted: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure, or one cause of the ledger, of one service.

    Attributes:
        key: place in `FIGURES`, or the sender's side and the cause.
        level: what was sampled; None where no group has two numbers.
        samples: of each group.
        shares: of each group's mean life of a connection, for causes; else empty.
        changes: of each group but the first.
    """

    key: int | tuple[str, str]
    level: Level | None
    samples: tuple[Sample, ...]
    shares: tuple[float | None, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class _Untested:
    key: int | tuple[str, str]
    level: Level | None
    samples: tuple[Sample, ...]
    shares: tuple[float | None, ...]


def figures(lanes: Sequence[Lane]) -> list[list[Compared]]:
    """The figures of each service; tests against one group are one family."""
    untested = [[_figure(lane, place) for place in range(len(FIGURES))] for lane in lanes]
    known = [[one for one in lane if any(sample.count for sample in one.samples)] for lane in untested]
    return _tested(known, lambda key, up: Verdict.WORSE if FIGURES[key].less_is_better == up else Verdict.BETTER)  # type: ignore[index]


def ledger(lanes: Sequence[Lane]) -> list[list[Compared]]:
    """The causes of each service that are worth a word, those with most time first; likewise."""
    untested = [[_cause(lane, (side, cause)) for side in SIDES for cause in CAUSES] for lane in lanes]
    worth = [
        sorted((one for one in lane if any((share or 0) >= WORTH_SHARE for share in one.shares)), key=_most, reverse=True)
        for lane in untested
    ]
    return _tested(worth, lambda _, up: Verdict.MORE if up else Verdict.LESS)


def _most(one: _Untested) -> tuple[bool, float]:
    """The client's direction first, the larger causes first."""
    return one.key[0] == "client", max(sample.mean or 0 for sample in one.samples)  # type: ignore[index]


def _figure(lane: Lane, place: int) -> _Untested:
    level, samples = _sampled(lane, lambda service: service.figures.get(place), FIGURES[place].within)
    return _Untested(place, level, samples, ())


def _cause(lane: Lane, key: tuple[str, str]) -> _Untested:
    level, samples = _sampled(lane, lambda service: service.ledger[key], Level.CONNECTIONS)
    lives = [_mean([service.life_ns for service in group if service is not None]) for group in lane.services]
    shares = tuple(None if sample.mean is None or not life else sample.mean / life for sample, life in zip(samples, lives, strict=True))
    return _Untested(key, level, samples, shares)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _sampled(lane: Lane, taken: Callable[[Service], Sample | None], within: Level) -> tuple[Level | None, tuple[Sample, ...]]:
    """What each group's numbers are: one of each capture where a group has several captures, else what its only capture holds."""
    found = [[own for service in group if service is not None and (own := taken(service)) is not None] for group in lane.services]
    if any(len(group) >= LEAST_SAMPLES for group in lane.services):
        return Level.CAPTURES, tuple(of_numbers([own.mean for own in group if own.mean is not None]) for group in found)
    samples = tuple(group[0] if group else of_numbers(()) for group in found)
    return within if any(sample.count >= LEAST_SAMPLES for sample in samples) else None, samples


def _tested(lanes: Sequence[Sequence[_Untested]], told: Callable[[int | tuple[str, str], bool], Verdict]) -> list[list[Compared]]:
    """Every group tested against the first, the tests of a group corrected for how many there are."""
    flat = [one for lane in lanes for one in lane]
    groups = len(flat[0].samples) if flat else 0
    results = [[_difference(one.samples[0], one.samples[group]) for one in flat] for group in range(1, groups)]
    adjusted = []
    for column in results:
        made = [place for place, (tested, _) in enumerate(column) if tested is not None]
        chances = holm([tested.p for place in made if (tested := column[place][0]) is not None])
        adjusted.append(dict(zip(made, chances, strict=True)))
    compared = iter(
        Compared(
            one.key,
            one.level,
            one.samples,
            one.shares,
            tuple(_change(one, group + 1, *results[group][place], adjusted[group].get(place), told) for group in range(groups - 1)),
        )
        for place, one in enumerate(flat)
    )
    return [[next(compared) for _ in lane] for lane in lanes]


def _change(
    one: _Untested,
    group: int,
    tested: Difference | None,
    method: Method | None,
    p_adjusted: float | None,
    told: Callable[[int | tuple[str, str], bool], Verdict],
) -> Change:
    first, later = one.samples[0].mean, one.samples[group].mean
    change = None if first is None or later is None else later - first
    if change is None or p_adjusted is None:
        verdict = Verdict.SAME if _without_spread(one.samples[0], one.samples[group]) and change == 0 else Verdict.UNKNOWN
    elif p_adjusted >= 1 - CONFIDENCE_LEVEL:
        verdict = Verdict.NONE_SHOWN
    else:
        verdict = told(one.key, change > 0)
    return Change(change, change / first if change is not None and first else None, tested, method, p_adjusted, verdict)


def _without_spread(first: Sample, second: Sample) -> bool:
    return first.variance == second.variance == 0


def _difference(first: Sample, second: Sample) -> tuple[Difference | None, Method | None]:
    """The test and its name; none where all numbers of both are the same, which is nothing to test."""
    if _without_spread(first, second) and first.mean == second.mean:
        return None, None
    tested = welch(first, second)
    if tested is not None:
        return tested, Method.WELCH
    tested = _one_against_several(first, second)
    return tested, Method.POOLED if tested is not None else None


def _one_against_several(first: Sample, second: Sample) -> Difference | None:
    """Student's test where one sample is a single number: with the spread of the other, taken for its own."""
    several, single = (first, second) if first.variance is not None else (second, first)
    if several.variance is None or single.count != 1 or first.mean is None or second.mean is None:
        return None
    change, freedom = second.mean - first.mean, several.effective_count - 1
    error = math.sqrt(several.variance * (1 + 1 / several.effective_count))
    if error == 0:
        return Difference(change, (change, change), math.copysign(math.inf, change) if change else 0.0, freedom, 0.0 if change else 1.0)
    half = t_quantile((1 + CONFIDENCE_LEVEL) / 2, freedom) * error
    return Difference(change, (change - half, change + half), change / error, freedom, two_sided_p(change / error, freedom))
