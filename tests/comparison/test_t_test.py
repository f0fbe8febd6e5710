"""Student's t, Welch's test and Holm's correction equal closed forms, printed tables and calculations by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tcptrace_lab.comparison.run import sample
from tcptrace_lab.comparison.t_test import Sample, holm, of_numbers, t_quantile, two_sided_p, welch

TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 20: 2.086, 29: 2.045, 30: 2.042, 60: 2.000, 120: 1.980}
"""Maps degrees of freedom to the 97.5 % quantile of Student's t, as printed by Fisher and Yates (table III)."""


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_are_those_of_the_printed_table(freedom: int) -> None:
    assert t_quantile(0.975, freedom) == pytest.approx(TABLE[freedom], abs=5.01e-4)


@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.9995])
def test_one_and_two_degrees_of_freedom_have_closed_forms(probability: float) -> None:
    """For one degree of freedom, Student's t distribution is the Cauchy distribution.

    For two degrees of freedom, the quantile of probability p is (2p − 1) √(2 / (4 p (1 − p))).
    """
    assert t_quantile(probability, 1) == pytest.approx(math.tan(math.pi * (probability - 0.5)), rel=1e-12)
    two = (2 * probability - 1) * math.sqrt(2 / (4 * probability * (1 - probability)))
    assert t_quantile(probability, 2) == pytest.approx(two, rel=1e-12)


@pytest.mark.parametrize("t", [0.1, 1.0, 2.5, 12.0])
def test_chances_with_two_and_four_degrees_of_freedom_are_their_closed_forms(t: float) -> None:
    assert two_sided_p(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), rel=1e-10)
    sine = t / math.sqrt(4 + t * t)
    assert two_sided_p(-t, 4) == pytest.approx(1 - sine * (1 + (1 - sine * sine) / 2), rel=1e-9)


def test_quantiles_of_whole_degrees_are_those_of_the_finite_sums() -> None:
    """The probability P(abs(T) < t) is a finite sum, given by Abramowitz and Stegun.

    Their formula 26.7.3 is for an odd number of degrees of freedom, and 26.7.4 is for an even number.
    """
    for freedom in (7, 12):
        angle = math.atan(t_quantile(0.975, freedom) / math.sqrt(freedom))
        sine, cosine = math.sin(angle), math.cos(angle)
        odd = freedom % 2 == 1
        term = total = cosine if odd else 1.0
        for step in range(3 if odd else 2, freedom - 1, 2):
            term *= cosine * cosine * (step - 1) / step
            total += term
        assert (2 / math.pi * (angle + sine * total) if odd else sine * total) == pytest.approx(0.95, rel=1e-12)


def test_many_degrees_of_freedom_are_the_normal_distribution() -> None:
    assert t_quantile(0.975, 1e7) == pytest.approx(1.959964, abs=1e-5)
    assert two_sided_p(1.959964, math.inf) == pytest.approx(0.05, abs=1e-6)


def test_mean_and_interval_of_three_numbers_by_hand() -> None:
    """The numbers 10, 12 and 14 have the mean 12, the variance 4 and the standard error √(4/3). The interval is ± 4.303 standard errors."""
    found = of_numbers([10, 12, 14])
    assert (found.mean, found.variance, found.count) == (12, 4, 3)
    assert found.interval == pytest.approx((12 - 4.3027 * math.sqrt(4 / 3), 12 + 4.3027 * math.sqrt(4 / 3)), abs=1e-3)


def test_two_numbers_have_a_range_and_no_interval() -> None:
    """Two numbers leave one degree of freedom, for which the quantile of t is 12.7.

    For 147 and 697, the interval would be 422 ± 3,490. So only the range is reported.
    """
    found = of_numbers([697, 147])
    assert found.interval is None
    assert found.range_of_two == pytest.approx((147, 697))
    assert of_numbers([7]).range_of_two is of_numbers([1, 2, 3]).range_of_two is None


def test_one_number_has_no_interval_and_none_has_no_mean() -> None:
    assert of_numbers([7]).interval is None
    assert of_numbers([]).mean is None
    assert welch(of_numbers([7]), of_numbers([1, 2, 3])) is None


def test_welch_by_hand() -> None:
    """The samples 1 2 3 and 2 4 6 give t = 2 / √(1/3 + 4/3).

    The number of degrees of freedom is (5/3)² / ((1/3)²/2 + (4/3)²/2).
    """
    found = welch(of_numbers([1, 2, 3]), of_numbers([2, 4, 6]))
    assert found is not None
    assert found.change == 2
    assert found.t == pytest.approx(2 / math.sqrt(5 / 3))
    assert found.degrees_of_freedom == pytest.approx((25 / 9) / (17 / 18))
    assert 0.19 < found.p < 0.25  # in the tables for 2 and 3 degrees of freedom, t = 1.55 lies between 80 % and 90 %


def test_numbers_without_any_spread_differ_for_certain_or_not_at_all() -> None:
    differ, same = welch(of_numbers([1, 1]), of_numbers([2, 2])), welch(of_numbers([1, 1]), of_numbers([1, 1]))
    assert differ is not None
    assert same is not None
    assert (differ.t, differ.p, same.p) == (math.inf, 0.0, 1.0)


def test_five_percent_of_equal_experiments_are_called_different() -> None:
    """Welch's test promises to find 5 % of equal pairs different. The test draws 4,000 random pairs of samples.

    The samples have 5 and 8 numbers, with equal means and different spreads. The result is allowed to differ from 5 % by 3.4 standard
    errors.
    """
    drawn = np.random.default_rng(7)
    pairs = ((drawn.normal(0, 1, 5).tolist(), drawn.normal(0, 3, 8).tolist()) for _ in range(4000))
    called = sum(found.p < 0.05 for first, second in pairs if (found := welch(of_numbers(first), of_numbers(second))) is not None)
    assert called == pytest.approx(200, abs=47)


def test_holm_by_hand() -> None:
    """The products are 0.01 × 3 = 0.03, 0.03 × 2 = 0.06, and 0.04 × 1 = 0.04.

    A corrected p-value must not be smaller than the one before it, so 0.04 becomes 0.06.
    """
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_numbers_that_resemble_the_one_before_count_for_fewer() -> None:
    """A hundred random numbers are drawn, and each of them is repeated ten times.

    Neighbours have a correlation of about 0.9. So the thousand numbers count as about fifty.
    """
    drawn = np.random.default_rng(1).normal(0, 1, 100)
    alike, shuffled = sample(np.repeat(drawn, 10)), sample(np.random.default_rng(2).permutation(np.repeat(drawn, 10)))
    assert alike.mean == pytest.approx(shuffled.mean)
    assert 40 < alike.effective_count < 80
    assert shuffled.effective_count > 850


def test_numbers_that_avoid_the_one_before_count_as_many_as_they_are() -> None:
    assert sample(np.array([1.0, 2.0] * 50)).effective_count == 100
    assert sample(np.array([])) == Sample(0, None, None, 0.0)
