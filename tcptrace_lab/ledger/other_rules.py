"""Applies the rules of other packages, which can replace the cause that the engine gave to a wait.

The engine returns every interval of the ledger. If the condition of a rule is true for an interval, the interval gets the cause of the
rule. Then the sums and the evidence for findings are computed again in Python, which takes several times as long as the engine. Without
such rules, nothing is computed again. Throughput deadlocks, and the causes of delayed messages, always come from the engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import causes, schema
from tcptrace_lab.engine.reread import Judged, nothing_judged
from tcptrace_lab.errors import RuleUnusable
from tcptrace_lab.ledger import stalls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.causes import Rule
    from tcptrace_lab.engine.segments import Tables

_CAUSE = ("conn", "from_client", "cause")
_DIRECTION = _CAUSE[:2]
UNKNOWN = "unknown"


def overridden(tables: Tables) -> Tables:
    """Return the tables with the causes that the rules of other packages determine; unchanged if there are no such rules.

    Raises:
        RuleUnusable: a rule uses a column that `schema.WAITS` does not have.
    """
    found = causes.others()
    if not found:
        return tables
    ledger = _with_causes(tables.ledger, found).with_columns(rivals=pl.when(pl.col("cause") == UNKNOWN).then("rivals"))

    def again(conns: Sequence[int]) -> Judged:
        return _judged(ledger.filter(pl.col("conn").is_in(conns)).collect(), tables.details(conns))

    return replace(tables, ledger=ledger, together=None, accounts=_accounts(ledger, tables.accounts), judged=nothing_judged(), again=again)


def _with_causes(ledger: pl.LazyFrame, found: Mapping[str, Rule]) -> pl.LazyFrame:
    """Give each interval the cause and the confidence of the first rule whose condition is true."""
    cause, confidence = pl.col("cause"), pl.col("confidence")
    for where, rule in reversed(tuple(found.items())):
        if rule.holds is None:
            continue
        missing = sorted(set(rule.holds.meta.root_names()) - set(schema.WAITS.names))
        if missing:
            remedy = "docs/rules.md lists the columns that rules can use"
            raise RuleUnusable(f"the rule uses unknown columns: {', '.join(missing)}", where=where, remedy=remedy)
        holds = pl.col("frame_after").is_not_null() & rule.holds
        cause = pl.when(holds).then(pl.lit(rule.cause, schema.WAITS["cause"].polars_type())).otherwise(cause)
        confidence = pl.when(holds).then(pl.lit(str(rule.confidence), schema.WAITS["confidence"].polars_type())).otherwise(confidence)
    return ledger.with_columns(cause=cause, confidence=confidence).select(schema.WAITS.names)


def _accounts(ledger: pl.LazyFrame, accounts: pl.LazyFrame) -> pl.LazyFrame:
    """Sum up the intervals of each connection to rows of `schema.ACCOUNTS`. Rows that are null in `accounts` stay null."""
    length = pl.col("end_ns") - pl.col("start_ns")
    sums = ledger.group_by(_CAUSE).agg(ns=length.sum()).collect()
    side = pl.when("from_client").then(pl.lit("client")).otherwise(pl.lit("server"))
    cause = pl.col("cause").cast(pl.String).str.replace_all("-", "_")
    names = [name for name in schema.ACCOUNTS.names if name != "conn" and not name.endswith("_rivals")]
    named = sums.select("conn", "ns", column=pl.concat_str(side, pl.lit("_"), cause, pl.lit("_ns")))
    wide = named.pivot(on="column", on_columns=names, index="conn", values="ns", aggregate_function="first")
    known = accounts.select("conn", known=pl.col(names[0]).is_not_null()).join(wide.lazy(), on="conn", how="left", maintain_order="left")
    summed = known.with_columns(pl.when("known").then(pl.col(names).fill_null(0)))
    undecided = ledger.filter(pl.col("cause") == UNKNOWN).group_by(*_DIRECTION, "rivals").agg(ns=length.sum())
    most = undecided.filter(2 * pl.col("ns") > pl.col("ns").sum().over(_DIRECTION))
    for name, from_client in schema.SIDES.items():
        own = most.filter(pl.col("from_client") == from_client).select("conn", pl.col("rivals").alias(f"{name}_rivals"))
        summed = summed.join(own, on="conn", how="left", maintain_order="left")
    return summed.select(schema.ACCOUNTS.names)


def _judged(waits: pl.DataFrame, by_engine: Judged) -> Judged:
    """Return the evidence for findings on the connections in `waits`. Deadlocks and capture points come from the engine."""
    conns = waits["conn"].unique()
    ns = pl.col("end_ns") - pl.col("start_ns")
    is_sure = pl.col("confidence") != str(causes.Confidence.POSSIBLE)
    kinds = waits.group_by(_CAUSE).agg(
        ns=ns.sum(),
        waits=pl.len().cast(pl.Int64),
        sure_waits=is_sure.sum().cast(pl.Int64),
        sure_ns=ns.filter(is_sure).sum(),
        proved_ns=ns.filter(pl.col("confidence") == str(causes.Confidence.PROVED)).sum(),
        median_ns=ns.median(),
    )
    place = pl.int_range(pl.len())
    stalled = pl.when(stalls.IS_STALL)
    ranked = waits.sort(ns, "start_ns", descending=[True, False]).with_columns(
        place=place.over(_DIRECTION),
        place_in_cause=place.over(_CAUSE),
        place_in_stalls=stalled.then(stalls.IS_STALL.cast(pl.Int64).cum_sum().over(_DIRECTION) - 1),
    )
    here = pl.col("conn").is_in(conns.implode())
    return Judged(kinds, ranked.select(schema.LONGEST.names), by_engine.locks.filter(here), by_engine.places.filter(here))
