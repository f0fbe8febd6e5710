"""Finds the largest costs of a capture. A cost is the time of one cause in one direction, if it is large enough for a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tcptrace_lab import causes
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.engine.sorting import beside
from tcptrace_lab.errors import RuleUnusable
from tcptrace_lab.findings import (
    failed_attempts,
)
from tcptrace_lab.findings.finding import FINDING_IDS
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tcptrace_lab.causes import Advice, Rule

MOST = 50
"""Maximum number of findings of one capture. The most expensive findings are reported."""


class Cost(NamedTuple):
    """The time that one cause takes in one direction."""

    conn: int
    from_client: bool
    cause: str
    ns: int
    active_ns: int

    @property
    def kind(self) -> tuple[int, bool, str]:
        """Direction and cause."""
        return self.conn, self.from_client, self.cause

    @property
    def share(self) -> float:
        """The share of the direction's active time that the cause takes, 0 to 1."""
        return self.ns / self.active_ns


class _Sum(NamedTuple):
    """One column of `schema.ACCOUNTS`: the time of a cause in one direction, with the advice for a finding."""

    side: str
    from_client: bool
    cause: str
    advice: Advice


def advising_rules() -> dict[str, Rule]:
    """Return the rule of each cause that can become a finding."""
    for where, rule in causes.others().items():
        if rule.advice is not None and rule.advice.finding not in FINDING_IDS:
            remedy = f"use one of {', '.join(FINDING_IDS)}"
            raise RuleUnusable(f"unknown finding {rule.advice.finding!r}", where=where, remedy=remedy)
    return {cause: causes.of_cause(cause) for cause in causes.advising()}


def largest(accounts: pl.LazyFrame, connections: pl.LazyFrame, advising: Mapping[str, Rule]) -> list[Cost]:
    """Return the costs that are large enough for a finding, the largest first."""
    carried = {f"{side}_carried": pl.col(f"{side}_payload_bytes") > 0 for side in SIDES}
    # A jump of the capture's clock can make a connection seem to last for years, so its duration is then unknown.
    life_ns = pl.when(~capture_quality.has_jumped()).then(pl.col("last_ts_ns") - pl.col("first_ts_ns"))
    life = connections.select("conn", **carried, failed=failed_attempts.FAILED, life_ns=life_ns)
    max_ns = pl.when(pl.col("life_ns").is_not_null()).then(
        pl.max_horizontal(_sum_column(side, cause) for side in SIDES for cause in advising)
    )
    min_ns = min(advice_of(rule).worth_ns for rule in advising.values())
    sums = [_Sum(side, from_client, cause, advice_of(rule)) for side, from_client in SIDES.items() for cause, rule in advising.items()]
    asked = {_sum_column(one.side, one.cause): one for one in sums if one.from_client or not one.advice.of_client_alone}
    best: list[Cost] = []
    for batch in beside(accounts, life, "conn"):
        costly = batch.with_columns(max_ns=max_ns).filter(pl.col("max_ns") >= min_ns)
        if costly.height > 1:
            costly = costly.sort("max_ns", descending=True)
        for some in costly.iter_slices(MOST):
            rows = some.filter(some["max_ns"] >= min_ns)
            if rows.is_empty():
                break
            costs = (cost for row in rows.iter_rows(named=True) for cost in _costs(row, asked))
            best = sorted([*best, *costs], key=lambda cost: (-cost.ns, cost.conn, not cost.from_client))[:MOST]
            if len(best) == MOST:
                min_ns = max(min_ns, best[-1].ns)
    return best


def _costs(row: Mapping[str, Any], asked: Mapping[str, _Sum]) -> Iterator[Cost]:
    """Yield the costs of one connection that are large enough for a finding.

    Args:
        row: the times of the connection.
        asked: column of a time → its direction, cause and advice.
    """
    for column, (side, from_client, cause, advice) in asked.items():
        ns = row[column]
        if (
            ns < advice.worth_ns
            or (advice.of_data_alone and not row[f"{side}_carried"])
            or (cause == failed_attempts.CAUSE and row["failed"])
        ):
            continue
        active_ns = row["life_ns"] - row[f"{side}_idle_ns"]
        if ns >= advice.worth_share * active_ns:
            yield Cost(row["conn"], from_client, cause, ns, active_ns)


def _sum_column(side: str, cause: str) -> str:
    return f"{side}_{cause.replace('-', '_')}_ns"


def advice_of(rule: Rule) -> Advice:
    """Return the advice of a rule. Raises ValueError if the rule has no advice."""
    if rule.advice is None:
        raise ValueError(f"the rule for {rule.cause} has no advice")
    return rule.advice
