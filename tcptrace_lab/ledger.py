"""Segments → the time ledger: every instant of every direction has exactly one cause.

A direction lives from its connection's first frame to the last. Its departures (segments with data, SYN or FIN) cut that life into waits,
each of which the engine has described on the row of the departure that ended it. The rules say what the next byte waited for; they look at
nothing but that row and the facts of its direction. A wait that no rule explains is told by what arrived meanwhile:

    departure ─ network: while the line carries the departure before, or the path's narrowest place the flight that slow start lets go
              └ handshake ─┬─ network: its way there, and that of the last byte of an answer back, at most a round trip, and queues; unknown
                           │  where the capture began later than the connection, and only answers tell the round trip
                           ├─ peer: until the last data of the other side before the departure
                           └─ application: the rest

The parts of a wait touch, and the waits do, so the ledger sums to the life of the direction to the nanosecond.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tcptrace_lab import directions, rules, schema
from tcptrace_lab.errors import RuleUnusable
from tcptrace_lab.rules import columns, deferral, loss_recovery, of_direction
from tcptrace_lab.rules.facts import acks, flow, held, limits, path, resent, window
from tcptrace_lab.rules.rule import Confidence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcptrace_lab.rules import Rule

CAUSE, CONFIDENCE = (schema.LEDGER[name].polars_type() for name in ("cause", "confidence"))

_WAY = ("conn", "from_client")

BATCH_ROWS = 65_536
"""Departures that `collected` judges together: 14 MB, and several times that while it does."""

COLUMNS = (
    "conn",
    "from_client",
    "frame",
    "ts_ns",
    "seq",
    "flags",
    "payload_bytes",
    "kind",
    "resent_by",
    "held_ns",
    "held_since_frame",
    "sent_ticks",
    "queued_ns",
    "queue_grew_ns",
    "idle_ns",
    "acked_ago_ns",
    "acked_by_frame",
    "acked_lag_ns",
    "round_trip_ns",
    "neighbour_ns",
    "smoothed_ns",
    "loss_told_ns",
    "echo_ns",
    "window_opened_ns",
    "peer_first_ns",
    "peer_last_ns",
    "peer_payload_bytes",
    "payload_before_bytes",
    "unacked_before_bytes",
    "unacked_bytes",
    "missed_bytes",
    "left_out_segments",
    "in_flight_bytes",
    "since_last_ack_ns",
    "usable_before_bytes",
    "flight_bytes",
    "flown_before",
    "flown_bytes",
    "usable_window_bytes",
    "full_bytes",
    "window_closed",
    "small",
    "small_before",
    "held_before",
    "pushed_before",
    "small_unacked",
    "small_passes",
    "recovering",
    "repaired_by",
    "after_loss",
    "fills_unscaled",
)
"""What our rules, and the parts of a wait, look at of `schema.SEGMENTS`."""


@cache
def columns_read() -> tuple[str, ...]:
    """What the ledger reads of `schema.SEGMENTS`: `COLUMNS`, and what the rules of others look at beside them."""
    asked = {root for rule in rules.others().values() for test in _tests(rule) for root in test.meta.root_names()}
    return (*COLUMNS, *(name for name in schema.SEGMENTS.names if name in asked.difference(COLUMNS)))


def _tests(rule: Rule) -> tuple[pl.Expr, ...]:
    """The expressions of a rule."""
    return tuple(test for test in (rule.holds, None if rule.doubt is None else rule.doubt.where) if test is not None)


def _cause(name: str) -> pl.Expr:
    return pl.lit(name, CAUSE)


_NAMED = (
    ("handshake_ns", _cause("handshake")),
    ("sending_ns", _cause("network")),
    ("filled_ns", _cause("receiver-window")),
    ("untold_ns", pl.col("untold_cause")),
    ("caused_ns", pl.col("rule_cause")),
    ("network_ns", _cause("network")),
    ("unmeasured_ns", _cause("unknown")),
    ("peer_ns", _cause("peer")),
    ("rest_ns", pl.col("rest_cause")),
)
"""The parts of one wait, in their order in time, and the cause of each."""

_WAS_FULL_FIRST = (
    (pl.col("rule_cause") == "zero-window")
    & acks.HAD_IN_FLIGHT
    & pl.col("usable_before_bytes").is_between(0, pl.col("full_bytes"), closed="left")
).fill_null(value=False)
"""What ended with a closed window began with one full to its edge: it is closed when all is acknowledged. A sender that had gone beyond it
(a probe) found it closed."""
_FULL_UNTIL_NS = (
    pl.when(_WAS_FULL_FIRST)
    .then("idle_ns")
    .when((pl.col("rule_cause") == "nagle") & held.KEPT_BACK & held.KEPT_BEHIND_WINDOW)
    .then("window_opened_ns")
)
"""So long before its end a wait that began with a full window no longer had one; null where it did not begin so."""

_STOOD_BEHIND_QUEUE = (pl.col("rule_cause") == "send-buffer") & acks.DRAINED_BIT_BY_BIT
"""The narrowest place carried all of a flight that was as large as the buffer, and stood still for a round trip at most until the next came
to it: only for so long would a larger buffer have kept it busy."""

_UNTOLD_NS = (
    pl.when((pl.col("rule_cause") == "loss-recovery") & ~resent.IS_RECOVERING)
    .then((pl.col("left") - pl.col("loss_told_ns")).clip(0))
    .fill_null(0)
)
"""A repair begins when the sender is told that something is missing. Until then it waited as it would have done for any other ACK."""

_PARTS = tuple(part for part, _ in _NAMED)

_STEPS = ("left", "late", "blind", "unmeasured", "quiet", "moved", "undisturbed", "grown", "transit", "on_its_way", "caused", "before")
"""What is worked out on the way to them, and asked for more than once."""


def waits(segments: pl.LazyFrame, connections: pl.LazyFrame, also: Sequence[str] = ()) -> pl.LazyFrame:
    """Every wait of every direction, judged.

    Args:
        segments: rows of `schema.SEGMENTS`, at least `columns_read`, in capture order; here and below, the departures among them do.
        connections: rows of `schema.CONNECTIONS`, at least those of the segments.
        also: more columns of the segments that are wanted.

    Returns:
        The departures with the facts of their directions, and beside them `rule_cause` (null where no rule holds), `confidence`, and the
        nine parts of the wait (nanoseconds; they sum to `held_ns`). Not in it: the time before a direction's first departure and after its
        last (`edges`).
    """
    departures = segments.filter(pl.col("held_ns").is_not_null()).select(*dict.fromkeys((*columns_read(), *also)))
    facts_of = directions.of(connections)
    return split(judged(departures.join(facts_of, on=["conn", "from_client"], how="left", maintain_order="left")))


class _Facts:
    """What rules look at of each direction of some connections, to be put beside its departures: a few hundred bytes a direction.

    A join gives the same, and is three times as much work, because it makes the columns of the departures anew, too.
    """

    def __init__(self, connections: pl.LazyFrame) -> None:
        """Those of rows of `schema.CONNECTIONS`, collected now."""
        ways = directions.of(connections).select(*_WAY, *_facts_looked_at(connections)).collect().sort("from_client", "conn")
        conns = ways.filter("from_client")["conn"].to_numpy()
        self._known, self._conns = ways.drop(_WAY), conns.size
        self._first, self._span = conns.min(initial=conns.max(initial=0)), int(np.ptp(conns)) + 1 if conns.size else 0
        self._places = np.full(self._span + 1, ways.height, np.uint32)  # beyond all, of a connection that is not there
        self._places[conns - self._first] = np.arange(conns.size)

    def beside(self, departures: pl.LazyFrame) -> pl.LazyFrame:
        """The departures with the facts of their directions."""
        types = departures.collect_schema() | self._known.schema
        return departures.map_batches(self._put, predicate_pushdown=False, projection_pushdown=False, schema=types, streamable=True)

    def _put(self, rows: pl.DataFrame) -> pl.DataFrame:
        conns = self._places[np.minimum(rows["conn"].to_numpy() - self._first, self._span)]
        return rows.hstack(self._known[pl.Series(conns + rows["from_client"].to_numpy() * np.uint32(self._conns))])


def _facts_looked_at(connections: pl.LazyFrame) -> list[str]:
    """Those of `directions` that rules, and the parts of a wait (`split`), are made of."""
    tests = [test for rule in rules.in_order() for test in _tests(rule)]
    parts = (path.transit(pl.col("held_ns"), path.undisturbed()), path.EPSILON_NS, path.DRAINING_NS, path.QUEUED_NS)
    named = {"near_sender", "near_receiver", "sender_unplaced", "beginning_seen", "to_sender_ns"}
    untold = (where for where, _ in loss_recovery.UNTOLD)
    asked = columns.looked_at() | named | {root for expression in (*tests, *parts, *untold) for root in expression.meta.root_names()}
    return [name for name in directions.of(connections).collect_schema().names() if name in asked.difference(_WAY)]


def judged(departures: pl.LazyFrame) -> pl.LazyFrame:
    """The departures with the cause and the confidence of the first rule that holds.

    Whether a rule holds becomes a column first, so that what is asked of it four times is worked out once.
    """
    tested = [(rule, f"rule_{place}_holds") for place, rule in enumerate(rules.in_order()) if rule.holds is not None]
    departures = columns.beside(departures)
    _refuse_unknown(departures)
    departures = departures.with_columns(**{name: rule.holds for rule, name in tested if rule.holds is not None})
    cause, confidence = pl.lit(None, CAUSE), pl.lit(str(Confidence.CONSISTENT), CONFIDENCE)
    later, limited = pl.lit(None, CAUSE), pl.lit(value=False)
    for rule, name in reversed(tested):
        holds, own = pl.when(name), pl.lit(rule.cause, CAUSE)
        cause = holds.then(own).otherwise(cause)
        sure = pl.lit(str(rule.confidence), CONFIDENCE)
        if rule.doubt is not None:
            sure = pl.when(rule.doubt.where).then(pl.lit(str(Confidence.POSSIBLE), CONFIDENCE)).otherwise(sure)
        confidence = holds.then(sure).otherwise(confidence)
        limited = holds.then(pl.lit(rule.owns_until_window_opened)).otherwise(limited)
        if not rule.owns_until_window_opened:
            later = holds.then(own).otherwise(later)
    cause = pl.when(acks.WAS_MISSED).then(_cause("unknown")).otherwise(cause)
    unsure = acks.WAS_MISSED | (acks.ANSWER_MAY_BE_LOST & cause.is_null())
    confidence = pl.when(unsure).then(pl.lit(str(Confidence.POSSIBLE), CONFIDENCE)).otherwise(confidence)
    untold = _cause(loss_recovery.UNTOLD_OTHERWISE)
    for where, name in reversed(loss_recovery.UNTOLD):
        untold = pl.when(where).then(_cause(name)).otherwise(untold)
    return departures.with_columns(
        rule_cause=cause, confidence=confidence, owns_until_window_opened=limited, later_cause=later, untold_cause=untold
    )


def _refuse_unknown(departures: pl.LazyFrame) -> None:
    """RuleUnusable if a rule of others looks at what departures do not have beside them."""
    if not rules.others():
        return
    there = set(departures.collect_schema().names())
    for where, rule in rules.others().items():
        missing = sorted({root for test in _tests(rule) for root in test.meta.root_names()} - there)
        if missing:
            remedy = "docs/rules.md tells what rules may look at"
            raise RuleUnusable(f"the rule looks at {', '.join(missing)}, which is nowhere", where=where, remedy=remedy)


def split(departures: pl.LazyFrame) -> pl.LazyFrame:
    """The nine parts of each wait; `rest_cause` names the last."""
    col = pl.col
    held = col("held_ns")
    # A client's way was not measured yet when the SYN-ACK went there.
    there_ns = pl.when(col("from_client") & ~col("near_sender")).then(col("to_sender_ns")).otherwise(0)
    open_ns = pl.when(acks.ANSWERED_AGAIN).then(col("peer_first_ns")).otherwise(col("idle_ns").fill_null(0)) - there_ns
    handshake = pl.when(acks.IS_FIRST).then((held - open_ns).clip(0, held)).otherwise(0)
    carried = pl.max_horizontal(
        path.LINE_NS,
        pl.when((col("rule_cause") == "slow-start") | _STOOD_BEHIND_QUEUE).then(path.DRAINING_NS),
        pl.when(_STOOD_BEHIND_QUEUE).then(held - limits.RTT_NS),
    )
    sending = pl.min_horizontal(carried, held - col("handshake_ns"))
    departures = departures.with_columns(handshake_ns=handshake).with_columns(sending_ns=sending)
    departures = departures.with_columns(left=held - col("handshake_ns") - col("sending_ns"))
    # What was captured later than it left by its own timestamp did not stay with its sender so long.
    after, spoke = (col("window_opened_ns") - path.QUEUED_NS).clip(0), acks.PEER_SPOKE
    late = (
        pl.when(
            col("owns_until_window_opened")
            & (after > path.EPSILON_NS)
            & ~col("near_sender")
            & ~deferral.WINDOW_OWNS_ALL
            & ~window.ON_THE_WAY
        )
        .then(path.at_most(after, col("left")))
        .otherwise(0)
    )
    unexplained = col("rule_cause").is_null()
    # Without a handshake, the shortest round trip may be an answer that the other program took its time for.
    blind = unexplained & (col("unacked_bytes").is_null() | resent.IS_STRANGE | acks.MAY_BE_FAR | flow.ROOM_UNSEEN | flow.ACK_UNSEEN)
    # In the first wait of a capture that begins later, how far the sender is was not known yet when something came for it.
    ahead_ns = pl.when(acks.HEARD_OF_FIRST & ~col("beginning_seen") & col("sender_unplaced")).then(col("to_sender_ns")).otherwise(0)
    queued = pl.min_horizontal(path.QUEUED_NS, pl.coalesce("peer_last_ns", "idle_ns").fill_null(0))
    # Each is a column because a streaming query works out what is asked for twice twice.
    departures = departures.with_columns(
        late=late,
        blind=blind,
        unmeasured=unexplained & spoke & (blind | ~col("beginning_seen")),
        quiet=(pl.when(spoke).then(col("peer_last_ns")).otherwise(col("idle_ns").fill_null(0)) - ahead_ns).clip(0),
        moved=pl.max_horizontal(path.JITTER_NS, queued),
        undisturbed=pl.max_horizontal(path.undisturbed(), flow.STILL_QUEUED_NS),
    )
    grown = pl.when("owns_until_window_opened").then(pl.min_horizontal(window.GROWN_NS, col("left") - col("late"))).otherwise(0)
    transit = path.transit(held - col("quiet") - col("handshake_ns"), col("undisturbed")) - col("sending_ns")
    departures = departures.with_columns(
        grown=grown,
        transit=transit,
        on_its_way=path.at_most(col("peer_last_ns"), col("moved")),  # it left behind what the peer said
    )
    departures = departures.with_columns(
        caused=pl.when(unexplained).then(0).otherwise(col("left") - col("late") - col("grown")),
        transit=pl.when(spoke & (path.SAYS_WHEN | col("near_receiver")))
        .then(pl.min_horizontal("transit", "undisturbed"))
        .otherwise("transit"),
    )
    filled = (col("left") - _FULL_UNTIL_NS).clip(0).fill_null(0)
    transit = pl.min_horizontal(pl.max_horizontal("transit", 0) + col("on_its_way"), col("left"))
    departures = departures.with_columns(
        filled_ns=pl.min_horizontal(filled, "caused"),
        network_ns=pl.when(unexplained & ~col("blind") & ~col("unmeasured")).then(transit).otherwise("grown"),
        unmeasured_ns=pl.when("unmeasured").then(transit).otherwise(0),
    ).with_columns(untold_ns=pl.min_horizontal(_UNTOLD_NS, col("caused") - col("filled_ns")))
    departures = departures.with_columns(caused_ns=col("caused") - col("filled_ns") - col("untold_ns"))
    departures = departures.with_columns(before=pl.sum_horizontal("filled_ns", "untold_ns", "caused_ns", "network_ns", "unmeasured_ns"))
    opened = col("owns_until_window_opened") & col("later_cause").is_not_null()
    passing = pl.when(unexplained & ~col("blind")).then("on_its_way").otherwise(0)
    awaited = pl.max_horizontal(col("left") - (col("before") - passing) - col("peer_last_ns").fill_null(0), 0)
    departures = departures.with_columns(peer_ns=pl.when((unexplained | (~opened & (col("late") > 0))) & spoke).then(awaited).otherwise(0))
    rest = col("left") - col("before") - col("peer_ns")
    rest_cause = (
        pl.when("blind")
        .then(_cause("unknown"))
        .when(opened)
        .then(col("later_cause"))
        .when(acks.ANSWER_MAY_BE_LOST)
        .then(_cause("loss-recovery"))
        .otherwise(_cause("application"))
    )
    departures = departures.with_columns(rest_ns=rest, rest_cause=rest_cause)
    return departures.drop(_STEPS)


def _parts(**known: pl.Expr) -> dict[str, pl.Expr]:
    """All parts of a wait that no rule looks at; those that are not `known` are nothing."""
    return {part: known.get(part, pl.lit(0, pl.Int64)) for part in _PARTS}


def edges(connections: pl.LazyFrame) -> pl.LazyFrame:
    """The time of each direction before its first departure and after its last, as the same nine parts.

    Args:
        connections: rows of `schema.CONNECTIONS`.

    Returns:
        `conn from_client start_ns frame_before frame_after` and the parts, `rest_cause` naming the last.
    """
    facts_of = directions.of(connections)
    col = pl.col
    before = facts_of.filter(col("first_departure_ts_ns").is_not_null()).select(
        "conn",
        "from_client",
        start_ns=col("born_ns"),
        frame_before=pl.lit(None, pl.Int64),
        frame_after=col("first_departure_frame").cast(pl.Int64),
        **_parts(
            handshake_ns=pl.when("first_departure_is_syn").then(col("first_departure_ts_ns") - col("born_ns")).otherwise(0),
            rest_ns=pl.when("first_departure_is_syn").then(0).otherwise(col("first_departure_ts_ns") - col("born_ns")),
        ),
        rule_cause=pl.lit(None, CAUSE),
        untold_cause=pl.lit(None, CAUSE),
        rest_cause=_cause("unknown"),
        confidence=pl.lit(str(Confidence.CONSISTENT), CONFIDENCE),
    )
    held = col("ending_held_ns")
    spoke = col("ending_peer_last_ns").is_not_null()
    closing = col("finished")
    only_syn = ~closing & col("first_departure_is_syn") & (col("max_segment_bytes") == 0)
    again = col("from_client") & of_direction.known(col("other_syn_segments") > 1) & spoke
    open_ns = pl.when(again).then(col("ending_peer_first_ns")).otherwise(col("ending_idle_ns").fill_null(0))
    handshake = pl.when(only_syn).then((held - open_ns).clip(0)).otherwise(0)
    quiet = pl.when(spoke).then(col("ending_peer_last_ns")).otherwise(col("ending_idle_ns").fill_null(0))
    # Once all is acknowledged, a sender to which nobody ever speaks has nothing to send; of others, who would have gone on is not known.
    is_alone = col("beginning_seen") & (col("other_data_segments") == 0)
    sent_all = of_direction.known(is_alone & (2 * col("ending_idle_ns") >= held))
    cut = ~closing & ~col("ended_by_others") & ~sent_all
    in_flight = ~closing & ~spoke & col("ending_idle_ns").is_null()
    unmeasured = ~col("beginning_seen") & spoke
    undisturbed = path.undisturbed("ending_payload_bytes", "ending_peer_payload_bytes")
    transit = pl.when(closing).then(0).otherwise(path.transit(held - handshake - quiet, undisturbed))
    awaited = pl.when(~closing & spoke).then((held - handshake - col("ending_peer_last_ns") - transit).clip(0)).otherwise(0)
    after = facts_of.filter(held.is_not_null()).select(
        "conn",
        "from_client",
        start_ns=col("died_ns") - held,
        frame_before=col("ending_held_since_frame"),
        frame_after=pl.lit(None, pl.Int64),
        **_parts(
            handshake_ns=handshake,
            network_ns=pl.when(unmeasured).then(0).otherwise(transit),
            unmeasured_ns=pl.when(unmeasured).then(transit).otherwise(0),
            peer_ns=awaited,
            rest_ns=held - handshake - transit - awaited,
        ),
        rule_cause=pl.lit(None, CAUSE),
        untold_cause=pl.lit(None, CAUSE),
        rest_cause=pl.when(closing).then(_cause("close")).when(in_flight | cut).then(_cause("unknown")).otherwise(_cause("application")),
        confidence=pl.lit(str(Confidence.CONSISTENT), CONFIDENCE),
    )
    # Of a side that had been silent since before the capture, only what the other side sends is known to be awaited; and not that, where
    # the other side closes, and this one does not: it may have closed before the capture.
    lived = col("died_ns") - col("born_ns")
    heard = pl.when("beginning_seen").then(lived).otherwise((col("other_last_data_ts_ns") - col("born_ns")).fill_null(0))
    may_be_closed = ~col("beginning_seen") & col("other_finished")
    expecting = pl.when(col("other_departed") & ~may_be_closed).then(heard).otherwise(0)
    silent = facts_of.filter(held.is_null()).select(
        "conn",
        "from_client",
        start_ns=col("born_ns"),
        frame_before=pl.lit(None, pl.Int64),
        frame_after=pl.lit(None, pl.Int64),
        **_parts(peer_ns=expecting, rest_ns=lived - expecting),
        rule_cause=pl.lit(None, CAUSE),
        untold_cause=pl.lit(None, CAUSE),
        rest_cause=_cause("unknown"),
        confidence=pl.lit(str(Confidence.CONSISTENT), CONFIDENCE),
    )
    return pl.concat([before, after, silent])


def between(segments: pl.LazyFrame, connections: pl.LazyFrame) -> pl.LazyFrame:
    """The `waits` of all directions in the columns of `edges`."""
    return waits(segments, connections).select(_IN_TIME)


_IN_TIME = (
    *(pl.col(name) for name in _WAY),
    (pl.col("ts_ns") - pl.col("held_ns")).alias("start_ns"),
    pl.col("held_since_frame").alias("frame_before"),
    pl.col("frame").cast(pl.Int64).alias("frame_after"),
    *(pl.col(name) for name in (*_PARTS, "rule_cause", "untold_cause", "rest_cause", "confidence")),
)
"""Columns of waits → those of `edges`."""

_TOLD = ("frame_before", "frame_after", "confidence")


def sums(segments: pl.LazyFrame, connections: pl.LazyFrame) -> pl.DataFrame:
    """What `by_cause` needs: the waits of each direction, added up where they have the same causes.

    One pass over `segments`; memory is bounded by the number of directions.
    """
    by = ("conn", "from_client", "rule_cause", "untold_cause", "rest_cause")
    added = pl.col(_PARTS).sum()
    departures = _Facts(connections).beside(segments.filter(pl.col("held_ns").is_not_null()).select(columns_read()))
    inner = split(judged(departures)).group_by(by).agg(added).collect(engine="streaming")
    around = edges(connections).group_by(by).agg(added).collect(engine="streaming")
    return pl.concat([inner, around.select(inner.columns)])


def by_cause(sides: pl.DataFrame) -> pl.DataFrame:
    """Nanoseconds of each cause: `conn from_client cause ns`, causes without time left out.

    Args:
        sides: `sums`, or those of some connections: it takes several times their memory.
    """
    pieces = [
        sides.filter(pl.col(part) != 0).select("conn", "from_client", cause.alias("cause"), pl.col(part).alias("ns"))
        for part, cause in _NAMED
    ]
    return pl.concat(pieces).group_by("conn", "from_client", "cause").agg(pl.col("ns").sum())


def intervals(segments: pl.LazyFrame, connections: pl.LazyFrame) -> pl.LazyFrame:
    """The ledger itself: rows of `schema.LEDGER`, as far as memory is concerned one pass over `segments`.

    Intervals of one direction touch and never overlap. Those of a direction come in the order of time, but for the time before its first
    departure and after its last, which come at the end.
    """
    inner = between(segments, connections)
    parts = pl.concat([inner, edges(connections).select(inner.collect_schema().names())])
    return parts.map_batches(_pieces, schema=schema.LEDGER.polars_schema(), streamable=True)


def collected(segments: pl.LazyFrame, connections: pl.LazyFrame, seen: Callable[[pl.DataFrame], None]) -> pl.DataFrame:
    """All of `intervals`, held in memory, of connections of which `segments` has a few among many others.

    The rows are put together before they are judged: judging costs as much for a hundred rows as for some thousands.

    Args:
        segments: as for `waits`; one pass.
        connections: as for `waits`.
        seen: is given the departures, some at a time.
    """
    departures = segments.filter(pl.col("held_ns").is_not_null()).select(columns_read())
    known, found = _Facts(connections), []
    for rows in departures.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
        seen(rows)
        told = split(judged(known.beside(rows.lazy()))).select(_IN_TIME)
        found.append(_pieces(told.collect(engine="streaming")))
    return pl.concat([*found, _pieces(edges(connections).collect())])


def _pieces(waits: pl.DataFrame) -> pl.DataFrame:
    """Rows as of `edges` → rows of `schema.LEDGER`, one behind the other. A list of eight and `explode` would take ten times as long."""
    numbered, start = waits.with_row_index("place"), pl.col("start_ns")
    pieces = []
    for part, cause in _NAMED:
        end = start + pl.col(part)
        own = numbered.filter(pl.col(part) != 0)
        pieces.append(own.select("place", "conn", "from_client", start, end.alias("end_ns"), cause.alias("cause"), *_TOLD))
        start = end
    return pl.concat(pieces).sort("place", maintain_order=True).select(schema.LEDGER.names)
