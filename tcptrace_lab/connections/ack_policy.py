"""How each endpoint of a connection acknowledges, and whether Nagle's algorithm delays its small segments.

The input is what the engine counted (`schema.CONNECTIONS`), the output are expressions, so millions of connections cost one query. Cases
that the counts do not decide are `unknown`: a guess would be mistaken for a measurement.
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
"""Least number of ACKs to judge how many segments each covers (a heuristic)."""

LEAST_DELAYED = 3
"""Least number of delayed ACKs to name a timer (docs/how-it-decides.md, 2.4)."""

FIXED_SPREAD_MS = 20
"""Largest spread of the delays of a fixed timer: its ticks (Linux 4 or 10 ms) and the path's jitter (a heuristic)."""

HEARTBEAT_MS = 200
"""Period of the timer of BSD and its descendants (`tcp_fasttimo`): delays are between 0 and this, and end at one phase of it."""

HEARTBEAT_CHANCE = 0.001
"""A heartbeat is assumed if chance would concentrate the delayed ACKs this much at one phase less often than this (Rayleigh's test)."""


class Timer(NamedTuple):
    """A delayed-ACK timer of known stacks: its time, the range of the median delay that shows it, and the stacks.

    `soonest_to_ms`: upper bound of the 10th percentile of the delays, if this distinguishes it from another stack's timer.
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
"""The bands of docs/how-it-decides.md, 2.5. The median distinguishes delays of 40 and 50 ms. `soonest_to_ms` excludes lwIP: its heartbeat
of 250 ms (`TCP_TMR_INTERVAL`) ends all delays at 210 ms if a dialogue of 40 ms keeps step with it; those of a fixed timer vary."""

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
"""Value of `ack_policy` → description."""

_EARLY = 0.8
"""Share of ACKs that cover one segment, from which the endpoint is taken to acknowledge every segment. Below it, they are the first ACKs of
a connection, which some stacks send at once (Linux: 16), those that the application causes, and those of tails (a heuristic)."""
_MOST = 0.5
"""Share of ACKs that shows the rule (a heuristic)."""

_HELD_SHARE = 0.25
"""Waits count as Nagle's algorithm if they are more than this share of the opportunities: coincidence gives at most a sixteenth."""
PROVING_HOLDS = 3
CONSISTENT_HOLDS = 2


Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
_Count = TypeVar("_Count", int, pl.Expr)
"""A count of one connection, or the column of all connections."""


def beside(connections: Frame) -> Frame:
    """Add the verdicts on both endpoints to rows of `schema.CONNECTIONS`.

    The columns are added in steps that build on each other. Polars does not share common subexpressions: as one expression each, the
    columns would compute the quantiles of the delays fifty times.

    Returns:
        The rows, with these columns for each endpoint, prefixed by `client_` or `server_`:
        `ack_policy`: a key of `POLICIES`: how this endpoint acknowledges; `ack_policy_samples`: the number of ACKs that show it;
        `ack_timer_ms`: its delayed-ACK timer, one of `TIMERS`, or 200 for a heartbeat; null if unknown;
        `ack_timer_kind`: `fixed`, `heartbeat`, or null;
        `ack_delay_from_ms`, `ack_delay_to_ms`: range of the middle 80 % of its delayed ACKs; null without any;
        `nagle`: `on`, `off` or `unknown`; `nagle_confidence`: `proved` or `consistent`, null if unknown; `nagle_frame`: first evidence.
    """
    for made in steps():
        connections = connections.with_columns(**made)
    return connections.drop(f"{side}_{name}" for side in SIDES for name in _ON_THE_WAY)


@cache
def steps() -> tuple[Mapping[str, pl.Expr], ...]:
    """The columns of `beside` and their intermediate columns, in steps that build on each other."""
    steps = ((_classes,), (_delays,), (_fixed, _beats, _counts, _nagle), (_timer, _threshold), (_policy,))
    return tuple(
        {f"{side}_{name}": expression for side in SIDES for step in each for name, expression in step(side).items()} for each in steps
    )


def heartbeats(connections: pl.LazyFrame) -> pl.LazyFrame:
    """Return whether the ACKs for a direction's data follow a heartbeat (`ack_timer_kind` of `beside`): `conn from_client beats`."""
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
"""Intermediate columns of `beside`."""


def _counts(side: str) -> dict[str, pl.Expr]:
    """Return the counts of ACKs by segments covered, and the byte rules that fit.

    A byte rule fits if it explains which amounts were ACKed at once and which were delayed.
    """
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
    """Return the byte rule if exactly one fits, else null; and the number of ACKs that cover more than two segments."""
    (other,) = SIDES.keys() - {side}
    waited, went = pl.col(f"{side}_delayed_ack_max_bytes"), pl.col(f"{side}_prompt_ack_min_bytes")
    mss, fits = pl.col(f"{other}_full_segment_bytes"), {name: pl.col(f"{side}_{name}") for name in _BY_BYTES}
    alone = pl.sum_horizontal(*fits.values()) + ((waited < mss) & (mss <= went)).fill_null(value=False) == 1
    rule = pl.when(alone).then(pl.coalesce(*(pl.when(fit).then(pl.lit(name)) for name, fit in fits.items())))
    # Delayed ACKs of several segments count as covering two or more: this may understate `per-2`, but never overstates it.
    return {_RULE: rule, _MORE: pl.col(f"{side}_{_ACKS}") - pl.col(f"{side}_{_ONE}") - pl.col(f"{side}_{_TWO}")}


def _policy(side: str) -> dict[str, pl.Expr]:
    """Return what triggers an ACK, apart from a timer."""
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
    """Return the classes in which the quantiles `_SHARES` of this endpoint's ACK delays lie, as one list, so the counts are read once."""
    counts = pl.element()
    low, middle, high = ((counts.cum_sum() < counts.sum() * share).sum() for share in _SHARES)
    return {_CLASSES: pl.col(f"{side}_ack_delays").list.eval(low.append(middle).append(high))}


def _delays(side: str) -> dict[str, pl.Expr]:
    """Return the range of this endpoint's ACK delays."""
    low, median, high = (pl.col(f"{side}_{_CLASSES}").list.get(place).cast(pl.Int64) for place in range(len(_SHARES)))
    return {
        "ack_delay_from_ms": low * DELAY_CLASS_MS,
        _MEDIAN: median * DELAY_CLASS_MS,
        "ack_delay_to_ms": (high + 1) * DELAY_CLASS_MS,
    }


def _fixed(side: str) -> dict[str, pl.Expr]:
    """Return the fixed timer whose band contains the delays."""
    from_ms, median_ms, to_ms = (pl.col(f"{side}_{name}") for name in ("ack_delay_from_ms", _MEDIAN, "ack_delay_to_ms"))

    def shows(timer: Timer) -> pl.Expr:
        return median_ms.is_between(timer.from_ms, timer.to_ms, closed="left") & (from_ms <= timer.soonest_to_ms)

    named = pl.coalesce(*(pl.when(shows(timer)).then(timer.timer_ms) for timer in TIMERS))
    return {_FIXED: pl.when((pl.col(f"{side}_delayed_acks") >= LEAST_DELAYED) & (to_ms - from_ms <= FIXED_SPREAD_MS)).then(named)}


def _beats(side: str) -> dict[str, pl.Expr]:
    """Return whether the delays follow a heartbeat."""
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
    """Return how many small segments of an endpoint waited as if Nagle's algorithm delayed them; `of` returns a column of the endpoint."""
    return of("nagle_holds") + of("nagle_holds_over_full")


def sure_holds(of: Callable[[str], _Count]) -> _Count:
    """Return how many of these waits a full send buffer does not explain equally well."""
    return holds(of) - of("nagle_holds_ambiguous")


def all_in_doubt(of: Callable[[str], int]) -> bool:
    """Whether there are such waits, and a full send buffer explains every one of them equally well."""
    return holds(of) > 0 and sure_holds(of) == 0


def _nagle(side: str) -> dict[str, pl.Expr]:
    """Return the verdict on Nagle's algorithm.

    A small segment sent behind an unacknowledged small one proves that it is off. A single wait may be chance. Waits behind flights that
    may have filled the send buffer prove nothing: data that is not yet in the buffer also waits for the ACK of everything.
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
