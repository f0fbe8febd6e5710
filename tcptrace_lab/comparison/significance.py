"""Decides whether two groups of captures differ: chooses the samples and the test, and derives the verdict.

The kind of sample decides what can be concluded. With several captures per group, the test predicts what another capture would show. With
one capture per group, the sample consists of its connections or messages, and the test shows only that these two captures differ. With one
value per group, no test is possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tcptrace_lab.comparison.figures import FIGURES, Level
from tcptrace_lab.comparison.t_test import (
    CONFIDENCE_LEVEL,
    MIN_SAMPLES,
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
"""A cause is listed if it takes at least this share of a direction's active time in any group."""


class Verdict(StrEnum):
    """The conclusion about a change."""

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
    """One value against several: Student's t test. It assumes that the single value has the variance of the others."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one figure from the first group to a later group.

    Attributes:
        change: later mean minus first mean; None if one of them is unknown.
        share: the change divided by the first mean; None if this mean is 0, or if the change is unknown.
        tested: the result of the test; None if no test is possible.
        method: the kind of test; None if there is no test.
        p_adjusted: the p-value, adjusted for all tests of this group against the first (Holm); None if there is no test.
        verdict: the conclusion.
    """

    change: float | None
    share: float | None
    tested: Difference | None
    method: Method | None
    p_adjusted: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of a service, or the time of one cause in a service, in all groups.

    Attributes:
        key: index in `FIGURES`, or (sender, cause).
        level: what each value measures; None if no group has two values.
        samples: one sample per group.
        shares: mean time of a cause per group, as a share of the direction's mean active time. For idle time, as a share of the mean
            duration. Empty for figures.
        changes: the change of each later group against the first.
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
    """Compare the figures of each service and test each difference.

    All tests of one group against the first group are one family for Holm's correction.
    """
    untested = [[_figure(lane, place) for place in range(len(FIGURES))] for lane in lanes]
    known = [[one for one in lane if any(sample.count for sample in one.samples)] for lane in untested]
    return _tested(known, lambda key, up: Verdict.WORSE if FIGURES[key].less_is_better == up else Verdict.BETTER)  # type: ignore[index]


def ledger(lanes: Sequence[Lane]) -> list[list[Compared]]:
    """Compare the time of each cause per service, and test each difference, as `figures` does.

    Causes below `WORTH_SHARE` are left out. The client's direction comes first. In each direction, the largest cause comes first.
    """
    untested = [[_cause(lane, (side, cause)) for side in SIDES for cause in CAUSES] for lane in lanes]
    worth = [
        sorted((one for one in lane if any((share or 0) >= WORTH_SHARE for share in one.shares)), key=_most, reverse=True)
        for lane in untested
    ]
    return _tested(worth, lambda _, up: Verdict.MORE if up else Verdict.LESS)


def _most(one: _Untested) -> tuple[bool, float]:
    """Return the sort key, for descending order: the client's direction first, then the largest causes."""
    return one.key[0] == "client", max(sample.mean or 0 for sample in one.samples)  # type: ignore[index]


def _figure(lane: Lane, place: int) -> _Untested:
    level, samples = _sampled(lane, lambda service: service.figures.get(place), FIGURES[place].within)
    return _Untested(place, level, samples, ())


def _cause(lane: Lane, key: tuple[str, str]) -> _Untested:
    level, samples = _sampled(lane, lambda service: service.ledger[key], Level.CONNECTIONS)
    times = [_mean([_shared_ns(service, key) for service in group if service is not None]) for group in lane.services]
    shares = tuple(None if sample.mean is None or not time else sample.mean / time for sample, time in zip(samples, times, strict=True))
    return _Untested(key, level, samples, shares)


def _shared_ns(service: Service, key: tuple[str, str]) -> float:
    """Return the time to which a cause's share refers: the direction's active time. For idle time, it is the whole duration."""
    side, cause = key
    return service.life_ns if cause == "idle" else service.life_ns - (service.ledger[side, "idle"].mean or 0.0)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _sampled(lane: Lane, taken: Callable[[Service], Sample | None], within: Level) -> tuple[Level | None, tuple[Sample, ...]]:
    """Return the level, and the sample of each group.

    If any group has several captures, each sample has one mean per capture. Otherwise, it has the values of the group's only capture.
    """
    found = [[own for service in group if service is not None and (own := taken(service)) is not None] for group in lane.services]
    if any(len(group) >= MIN_SAMPLES for group in lane.services):
        return Level.CAPTURES, tuple(of_numbers([own.mean for own in group if own.mean is not None]) for group in found)
    samples = tuple(group[0] if group else of_numbers(()) for group in found)
    return within if any(sample.count >= MIN_SAMPLES for sample in samples) else None, samples


def _tested(lanes: Sequence[Sequence[_Untested]], verdict_of: Callable[[int | tuple[str, str], bool], Verdict]) -> list[list[Compared]]:
    """Compare every later group with the first, and test each difference.

    Holm's method corrects the p-values of each group for the number of its tests.
    """
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
            tuple(_change(one, group + 1, *results[group][place], adjusted[group].get(place), verdict_of) for group in range(groups - 1)),
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
    verdict_of: Callable[[int | tuple[str, str], bool], Verdict],
) -> Change:
    first, later = one.samples[0].mean, one.samples[group].mean
    change = None if first is None or later is None else later - first
    if change is None or p_adjusted is None:
        verdict = Verdict.SAME if _without_spread(one.samples[0], one.samples[group]) and change == 0 else Verdict.UNKNOWN
    elif p_adjusted >= 1 - CONFIDENCE_LEVEL:
        verdict = Verdict.NONE_SHOWN
    else:
        verdict = verdict_of(one.key, change > 0)
    return Change(change, change / first if change is not None and first else None, tested, method, p_adjusted, verdict)


def _without_spread(first: Sample, second: Sample) -> bool:
    return first.variance == second.variance == 0


def _difference(first: Sample, second: Sample) -> tuple[Difference | None, Method | None]:
    """Return the result and the method of the test; None if no test is possible, or if all values of both samples are equal."""
    if _without_spread(first, second) and first.mean == second.mean:
        return None, None
    tested = welch(first, second)
    if tested is not None:
        return tested, Method.WELCH
    tested = _one_against_several(first, second)
    return tested, Method.POOLED if tested is not None else None


def _one_against_several(first: Sample, second: Sample) -> Difference | None:
    """Test a single value against a sample with Student's t. The test assumes that the single value has the variance of the sample."""
    several, single = (first, second) if first.variance is not None else (second, first)
    if several.variance is None or single.count != 1 or first.mean is None or second.mean is None:
        return None
    change, freedom = second.mean - first.mean, several.effective_count - 1
    error = math.sqrt(several.variance * (1 + 1 / several.effective_count))
    if error == 0:
        return Difference(change, (change, change), math.copysign(math.inf, change) if change else 0.0, freedom, 0.0 if change else 1.0)
    half = t_quantile((1 + CONFIDENCE_LEVEL) / 2, freedom) * error
    return Difference(change, (change - half, change + half), change / error, freedom, two_sided_p(change / error, freedom))
