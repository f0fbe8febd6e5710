"""Statistics: confidence intervals of means, Student's t, Welch's test, and Holm's correction.

SciPy contains these functions as well. It is larger than all other dependencies of this package together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE_LEVEL = 0.95
"""Confidence level of all intervals. A difference is significant if its adjusted p-value is below 1 minus this level."""

MIN_SAMPLES = 2
"""Minimum number of values for a variance."""

MIN_FOR_INTERVAL = 3
"""Minimum number of values for a confidence interval. With two values, it would be at least nine times as wide as their range."""

_FRACTION_TERMS = 500
_FRACTION_ERROR = 1e-15
_TINY = 1e-300
_HALVINGS = 200
_LARGEST_T = 1e12
"""Upper end of the bisection.

The 97.5% quantile is below it if there are at least 0.12 degrees of freedom, and callers have at least one degree.
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """Summary statistics of a sample.

    Attributes:
        count: number of values.
        mean: mean; None for an empty sample.
        variance: sample variance (divided by `count − 1`); None for fewer than two values.
        effective_count: number of independent values that determine the mean equally well. It is below `count` if neighbours are
            correlated.
    """

    count: int
    mean: float | None
    variance: float | None
    effective_count: float

    @property
    def error(self) -> float | None:
        """Standard error of the mean; None for fewer than two values."""
        return None if self.variance is None else math.sqrt(self.variance / self.effective_count)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Confidence interval of the mean at `CONFIDENCE_LEVEL`; None for fewer than `MIN_FOR_INTERVAL` values."""
        if self.mean is None or self.error is None or self.count < MIN_FOR_INTERVAL:
            return None
        half = t_quantile((1 + CONFIDENCE_LEVEL) / 2, self.effective_count - 1) * self.error
        return self.mean - half, self.mean + half

    @property
    def range_of_two(self) -> tuple[float, float] | None:
        """The smaller and the larger of two values; None for any other number of values."""
        if self.mean is None or self.variance is None or self.count >= MIN_FOR_INTERVAL:
            return None
        half = math.sqrt(self.variance / 2)
        return self.mean - half, self.mean + half


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two means (the second minus the first) and its test.

    Attributes:
        change: the difference.
        interval: its confidence interval at `CONFIDENCE_LEVEL`.
        t: the difference in standard errors; infinite if the means differ and both samples have no variance.
        degrees_of_freedom: degrees of freedom by Welch and Satterthwaite. If one sample is a single value: the degrees of freedom of the
            other sample.
        p: two-sided p-value: the probability of a difference of at least this size if the true means are equal.
    """

    change: float
    interval: tuple[float, float]
    t: float
    degrees_of_freedom: float
    p: float


def of_numbers(values: Sequence[float]) -> Sample:
    """Return the sample of these independent values, such as one value per repetition."""
    count = len(values)
    if not count:
        return Sample(0, None, None, 0.0)
    mean = math.fsum(values) / count
    if count < MIN_SAMPLES:
        return Sample(count, mean, None, float(count))
    return Sample(count, mean, math.fsum((value - mean) ** 2 for value in values) / (count - 1), float(count))


def welch(first: Sample, second: Sample) -> Difference | None:
    """Test two means with possibly different variances (Welch, Biometrika 34, 1947).

    Return None if a sample has fewer than two values.
    """
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
    """Adjust the p-values of a family of tests. The probability of any false positive in the family is then at most 5%.

    Holm's method (Scandinavian Journal of Statistics 6, 1979) multiplies the smallest of n p-values by n, the next by n − 1, and so on.
    An adjusted p-value is never smaller than the one before it.
    """
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    adjusted, least = [0.0] * len(chances), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = least
    return adjusted


def two_sided_p(t: float, freedom: float) -> float:
    """Return the probability that Student's t with `freedom` degrees of freedom is at least as far from 0 as `t`."""
    if math.isinf(t):
        return 0.0
    if math.isinf(freedom):
        return math.erfc(abs(t) / math.sqrt(2))
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t with `freedom` degrees of freedom, for a probability above 0.5.

    The search bisects [0, 10^12] until floats cannot divide the interval further, which takes at most 200 steps.
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
    """Return the regularized incomplete beta function I_x(a, b) (NIST Digital Library of Mathematical Functions, 8.17)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of I_x(a, b) (DLMF 8.17.22), evaluated by Lentz's method (Applied Optics 15, 1976)."""
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
