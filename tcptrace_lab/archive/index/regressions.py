"""Finds regressions: transfers that are slower than the transfers between the same two hosts in a baseline archive.

For each pair of hosts, direction and metric, the Mann-Whitney test compares the old and the new values (normal approximation with ties).
The reported ratio is the Hodges-Lehmann estimate: the median of all ratios of a new value to an old value. Some of many comparisons differ
by chance, so the false discovery rate is limited to 5% (Benjamini and Hochberg 1995). Only changes by a factor of at least `MIN_RATIO` are
reported. A capture that is in both archives counts only for the baseline.
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
"""Minimum number of transfers in each archive. With five in each, the smallest possible p-value of the exact test is 0.8%."""

FALSE_ALARMS = 0.05

MIN_RATIO = 1.1
"""Minimum ratio of a reported change (a heuristic)."""

MAX_VALUES = 1_000
"""Maximum number of values per archive. More values are sampled evenly in order of time.

1000 old and 1000 new values give a million ratios.
"""


@dataclass(frozen=True, slots=True)
class Change:
    """How one metric of the transfers between two hosts has changed from the baseline to this archive.

    Attributes:
        client, server, port: the two hosts, and the server's port.
        from_client: the direction.
        metric: a key of `outliers.METRICS`.
        before, now: median values.
        n_before, n_now: numbers of values.
        ratio: factor by which the metric changed. Above 1, the metric became worse.
        p: two-sided p-value.
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
        """Severity of the change. It depends on 1 − 1/ratio, which is the share of the new time that the change added."""
        return severity_of(1 - 1 / self.ratio)

    @property
    def words(self) -> str:
        """The change in one line."""
        format_value = numbers.rate if self.metric == "rate_bps" else lambda value: numbers.duration(round(value))
        direction = f"{self.client} → {self.server}:{self.port}" if self.from_client else f"{self.server}:{self.port} → {self.client}"
        name, bad = METRICS[self.metric]
        verb = "lower" if bad < 0 else "longer"
        return (
            f"{direction}: {name} {self.ratio:.3g} times {verb}: {format_value(self.before)} (n = {self.n_before}) before, "
            f"{format_value(self.now)} (n = {self.n_now}) now; {self.severity}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of an archive with a baseline.

    Attributes:
        baseline: the baseline archive.
        changes: what became worse, the worst first.
        compared: number of combinations of host pair, direction and metric that have enough values.
        too_few: number of combinations that have values in both archives, but fewer than `LEAST` values in one of them.
    """

    baseline: str
    changes: tuple[Change, ...]
    compared: int
    too_few: int

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst change; None if there is no change."""
        return max((change.severity for change in self.changes), default=None)

    @property
    def words(self) -> str:
        """A summary in one line."""
        some = (
            f"{len(self.changes):,} of {self.compared:,} figures became slower than in {self.baseline}"
            if self.compared
            else "nothing can be compared"
        )
        return some + (f"; {self.too_few:,} more have fewer than {LEAST} transfers in one of the archives" if self.too_few else "")


def compare(now: Mapping[str, pl.LazyFrame], baseline: str) -> Comparison:
    """Compare an archive with a baseline.

    Args:
        now: tables of the archive (`query.opened`).
        baseline: the baseline archive.

    Raises:
        UsageError: the baseline is not an archive.
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
    return Comparison(baseline, _listed_changes(found), compared, too_few)


def _both(old: pl.DataFrame, new: pl.DataFrame) -> Iterator[tuple[tuple[Any, ...], str, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield (client, server, port, direction), metric, old and new values, for each metric with values in both archives."""
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
    if len(values) <= MAX_VALUES:
        return values
    thinned: NDArray[np.float64] = values[np.linspace(0, len(values) - 1, MAX_VALUES).round().astype(int)]
    return thinned


def p_value(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of the Mann-Whitney test: normal approximation, corrected for continuity and ties."""
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


def _listed_changes(found: list[Change]) -> tuple[Change, ...]:
    """Return the significant changes by a factor of at least `MIN_RATIO`, the worst first (Benjamini-Hochberg)."""
    ordered = sorted(found, key=lambda change: change.p)
    last = max((place for place, change in enumerate(ordered) if change.p <= FALSE_ALARMS * (place + 1) / len(ordered)), default=-1)
    worse = [change for change in ordered[: last + 1] if change.ratio >= MIN_RATIO]
    return tuple(sorted(worse, key=lambda change: (-change.ratio, change.client, change.server, change.port, change.metric)))
