"""Means with intervals: Student's t for any number of degrees of freedom, from the closed form of its distribution."""

from __future__ import annotations

import math
import statistics
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
"""Of all intervals here, as in Abrams and Chen's tables."""

_STEPS = 200
"""Halvings of the angle: more than a float has digits."""


@cache
def quantile(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The t that |T| stays below with this probability, for so many degrees of freedom (1 or more)."""
    low, high = 0.0, math.pi / 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _within(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return math.tan(low) * math.sqrt(degrees)


def _within(angle: float, degrees: int) -> float:
    """P(|T| < tan(angle) · √degrees): Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2 == 1
    term = total = (cosine if degrees > 1 else 0.0) if odd else 1.0
    for step in range(3 if odd else 2, degrees - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean of one or more values, and half the width of its 95 % interval; None for a single value."""
    mean = statistics.fmean(values)
    if len(values) < 2:  # noqa: PLR2004  (one value says nothing about its spread)
        return mean, None
    return mean, quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
