"""What was in flight, what has been heard of it, how late, and whether that let the departure go."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import of_direction
from tcptrace_lab.rules.columns import fact as _fact
from tcptrace_lab.rules.facts.limits import DELAYED_ACK_NS, LATEST_ACK_NS, LEAST_RTO_NS, RTT_NS
from tcptrace_lab.rules.facts.path import EPSILON_NS, IS_OLD, QUEUED_NS, beyond_least_ns
from tcptrace_lab.rules.facts.resent import IS_SYN, SENT_AGAIN
from tcptrace_lab.vantage import LONGEST_PATH_NS

_col, _known = pl.col, of_direction.known

_NOTHING_HEARD = ~_col("beginning_seen") & _col("unacked_before_bytes").is_null()
"""The capture began within a connection, and the first ACK in it came behind the departure before: that one was in flight, at least."""
HAD_IN_FLIGHT = _fact("had_in_flight", _known(_col("unacked_before_bytes") > 0) | _NOTHING_HEARD)
SMALL_UNACKED = _fact("had_small_in_flight", _known(_col("small_unacked")) | (_col("never_full") & HAD_IN_FLIGHT))
LITTLE_IN_FLIGHT = _fact("little_in_flight", _known(_col("unacked_before_bytes") < 2 * _col("full_bytes")))
"""Fewer than two segments do not let an ACK go at once (RFC 5681, 4.2), nor do they make a queue."""
ALL_ACKED = _fact("all_acked", _known(_col("unacked_bytes") <= 0))
PEER_SPOKE = _fact("peer_spoke", _col("peer_last_ns").is_not_null())
ANSWERED_AGAIN = _fact(
    "was_answered_again",
    _col("from_client") & _known(_col("other_syn_segments") > 1) & PEER_SPOKE,
)
"""Of the first departure behind the SYN: the server has sent its SYN-ACK again, for which the connection was not open before (RFC 9293,
3.5); the last of them came `peer_first_ns` ago, and what the server said then behind it."""
_CUT_AT_MOST = (_col("full_bytes") - _col("payload_before_bytes")).clip(0)
WAS_MISSED = _fact("was_missed", ~_col("sender_unplaced") & _known(_col("missed_bytes") > _CUT_AT_MOST))
"""More left since the departure before than the capture holds, and than a tool can have cut off that one; away from the sender it was
acknowledged since, and so not lost before. When it left is not known, nor, so, how long this one waited and behind what flight, and no
verdict goes across such a hole (rule book C)."""
_LEFT_OUT = (
    ~_col("near_sender")
    & ~_col("sender_unplaced")
    & _col("numbered")
    & ~SENT_AGAIN
    & (_col("payload_bytes") > 0)
    & _known(_col("left_out_segments") > 0)
)
"""Away from its sender, which numbers its segments one by one: more had left since the departure before, and this one is the next all the
same."""
WAS_LOST_BEFORE = _fact("was_lost_before", _LEFT_OUT & ~PEER_SPOKE & _known(_col("held_ns") > RTT_NS))
"""It had left before, and was lost on its way to the capture point: where the other side sends no data, nothing else was to be sent, as an
ACK of such. What left once more did so a round trip later at least."""
_MOST_TIMERS_NS = 3 * (RTT_NS + LEAST_RTO_NS) // 4 * pl.lit(2).pow(_col("left_out_segments").clip(0, 8))
ANSWER_MAY_BE_LOST = _fact(
    "answer_may_be_lost", _LEFT_OUT & PEER_SPOKE & _known(_col("peer_last_ns").is_between(LEAST_RTO_NS, _MOST_TIMERS_NS))
)
"""The same behind data of the other side: it was lost, or an ACK, and the program was silent for as long as a timer. A timer of Linux,
whose sockets number so, runs for 200 ms and a round trip or two (RFC 8985, 7.2), and each doubles the next."""
ACK_JUST_CAME = _fact("ack_just_came", _known(_col("acked_ago_ns") <= EPSILON_NS))
NEWEST_WAITED = ALL_ACKED & _known(_col("held_ns") - _col("acked_ago_ns") - _col("rtt_min_ns") >= DELAYED_ACK_NS)
"""The newest byte that it acknowledges is that which left last, long before. It may have given no sample, so that the last is older."""

ACK_WAS_LATE = _fact(
    "ack_was_late",
    _known((_col("acked_lag_ns") - _col("rtt_min_ns").fill_null(0)).is_between(DELAYED_ACK_NS, LATEST_ACK_NS))
    & (~_known(_col("round_trip_ns") - _col("rtt_min_ns") < DELAYED_ACK_NS) | NEWEST_WAITED),
)
"""Of the oldest byte that it acknowledges, and of the newest, where that is known: else the oldest waited for its sender to send more."""

ACKED_AT_ONCE = _fact("acked_at_once", ALL_ACKED & (LITTLE_IN_FLIGHT | _known(4 * _col("held_ns") >= 3 * _col("round_trip_ns"))))
"""One ACK for all, and nothing left while it was awaited: what drains through a queue is acknowledged bit by bit."""

NOTHING_LOST = _fact("nothing_was_lost", _known(_col("retransmitted_segments") == _col("spurious_retransmissions")))
LEFT_BEHIND = _fact(
    "had_left_behind",
    _known(_col("held_ns") - (_col("acked_ago_ns") - QUEUED_NS) > RTT_NS + EPSILON_NS)
    & _known((_col("unacked_bytes") >= 2 * _col("full_bytes")) | (NOTHING_LOST & (_col("unacked_bytes") > 0))),
)
"""The ACK leaves something out that had left more than a round trip before: that had not arrived when the ACK left, and stood in a queue,
as the ACK or what it acknowledges may have. A timer's ACK is for all that has arrived (RFC 9293, 3.4); a single segment may be lost."""
LET_GO_BY_LATE_ACKS = _fact(
    "was_let_go_by_late_acks",
    _known(_col("unacked_bytes") >= 2 * _col("full_bytes")) & _known(_col("acked_lag_ns") - _col("held_ns") > RTT_NS + EPSILON_NS),
)
"""The departure before came more than a round trip behind what is acknowledged now, so that the ACKs before this one, which let that flight
go, were late as well: one after the other, as in a queue."""

OWN_LINE_NS = beyond_least_ns("line", "full_bytes")
over_least_ns = _col("round_trip_ns") - _col("rtt_min_ns") - OWN_LINE_NS
neighbour_over_ns = _col("neighbour_ns") - _col("rtt_min_ns") - OWN_LINE_NS
"""So much longer than the shortest round trip of a full segment the last one took, and that of the segment just before."""
_FOR_LESS_THAN_TWO = _known(_col("unacked_before_bytes") - _col("unacked_bytes") < 2 * _col("full_bytes"))
LATE_ALONE = _fact("was_late_alone", _known(neighbour_over_ns <= _col("queue_ns")) & (_FOR_LESS_THAN_TWO | IS_OLD))
"""The ACK came late, and that of the segment just before, in the same flight, had come in time: both had the same queue before them. It is
for less than two full segments, which a receiver may keep back (RFC 5681, 4.2); or for more, between old hosts, whose ACKs no adapter
gathers: out of a queue segments come one by one, and every second is acknowledged, unless the receiver waits for its program to read."""

LATE_WITH_NEIGHBOUR = _fact(
    "was_late_with_neighbour",
    _col("near_sender") & _known((neighbour_over_ns > _col("queue_ns")) & (over_least_ns <= 2 * neighbour_over_ns)),
)
"""The ACK of the segment just before came late, by itself, and this one no later than as much again: both went through a queue. A receiver
that delays its ACK has one for all that has come (RFC 9293, 3.4); an ACK that comes a timer behind its neighbour's was delayed."""

DRAINED_BIT_BY_BIT = _fact("was_drained_bit_by_bit", ALL_ACKED & ~LITTLE_IN_FLIGHT & ~PEER_SPOKE & LATE_WITH_NEIGHBOUR)
"""The flight, which is acknowledged to its last byte, went through a queue segment by segment."""

ACK_WAS_HELD = _fact(
    "ack_was_held",
    ACK_WAS_LATE
    & ~LEFT_BEHIND
    & ~LET_GO_BY_LATE_ACKS
    & (_FOR_LESS_THAN_TWO | LATE_ALONE)
    & _known(2 * _col("held_ns") >= _col("acked_lag_ns") - _col("rtt_min_ns").fill_null(0)),
)
"""A late ACK for less than two full segments, or late alone, and the sender stood still for most of the time that it was late: in a
queue it would have come one by one with others, or, in one that others fill, leave out what left long before."""

HEARD_OF_FIRST = _col("unacked_before_bytes").is_null() & _col("unacked_bytes").is_not_null()
"""No ACK had come before the departure before, and one has come since."""
IS_FIRST = _fact("is_first", _col("beginning_seen") & ~IS_SYN & HEARD_OF_FIRST)
"""The first data behind the handshake. In a capture that begins later, the first that is seen is not it."""
_AS_SOON_AS_EVER = _col("sender_unplaced") & _known(
    _col("peer_last_ns").is_between(_col("to_sender_ns"), _col("to_sender_ns") + EPSILON_NS)
)
_SYN_UNSEEN = IS_FIRST & ~_col("near_sender") & (_col("other_syn_segments") == 0)
MAY_BE_FAR = _fact(
    "may_be_far",
    (ALL_ACKED & ~PEER_SPOKE & _col("sender_unplaced") & ~_known(_col("idle_ns") > LONGEST_PATH_NS)) | _AS_SOON_AS_EVER | _SYN_UNSEEN,
)
"""The sender may be as far away as this departure came behind the ACK, or its program so late: nothing else tells how far it is. Behind a
message, that is so where it answered about as soon as it ever did, and behind a SYN-ACK where the SYN was not captured: in the first waits
of a capture the way there is not yet taken off."""
