"""What became slower since another archive: transfers between the same hosts, then and now, by ranks.

For each pair of hosts, way and figure the two sets of values are compared by the Mann-Whitney test (normal approximation with ties), and
the ratio is the Hodges-Lehmann estimate, the median of all ratios of a new and an old value. Some of many comparisons differ by chance:
those are told whose share of false alarms is at most 5 % (Benjamini and Hochberg 1995) and whose ratio is worth a line. Captures that are
in both archives are left out of the new one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcptrace_lab.archive.dataset import query
from tcptrace_lab.archive.index.outliers import METRICS
from tcptrace_lab.archive.index.transfers import PAIR, transfers
from tcptrace_lab.findings.finding import Severity, severity_of
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

LEAST = 5
"""Transfers on each side below which nothing is said: five and five can at best differ with a chance of 0.8 %."""

FALSE_ALARMS = 0.05

LEAST_RATIO = 1.1
"""Slower by less is not worth a line (a heuristic)."""

MOST_VALUES = 1_000
"""Values of one side that are compared, evenly many of all in order of time: a million ratios."""


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of the transfers between two hosts that became worse.

    Attributes:
        client, server, port: between whom.
        from_client: the direction.
        metric: a key of `outliers.METRICS`.
        before, now: medians.
        n_before, n_now: how many values.
        ratio: how much worse, above 1.
        p: the chance of such a difference where there is none.
    """

    client: str
    server: str
    port: int
    from_client: bool
    metric: str
    before: float
    now: float
    n_before: int
    n_now: int
    ratio: float
    p: float

    @property
    def severity(self) -> Severity:
        """By the share of the time now that was not spent before."""
        return severity_of(1 - 1 / self.ratio)

    @property
    def words(self) -> str:
        """In one line."""
        said = numbers.rate if self.metric == "rate_bps" else lambda value: numbers.duration(round(value))
        way = f"{self.client} → {self.server}:{self.port}" if self.from_client else f"{self.server}:{self.port} → {self.client}"
        name, bad = METRICS[self.metric]
        verb = "lower" if bad < 0 else "longer"
        return (
            f"{way}: {name} {self.ratio:.3g} times {verb}: {said(self.before)} (n = {self.n_before}) before, "
            f"{said(self.now)} (n = {self.n_now}) now; {self.severity}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison of two archives found.

    Attributes:
        baseline: the other archive.
        changes: what became worse, the worst first.
        compared: pairs, ways and figures that had enough values.
        too_few: those that had values on both sides, and too few.
    """

    baseline: str
    changes: tuple[Change, ...]
    compared: int
    too_few: int

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst change; None without any."""
        return max((change.severity for change in self.changes), default=None)

    @property
    def words(self) -> str:
        """How much was compared, in one line."""
        some = (
            f"{len(self.changes):,} of {self.compared:,} figures became slower than in {self.baseline}"
            if self.compared
            else "nothing can be compared"
        )
        return some + (f"; {self.too_few:,} more have fewer than {LEAST} transfers in one of the archives" if self.too_few else "")


def compare(now: Mapping[str, pl.LazyFrame], baseline: str) -> Comparison:
    """Compare an archive with another.

    Args:
        now: tables of the archive (`query.opened`).
        baseline: the other archive.

    Raises:
        UsageError: that is no archive.
    """
    with query.opened(baseline) as tables:
        old = transfers(tables).collect()
        known = tables["captures"].select("capture").collect()["capture"]
    new = transfers(now).filter(~pl.col("capture").is_in(known.to_list())).collect()
    found: list[Change] = []
    compared = too_few = 0
    for key, metric, before, after in _both(old, new):
        if min(len(before), len(after)) < LEAST:
            too_few += 1
            continue
        compared += 1
        found.append(_change(key, metric, before, after))
    return Comparison(baseline, _told(found), compared, too_few)


def _both(old: pl.DataFrame, new: pl.DataFrame) -> Iterator[tuple[tuple[Any, ...], str, NDArray[np.float64], NDArray[np.float64]]]:
    """Pair and way, figure, and the values before and now, where there are any on both sides."""
    kind = [*PAIR, "from_client"]
    for metric in METRICS:
        sides = [
            frame.filter(pl.col(metric) > 0).sort("first_ts_ns", "capture", "conn").group_by(kind).agg(pl.col(metric).cast(pl.Float64))
            for frame in (old, new)
        ]
        joined = sides[0].join(sides[1], on=kind, suffix="_now").sort(kind)
        for *key, before, after in joined.iter_rows():
            yield tuple(key), metric, np.asarray(before), np.asarray(after)


def _change(key: tuple[Any, ...], metric: str, before: NDArray[np.float64], after: NDArray[np.float64]) -> Change:
    _, bad = METRICS[metric]
    old, new = (bad * np.log(_thinned(values)) for values in (before, after))  # larger is worse
    ratio = math.exp(float(np.median(new[:, None] - old[None, :])))
    medians = float(np.median(before)), float(np.median(after))
    client, server, port, from_client = key
    return Change(client, server, port, from_client, metric, *medians, len(before), len(after), ratio, p_value(old, new))


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(values) <= MOST_VALUES:
        return values
    thinned: NDArray[np.float64] = values[np.linspace(0, len(values) - 1, MOST_VALUES).round().astype(int)]
    return thinned


def p_value(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    """Two-sided, of the Mann-Whitney test: normal approximation with continuity and ties corrected."""
    n, m = len(old), len(new)
    values, counts = np.unique(np.concatenate([old, new]), return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = float(ranks[np.searchsorted(values, new)].sum())
    u = rank_sum - m * (m + 1) / 2
    ties = float((counts**3 - counts).sum()) / ((n + m) * (n + m - 1))
    deviation = math.sqrt(n * m / 12 * (n + m + 1 - ties))
    if deviation == 0:
        return 1.0
    z = max(abs(u - n * m / 2) - 0.5, 0.0) / deviation
    return math.erfc(z / math.sqrt(2))


def _told(found: list[Change]) -> tuple[Change, ...]:
    """Those that are no chance, and worse by enough; the worst first."""
    ordered = sorted(found, key=lambda change: change.p)
    last = max((place for place, change in enumerate(ordered) if change.p <= FALSE_ALARMS * (place + 1) / len(ordered)), default=-1)
    worse = [change for change in ordered[: last + 1] if change.ratio >= LEAST_RATIO]
    return tuple(sorted(worse, key=lambda change: (-change.ratio, change.client, change.server, change.port, change.metric)))
