"""How each side of a connection acknowledges, and whether Nagle's algorithm holds its small segments.

Judged from what the engine counted (`schema.CONNECTIONS`): expressions, so that millions of connections cost no more than a query. What
the counts do not settle is `unknown`: a guess would be taken for a measurement.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import polars as pl

from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DELAY_CLASS_MS = 2
"""Width of the classes of `ack_delays`."""

LEAST_ACKS = 5
"""ACKs without which nothing is said of how many segments each covers (a heuristic)."""

LEAST_DELAYED = 3
"""Delayed ACKs without which no timer is named (docs/how-it-decides.md, 2.4)."""

FIXED_SPREAD_MS = 20
"""A timer with a fixed time gives delays that differ by no more: its ticks (Linux 4 or 10 ms) and the path's jitter (a heuristic)."""

HEARTBEAT_MS = 200
"""Period of the timer of BSD and its kin (`tcp_fasttimo`): delays are anything up to it, and end at one phase of it."""

HEARTBEAT_CHANCE = 0.001
"""A heartbeat is taken for one if chance would put as many delayed ACKs so close to one phase less often than this (Rayleigh's test)."""


class Timer(NamedTuple):
    """A delayed-ACK timer that stacks use: its time, where the median delay lies that shows it, and whose it is.

    `soonest_to_ms`: where a tenth of the delays lies at most, if another stack's timer looks alike but for that.
    """

    timer_ms: int
    from_ms: int
    to_ms: int
    whose: str
    soonest_to_ms: int = 1_000


TIMERS = (
    Timer(40, 35, 50, "Linux (TCP_DELACK_MIN), FreeBSD since 2020"),
    Timer(50, 50, 60, "Solaris on the local network"),
    Timer(100, 95, 115, "FreeBSD before 2020, Solaris on other networks"),
    Timer(200, 190, 215, "Windows, Linux at most (TCP_DELACK_MAX)", soonest_to_ms=206),
)
"""The bands of docs/how-it-decides.md, 2.5. Delays of 40 and 50 ms are told apart by the median. `soonest_to_ms` excludes lwIP: its
heartbeat of 250 ms (`TCP_TMR_INTERVAL`) ends all delays at 210 ms if a dialogue of 40 ms keeps step; those of a fixed timer vary."""

POLICIES = {
    "per-segment": "ACKs every segment",
    "per-2-segments": "ACKs every second segment of any size",
    "per-2-mss": "ACKs every two full segments' worth of data",
    "per-2": "ACKs every second full segment (by count or by bytes: unknown)",
    "buffer-35": "ACKs every 35% of its buffer",
    "buffer-50": "ACKs every half of its buffer",
    "stretch": "ACKs more than two segments at a time",
    "timer": "ACKs by its timer",
    "unknown": "follows an unknown ACK policy",
}
"""Value of `ack_policy` → what the side does."""

_EARLY = 0.8
"""Share of ACKs that cover one segment from which each is taken to be acknowledged at once; below, they are the first few that some stacks
acknowledge at once on every connection (Linux: 16), the program's, and tails (a heuristic)."""
_MOST = 0.5
"""Share of ACKs that shows what the rule is (a heuristic)."""

_HELD_SHARE = 0.25
"""Holds count for Nagle's algorithm if they are more than this share of the chances: coincidence gives at most a sixteenth."""
PROVING_HOLDS = 3
CONSISTENT_HOLDS = 2


Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
_Count = TypeVar("_Count", int, pl.Expr)
"""A number of a connection, or the column of all of them."""


def beside(connections: Frame) -> Frame:
    """Rows of `schema.CONNECTIONS` with the verdicts on both sides.

    Some columns at a time, each from those that are there by then: as one expression each, which Polars does not take apart, the quantiles
    of the delays would be worked out fifty times.

    Returns:
        The rows, and for each side, by its prefix (`client_`, `server_`):
        `ack_policy`: a key of `POLICIES`: how this side acknowledges; `ack_policy_samples`: the ACKs that tell;
        `ack_timer_ms`: its delayed-ACK timer, one of `TIMERS` or 200 with a heartbeat; null if unknown;
        `ack_timer_kind`: `fixed`, `heartbeat`, or null;
        `ack_delay_from_ms`, `ack_delay_to_ms`: where the middle 80 % of its delayed ACKs lie; null without;
        `nagle`: `on`, `off` or `unknown`; `nagle_confidence`: `proved` or `consistent`, null if unknown; `nagle_frame`: first proof.
    """
    for made in steps():
        connections = connections.with_columns(**made)
    return connections.drop(f"{side}_{name}" for side in SIDES for name in _ON_THE_WAY)


@cache
def steps() -> tuple[Mapping[str, pl.Expr], ...]:
    """The columns of `beside`, and those on the way to them, in steps that look at those before."""
    steps = ((_classes,), (_delays,), (_fixed, _beats, _counts, _nagle), (_timer, _threshold), (_policy,))
    return tuple(
        {f"{side}_{name}": expression for side in SIDES for step in each for name, expression in step(side).items()} for each in steps
    )


def heartbeats(connections: pl.LazyFrame) -> pl.LazyFrame:
    """Whether the ACKs for what a direction sends keep to a heartbeat (`ack_timer_kind` of `beside`): `conn from_client beats`."""
    counted = ("delayed_acks", "ack_delays", "heartbeat_concentration")
    rows = pl.concat(
        connections.select("conn", from_client=pl.lit(not of_client), **{f"acking_{name}": f"{side}_{name}" for name in counted})
        for side, of_client in SIDES.items()
    )
    for step in (_classes, _delays, _beats):
        rows = rows.with_columns(**{f"acking_{name}": expression for name, expression in step("acking").items()})
    return rows.select("conn", "from_client", beats=f"acking_{_BEATS}")


_SHARES = (0.1, 0.5, 0.9)
_CLASSES, _MEDIAN, _FIXED, _BEATS = "ack_delay_classes", "ack_delay_median_ms", "ack_timer_fixed_ms", "ack_timer_beats"
_ACKS, _ONE, _TWO, _MORE, _RULE = "acks_not_delayed", "acks_of_one", "acks_of_two", "acks_of_more", "ack_threshold"
_BY_BYTES = ("per-2-mss", "buffer-35", "buffer-50")
_ON_THE_WAY = (_CLASSES, _MEDIAN, _FIXED, _BEATS, _ACKS, _ONE, _TWO, _MORE, _RULE, *_BY_BYTES)
"""Columns on the way to those of `beside`."""


def _counts(side: str) -> dict[str, pl.Expr]:
    """ACKs by the segments that they cover, and the rules by bytes that explain which amounts went at once and which waited."""
    (other,) = SIDES.keys() - {side}
    delayed, several = pl.col(f"{side}_delayed_acks"), pl.col(f"{side}_delayed_acks_of_several")
    covering = pl.col(f"{side}_acks_by_segments").list
    waited, went = pl.col(f"{side}_delayed_ack_max_bytes"), pl.col(f"{side}_prompt_ack_min_bytes")
    mss, buffer = pl.col(f"{other}_full_segment_bytes"), pl.col(f"{side}_max_window_bytes")
    both = (pl.col(f"{side}_prompt_acks") >= LEAST_DELAYED) & (delayed >= LEAST_DELAYED)
    amounts = zip(_BY_BYTES, (2 * mss, (buffer * 35 + 99) // 100, buffer // 2), strict=True)
    return {
        _ACKS: covering.sum().fill_null(0) - delayed,
        _ONE: covering.get(0, null_on_oob=True).fill_null(0) - (delayed - several),
        _TWO: covering.get(1, null_on_oob=True).fill_null(0),
        **{name: ((waited < bytes_) & (bytes_ <= went) & both).fill_null(value=False) for name, bytes_ in amounts},
    }


def _threshold(side: str) -> dict[str, pl.Expr]:
    """The rule by bytes that alone fits; null if none or several do. And ACKs that cover more than two segments."""
    (other,) = SIDES.keys() - {side}
    waited, went = pl.col(f"{side}_delayed_ack_max_bytes"), pl.col(f"{side}_prompt_ack_min_bytes")
    mss, fits = pl.col(f"{other}_full_segment_bytes"), {name: pl.col(f"{side}_{name}") for name in _BY_BYTES}
    alone = pl.sum_horizontal(*fits.values()) + ((waited < mss) & (mss <= went)).fill_null(value=False) == 1
    rule = pl.when(alone).then(pl.coalesce(*(pl.when(fit).then(pl.lit(name)) for name, fit in fits.items())))
    # Delayed ACKs of several segments are counted as of two or of more: both understate `per-2`, never overstate it.
    return {_RULE: rule, _MORE: pl.col(f"{side}_{_ACKS}") - pl.col(f"{side}_{_ONE}") - pl.col(f"{side}_{_TWO}")}


def _policy(side: str) -> dict[str, pl.Expr]:
    """What lets an ACK go, where no timer does."""
    own = {name: pl.col(f"{side}_{name}") for name in (_ACKS, _ONE, _TWO, _MORE, _RULE, "delayed_acks", "prompt_small_pairs")}
    acks, one, two, more, threshold, delayed, pairs = own.values()
    enough = acks >= LEAST_ACKS
    policy = (
        pl.when(threshold.is_not_null())
        .then(threshold)
        .when(enough & (pairs >= LEAST_DELAYED) & (pairs >= _MOST * two) & (more < _MOST * acks))
        .then(pl.lit("per-2-segments"))
        .when(enough & (one >= _EARLY * (acks + delayed)))
        .then(pl.lit("per-segment"))
        .when(enough & (two >= _MOST * acks))
        .then(pl.when(pl.col(f"{side}_delayed_acks_of_several") >= LEAST_DELAYED).then(pl.lit("per-2-mss")).otherwise(pl.lit("per-2")))
        .when(enough & (more > _MOST * acks))
        .then(pl.lit("stretch"))
        .when(pl.col(f"{side}_ack_timer_ms").is_not_null() & (delayed > acks))
        .then(pl.lit("timer"))
        .otherwise(pl.lit("unknown"))
    )
    return {"ack_policy": policy, "ack_policy_samples": acks + delayed}


def _classes(side: str) -> dict[str, pl.Expr]:
    """The classes of this side's delayed ACKs in which the shares of `_SHARES` lie, as one list: one look at the counts."""
    counts = pl.element()
    low, middle, high = ((counts.cum_sum() < counts.sum() * share).sum() for share in _SHARES)
    return {_CLASSES: pl.col(f"{side}_ack_delays").list.eval(low.append(middle).append(high))}


def _delays(side: str) -> dict[str, pl.Expr]:
    """Where the delays of this side's delayed ACKs lie."""
    low, median, high = (pl.col(f"{side}_{_CLASSES}").list.get(place).cast(pl.Int64) for place in range(len(_SHARES)))
    return {
        "ack_delay_from_ms": low * DELAY_CLASS_MS,
        _MEDIAN: median * DELAY_CLASS_MS,
        "ack_delay_to_ms": (high + 1) * DELAY_CLASS_MS,
    }


def _fixed(side: str) -> dict[str, pl.Expr]:
    """The fixed timer in whose band the delays lie."""
    from_ms, median_ms, to_ms = (pl.col(f"{side}_{name}") for name in ("ack_delay_from_ms", _MEDIAN, "ack_delay_to_ms"))

    def shows(timer: Timer) -> pl.Expr:
        return median_ms.is_between(timer.from_ms, timer.to_ms, closed="left") & (from_ms <= timer.soonest_to_ms)

    named = pl.coalesce(*(pl.when(shows(timer)).then(timer.timer_ms) for timer in TIMERS))
    return {_FIXED: pl.when((pl.col(f"{side}_delayed_acks") >= LEAST_DELAYED) & (to_ms - from_ms <= FIXED_SPREAD_MS)).then(named)}


def _beats(side: str) -> dict[str, pl.Expr]:
    """Whether the delays keep to a heartbeat."""
    delayed, delays = pl.col(f"{side}_delayed_acks"), pl.col(f"{side}_ack_delays")
    from_ms, to_ms = pl.col(f"{side}_ack_delay_from_ms"), pl.col(f"{side}_ack_delay_to_ms")
    longest_ms = (delays.list.len().cast(pl.Int64) - 1) * DELAY_CLASS_MS
    rayleigh = delayed * pl.col(f"{side}_heartbeat_concentration") ** 2
    return {_BEATS: (to_ms - from_ms > FIXED_SPREAD_MS) & (longest_ms <= HEARTBEAT_MS) & (rayleigh > -math.log(HEARTBEAT_CHANCE))}


def _timer(side: str) -> dict[str, pl.Expr]:
    named, beats = pl.col(f"{side}_{_FIXED}"), pl.col(f"{side}_{_BEATS}")
    return {
        "ack_timer_ms": pl.when(beats).then(HEARTBEAT_MS).otherwise(named).cast(pl.Float64),
        "ack_timer_kind": pl.when(beats).then(pl.lit("heartbeat")).when(named.is_not_null()).then(pl.lit("fixed")),
    }


def holds(of: Callable[[str], _Count]) -> _Count:
    """How many small segments of a side waited as if Nagle's algorithm held them; `of` gives a column of the side."""
    return of("nagle_holds") + of("nagle_holds_over_full")


def sure_holds(of: Callable[[str], _Count]) -> _Count:
    """Those of them that no full send buffer explains as well."""
    return holds(of) - of("nagle_holds_in_doubt")


def all_in_doubt(of: Callable[[str], int]) -> bool:
    """Whether there are some, and a full send buffer explains every one of them as well."""
    return holds(of) > 0 and sure_holds(of) == 0


def _nagle(side: str) -> dict[str, pl.Expr]:
    """One small segment behind another that is not acknowledged proves that nothing holds small segments; one hold may be chance.

    Holds behind flights that may have filled the send buffer prove nothing: what is not in it yet waits for the ACK of all as well.
    """

    def own(name: str) -> pl.Expr:
        return pl.col(f"{side}_{name}")

    violations, frame = own("small_in_flight"), own("small_in_flight_frame")
    hold_frame = pl.min_horizontal(f"{side}_nagle_holds_frame", f"{side}_nagle_holds_over_full_frame")
    likely = holds(own) > _HELD_SHARE * own("nagle_releases")
    off, on = violations > 0, likely & (holds(own) >= CONSISTENT_HOLDS)
    sure = pl.when(off).then(violations >= CONSISTENT_HOLDS).otherwise(sure_holds(own) >= PROVING_HOLDS)
    return {
        "nagle": pl.when(off).then(pl.lit("off")).when(on).then(pl.lit("on")).otherwise(pl.lit("unknown")),
        "nagle_confidence": pl.when(off | on).then(pl.when(sure).then(pl.lit("proved")).otherwise(pl.lit("consistent"))),
        "nagle_frame": pl.when(off).then(frame).when(on).then(hold_frame),
    }
