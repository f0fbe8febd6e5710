"""How a sender goes on that has more to send: by ACKs, through a queue, behind a repair; and how long a stall is."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import of_direction
from tcptrace_lab.rules.columns import fact as _fact
from tcptrace_lab.rules.facts import window
from tcptrace_lab.rules.facts.acks import (
    ACK_JUST_CAME,
    ALL_ACKED,
    HAD_IN_FLIGHT,
    LATE_WITH_NEIGHBOUR,
    LITTLE_IN_FLIGHT,
    NOTHING_LOST,
    PEER_SPOKE,
    over_least_ns,
)
from tcptrace_lab.rules.facts.held import MAY_FILL_BUFFER
from tcptrace_lab.rules.facts.limits import LATEST_PROBE, LEAST_RTO_NS, NS_PER_MS, PROBE_ROUND_TRIPS, PROBE_TICKS_NS, RTT_NS, TRAIN_PART
from tcptrace_lab.rules.facts.path import ACK_CLOCKED, DRIFT_PART, EPSILON_NS, IS_OLD, SAYS_WHEN, WAS_DELAYED
from tcptrace_lab.rules.facts.released import LEFT_AT_ITS_PACE, RELEASED_BY_ACK
from tcptrace_lab.rules.facts.resent import IS_BARE_FIN, IS_NEEDLESS, IS_SMALL, SENT_AGAIN

_col, _known = pl.col, of_direction.known

BULK = _fact("bulk", RELEASED_BY_ACK & window.KNOWN & (~IS_SMALL | ACK_CLOCKED))
"""The program had given more than could leave; an ACK let this part go, and the window was not what held it."""

REFILLED = _fact(
    "refilled",
    HAD_IN_FLIGHT
    & ~LEFT_AT_ITS_PACE
    & ~IS_BARE_FIN
    & ~PEER_SPOKE
    & _known(_col("acked_ago_ns") <= _col("refill_ns"))
    & (~IS_OLD | MAY_FILL_BUFFER),
)
"""The program may have been woken by an ACK that made room in a full buffer: in old stacks, in one that was full but for a piece."""

_OVER_LEAST_NS = over_least_ns.fill_null(0) + (_col("echo_ns") - _col("reaction_min_ns")).fill_null(0)
_UNECHOED_QUEUE_NS = pl.when(SAYS_WHEN & _col("echo_ns").is_null()).then(_col("queued_ns"))
"""Where it is not known which ACK let it go, its own timestamp tells."""
IN_QUEUE = _fact("in_queue", _col("queue_ns") < pl.coalesce(_UNECHOED_QUEUE_NS, _OVER_LEAST_NS))
_ACKED_BEFORE_IT_SPOKE = ~PEER_SPOKE | _known(_col("idle_ns") > _col("peer_first_ns"))
STILL_QUEUED_NS = _fact(
    "still_queued_ns",
    pl.when(IN_QUEUE & LATE_WITH_NEIGHBOUR & HAD_IN_FLIGHT & ~LITTLE_IN_FLIGHT & _ACKED_BEFORE_IT_SPOKE)
    .then(_col("round_trip_ns"))
    .otherwise(0)
    .fill_null(0),
)
"""So long, as the last ACK told, what is in flight takes through a queue, whether its program has more or not. An ACK that comes with an
answer may have waited for the other side's program."""
_DRIFTED_NS = (_col("ts_ns") - _col("first_departure_ts_ns")) // DRIFT_PART
IN_OWN_QUEUE = _fact(
    "in_own_queue",
    _col("near_sender")
    & _col("ticks_milliseconds")
    & ~PEER_SPOKE
    & ~_known(_col("small_before"))
    & _known((_col("held_ns") > 0) & (_col("queued_ns") - _DRIFTED_NS >= _col("held_ns"))),
)
"""At its sender, behind a full segment: by its timestamp, which TCP writes, it had been handed down before the departure before it was
captured, and stood in a queue of the host's own since (a queueing discipline, as a shaper; packets are captured behind it). What the other
side said meanwhile it may have waited for: two clocks that drift apart by more show a queue that is none."""
UNHEARD = _fact("unheard", _col("near_sender") & _known(_col("held_ns") > RTT_NS) & (_col("acked_ago_ns") > RTT_NS).fill_null(value=True))
"""At the sender, no ACK came for a round trip before it left: of what the path did meanwhile its sender knew nothing."""
ONLY_LATE = _fact("was_only_late", _col("only_late") & (IN_QUEUE | WAS_DELAYED))
"""Behind the path nothing was missing or overtaken, and what came twice had been late in a queue: the path's rate spaces these bytes,
whatever their sender took for lost (as a tail-loss probe does, RFC 8985, 7)."""


_REPAIRED = RELEASED_BY_ACK & ~ONLY_LATE
REPAIRED_BY_TIMEOUT = _fact("was_repaired_by_timeout", _REPAIRED & _known(_col("repaired_by") == "timeout"))
"""Its flight had ended with a timeout, of which the ACK of what was sent again let it go: the congestion window had room for that one
segment alone (RFC 5681, 3.1: the loss window)."""
REPAIRED = _fact("was_repaired", _REPAIRED & _col("repaired_by").is_not_null() & window.KNOWN)
"""What was sent again filled the last hole, and the ACK of that let it go. Where no SYN tells the window's scale, it may have been full."""

PROBED_ON = _fact(
    "probed_on",
    _col("near_sender")
    & ~SENT_AGAIN
    & ~IS_OLD
    & NOTHING_LOST
    & _known((_col("unacked_bytes") >= 2 * _col("full_bytes")) & (_col("payload_bytes") >= _col("full_bytes")))
    & _known(_col("unacked_bytes") == _col("unacked_before_bytes"))
    & ~PEER_SPOKE
    & _known(PROBE_ROUND_TRIPS * _col("smoothed_ns") > PROBE_TICKS_NS)
    & _known(_col("held_ns").is_between(PROBE_ROUND_TRIPS * _col("smoothed_ns"), LATEST_PROBE * _col("smoothed_ns") + PROBE_TICKS_NS)),
)
"""A probe that asks with new data whether the flight before was lost, which was not: its ACKs were late in a queue (RFC 8985, 7.3;
only senders with SACK ask so). Where the timer's ticks are longer than two round trips, its time tells nothing."""

_UPDATE_LET_GO = ALL_ACKED & ~PEER_SPOKE & ACK_JUST_CAME & _known(_col("idle_ns") > EPSILON_NS)
ROOM_UNSEEN = _fact("room_unseen", ~window.KNOWN & HAD_IN_FLIGHT & ~IS_BARE_FIN & (RELEASED_BY_ACK | _UPDATE_LET_GO | IS_NEEDLESS))
"""An ACK let it go, or one more after all was acknowledged, or a timer sent it again for nothing, and how much room the window had is not
known, because no SYN tells its scale: it may have been full, or closed, as well as the congestion window or the send buffer used up."""

ACK_UNSEEN = _fact("ack_unseen", ~_col("near_sender") & ~_col("beginning_seen") & HAD_IN_FLIGHT & _col("round_trip_ns").is_null())
"""Away from its sender, no ACK in the capture had reached it yet: those of before the capture may have let it go."""

IN_TRAIN = _fact("in_train", BULK & _known(_col("held_ns") * TRAIN_PART <= RTT_NS))
"""ACKs let segments go one after the other, as the path let those before go: their spacing is the path's rate."""

PACED_PART = 2
"""A sender that spaces its flight sends two segments or more in each round trip (a heuristic: the smallest flights of BBR are four)."""

LEAST_STALL_NS = 10 * NS_PER_MS
STALL_NS = pl.min_horizontal(pl.max_horizontal(pl.lit(LEAST_STALL_NS), 2 * RTT_NS.fill_null(0)), RTT_NS.fill_null(0) + LEAST_RTO_NS)
"""A stall is a wait of so much: two round trips, or 10 ms on a LAN, but at most a round trip and the least retransmission timeout of Linux
(rule book B; TAPO). The shortest round trip counts, not the smoothed one: delayed ACKs would make that longer, and hide themselves."""
