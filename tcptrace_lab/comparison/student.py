"""Means with intervals, and whether two differ: Student's t, Welch's test, Holm's correction.

Own functions of a page: SciPy, which has them too, is larger than all the other libraries of this package together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE_LEVEL = 0.95
"""Of all intervals, and what is left of 1 is the chance at which a difference counts as significant."""

LEAST_SAMPLES = 2
"""Fewer have no spread, and so no interval."""

_FRACTION_TERMS = 500
_FRACTION_ERROR = 1e-15
_TINY = 1e-300
_HALVINGS = 200
_LARGEST_T = 1e12
"""Above the 97.5 % quantile for any degrees of freedom from 0.1 on."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What is kept of some numbers.

    Attributes:
        count: how many there are.
        mean: their mean; None without any.
        variance: with `count − 1` below; None for fewer than two.
        effective_count: as many independent numbers would know the mean as well: fewer where each resembles the one before it.
    """

    count: int
    mean: float | None
    variance: float | None
    effective_count: float

    @property
    def error(self) -> float | None:
        """Standard error of the mean; None for fewer than two numbers."""
        return None if self.variance is None else math.sqrt(self.variance / self.effective_count)

    @property
    def interval(self) -> tuple[float, float] | None:
        """In which the true mean lies, at `CONFIDENCE_LEVEL`; None for fewer than two numbers."""
        if self.mean is None or self.error is None:
            return None
        half = t_quantile((1 + CONFIDENCE_LEVEL) / 2, self.effective_count - 1) * self.error
        return self.mean - half, self.mean + half


@dataclass(frozen=True, slots=True)
class Difference:
    """Of two means: second less first.

    Attributes:
        change: the difference.
        interval: in which the true one lies, at `CONFIDENCE_LEVEL`.
        t: the difference in standard errors; infinite where neither sample has any spread and they differ.
        degrees_of_freedom: by Welch and Satterthwaite.
        p: the chance of a difference as large as this if there is none.
    """

    change: float
    interval: tuple[float, float]
    t: float
    degrees_of_freedom: float
    p: float


def of_numbers(values: Sequence[float]) -> Sample:
    """The sample of independent numbers, such as one for each repetition."""
    count = len(values)
    if not count:
        return Sample(0, None, None, 0.0)
    mean = math.fsum(values) / count
    if count < LEAST_SAMPLES:
        return Sample(count, mean, None, float(count))
    return Sample(count, mean, math.fsum((value - mean) ** 2 for value in values) / (count - 1), float(count))


def welch(first: Sample, second: Sample) -> Difference | None:
    """Welch's test of two means whose spreads may differ (Biometrika 34, 1947); None where a sample has fewer than two numbers."""
    if first.mean is None or second.mean is None or first.variance is None or second.variance is None:
        return None
    change = second.mean - first.mean
    shares = first.variance / first.effective_count, second.variance / second.effective_count
    error = math.sqrt(sum(shares))
    if error == 0:
        return Difference(change, (change, change), math.copysign(math.inf, change) if change else 0.0, math.inf, 0.0 if change else 1.0)
    freedom = sum(shares) ** 2 / sum(
        share**2 / (sample.effective_count - 1) for share, sample in zip(shares, (first, second), strict=True) if share
    )
    half = t_quantile((1 + CONFIDENCE_LEVEL) / 2, freedom) * error
    t = change / error
    return Difference(change, (change - half, change + half), t, freedom, two_sided_p(t, freedom))


def holm(chances: Sequence[float]) -> list[float]:
    """The same chances for tests that were made together, so that one in twenty *families* of tests is wrong, not one test in twenty.

    By Holm (Scandinavian Journal of Statistics 6, 1979): the least is multiplied by their number, the next by one less, and so on.
    """
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    adjusted, least = [0.0] * len(chances), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = least
    return adjusted


def two_sided_p(t: float, freedom: float) -> float:
    """The chance that Student's t is as far from 0 as this, with `freedom` degrees of freedom."""
    if math.isinf(t):
        return 0.0
    if math.isinf(freedom):
        return math.erfc(abs(t) / math.sqrt(2))
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def t_quantile(probability: float, freedom: float) -> float:
    """The value that Student's t stays below with this probability (above a half), with `freedom` degrees of freedom.

    Found by halving: 200 steps from an interval of 10^12 leave nothing to wish for.
    """
    tail = 2 * (1 - probability)
    low, high = 0.0, _LARGEST_T
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if two_sided_p(middle, freedom) > tail else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function I_x(a, b) (NIST Digital Library of Mathematical Functions, 8.17)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Its continued fraction (DLMF 8.17.22), from the front, by Lentz' method (Applied Optics 15, 1976)."""
    value = ratio_above = 1.0
    ratio_below = _not_zero(1 - (a + b) * x / (a + 1))
    ratio_below = 1 / ratio_below
    value = ratio_below
    for term in range(1, _FRACTION_TERMS):
        even = term * (b - term) * x / ((a + 2 * term - 1) * (a + 2 * term))
        odd = -(a + term) * (a + b + term) * x / ((a + 2 * term) * (a + 2 * term + 1))
        for numerator in (even, odd):
            ratio_below = 1 / _not_zero(1 + numerator * ratio_below)
            ratio_above = _not_zero(1 + numerator / ratio_above)
            step = ratio_above * ratio_below
            value *= step
        if abs(step - 1) < _FRACTION_ERROR:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
