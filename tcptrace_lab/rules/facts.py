"""The words that rules are written in: Polars expressions over one departure and what is known of its direction.

A departure is a row of `schema.SEGMENTS` with data, SYN or FIN; `ledger.waits` puts the facts of its direction beside it (`of_direction`),
and then, column by column, what follows from both (`columns.beside`). None of these expressions looks at another row. Unknown is false
here: a rule that needs a value does not hold without it.
"""

from __future__ import annotations

import polars as pl

from tcptrace_lab import rates
from tcptrace_lab.rules import of_direction
from tcptrace_lab.rules.columns import fact as _fact
from tcptrace_lab.rules.of_direction import AROUND_BYTES, CAUSAL_NS, HELD_TIMES, LEAST_FRAME_BYTES, on_line
from tcptrace_lab.vantage import LONGEST_PATH_NS

NS_PER_MS, RTT_NS = of_direction.NS_PER_MS, of_direction.RTT_NS
FIN, SYN, URG = 0x01, 0x02, 0x20

DELAYED_ACK_NS = 20 * NS_PER_MS
"""An ACK that lags this much behind the round trip was delayed: half of the shortest timer in use (Linux and FreeBSD, 40 ms)."""

LATEST_ACK_NS = 500 * NS_PER_MS
"""No ACK may be delayed longer (RFC 5681, 4.2)."""

LEAST_RTO_NS = 200 * NS_PER_MS
"""The least retransmission timeout of Linux (`TCP_RTO_MIN`)."""

LEAST_OVERRIDE_NS = 100 * NS_PER_MS
"""A sender that waits for more room in the window gives up no sooner (RFC 9293, 3.8.6.2.1: 0.1 to 1 s; BSD: `TCPTV_PERSMIN`, 5 s)."""

LONGEST_TIMEOUT_NS = 128_000 * NS_PER_MS
"""No stack waits longer for its retransmission timer: Linux 120 s (TCP_RTO_MAX), BSD 64 s (TCPTV_REXMTMAX), twice that with a slow tick."""

INITIAL_SEGMENTS = 10
"""The initial congestion window (RFC 6928)."""

TRAIN_PART = 8
"""A departure that an ACK lets go within this part of a round trip of the one before belongs to a train that the path has spaced; the waits
between flights are longer (a heuristic)."""

PROBE_ROUND_TRIPS, LATEST_PROBE, PROBE_TICKS_NS = 2, 2.25, 12 * NS_PER_MS
"""A tail-loss probe leaves so many smoothed round trips after the last segment (RFC 8985, 7.2); in Linux at least two jiffies later, and
its timer may run an eighth longer (`tcp_schedule_loss_probe`; kernel/time/timer.c: levels of eight)."""

CLUSTER_BYTES = 2048
"""A cluster of mbufs in 4.4BSD (`MCLBYTES`), to whole ones of which it rounds a larger MSS (`tcp_mss`)."""

LEAST_BUFFER_BYTES = 2048
"""No stack has a smaller send buffer by itself: 4.2BSD 2,048 bytes (`tcp_sendspace`). The smallest that a program can have in Linux
is 4,608 bytes (`SOCK_MIN_SNDBUF`), the kernel's own part of 832 for each segment included: one of 3,776 fills it, or several small ones,
and behind one of 2,241 it counts as full for a program that polls (`sk_stream_min_wspace`)."""

_col, _known = pl.col, of_direction.known

EPSILON_NS = _col("epsilon_ns")
"""An event so soon after another may be its effect."""


def _beyond_least_ns(line: str, payload: str) -> pl.Expr:
    """How much longer than a SYN, of which the shortest round trip mostly is, a segment occupies the line."""
    return on_line(pl.max_horizontal(_col(payload).fill_null(0) + (AROUND_BYTES - LEAST_FRAME_BYTES), 0), line)


def undisturbed(sent: str = "payload_before_bytes", answered: str = "peer_payload_bytes") -> pl.Expr:
    """The round trip of a segment and what comes back for it, with nothing in their way. The arguments name columns with their data."""
    return RTT_NS + _beyond_least_ns("line", sent) + _beyond_least_ns("other_line", answered)


def at_most(bound: pl.Expr, value: pl.Expr) -> pl.Expr:
    """The value, or the bound where that is known and less: `min_horizontal`, which takes three times as long where there are nulls."""
    return pl.when(bound < value).then(bound).otherwise(value)


def transit(gap_ns: pl.Expr, undisturbed_ns: pl.Expr) -> pl.Expr:
    """How much of a time something was on its way: at most an undisturbed round trip, and away from the sender what paths vary by."""
    return pl.max_horizontal(pl.min_horizontal(gap_ns, undisturbed_ns + _col("unsteady_ns")).fill_null(0), 0)


LINE_NS = _fact(
    "line_part_ns",
    on_line(pl.max_horizontal(_col("payload_before_bytes") + AROUND_BYTES, LEAST_FRAME_BYTES), "line"),
)
"""So long the sender's line carries the departure before, and whatever else may hold the next byte, it could not leave. Where the sender's
own host is slower than its line, it is the host that needs so long for a segment. Known near the sender alone."""
_STOOD_BEFORE_NS = _col("acked_lag_ns") - _col("held_ns")
"""So long before the wait the oldest byte left that its ACK was for: the flight's first."""
DRAINING_NS = _fact(
    "draining_ns",
    pl.when(_col("near_sender") & (_col("drained_acks") >= rates.LEAST_SAMPLES))
    .then((_col("unacked_before_bytes") * _col("drained_ns") // _col("drained_bytes") - _STOOD_BEFORE_NS).clip(0))
    .fill_null(0),
)
"""So long the path's narrowest place still carries the flight that is out, at the rate at which queues drained: it had begun with the
flight's first byte. A larger flight would have waited for it as well."""
IS_OLD = _known(_col("old"))
"""The sender's SYN offers neither SACK nor timestamps: such stacks are older than both, and than pacing (Linux 3.12, 2013)."""
ACK_CLOCKED = _col("ack_clocked")
"""Most segments of the direction leave at once when an ACK comes."""

DRIFT_PART = 10_000
"""Two clocks drift apart by no more than this part (a heuristic: 100 in a million are a bad quartz)."""

_BY_TICKS_NS = (
    pl.when(_col("ticks_milliseconds"))
    .then((_col("sent_ticks") + 1) * NS_PER_MS + _col("held_ns") // DRIFT_PART)
    .otherwise((_col("sent_ticks") + 1) * _col("tick_ns"))
)
"""The longest that the wait can have been by the sender's clock. Ticks that are counted on a capture behind a queue that grows seem longer
than they are: where they are milliseconds, that counts."""
JITTER_NS = _fact(
    "jitter_ns", pl.max_horizontal(pl.when(_col("near_sender")).then(0).otherwise(_col("held_ns") - _BY_TICKS_NS).fill_null(0), 0)
)
"""So much longer than by the sender's own clock the wait was where it was captured: the path delayed the departure (RFC 7323, 3: timestamps
are taken when a segment is sent)."""
SAYS_WHEN = ~_col("near_sender") & _col("ticks_milliseconds") & _col("queued_ns").is_not_null()
"""Away from its sender, and by its timestamp the path's delay is known: it need not be allowed for."""
QUEUED_NS = _fact("was_queued_ns", pl.when(SAYS_WHEN).then(_col("queued_ns")).otherwise(0))
"""So much longer than the quickest before it, by its own timestamp, it took to the capture point, whoever filled the queues on its way."""
_AT_ONCE = ~_col("near_sender") & (_col("sent_ticks") == 0) & (2 * _col("held_ns") > _col("tick_ns"))
WAS_DELAYED = _fact("was_delayed", ((JITTER_NS > CAUSAL_NS) & (_col("held_ns") < 2 * JITTER_NS)) | _known(_AT_ONCE))
"""Most of the wait is the path's, or the departure had left at once behind the one before and was spaced on the way."""
IN_OWN_QUEUE = _fact(
    "in_own_queue",
    _col("near_sender") & _col("ticks_milliseconds") & _known((_col("held_ns") > 0) & (_col("queued_ns") >= _col("held_ns"))),
)
"""At its sender: by its timestamp, which TCP writes, it had been handed down before the departure before it was captured, and stood in a
queue of the host's own since (a queueing discipline, as a shaper; packets are captured behind it)."""
KIND = _col("kind")

IS_SYN = _fact("is_syn", _col("flags") & SYN > 0)
IS_BARE_FIN = _fact("is_bare_fin", (_col("flags") & FIN > 0) & (_col("payload_bytes") == 0))
IS_SMALL = _fact(
    "is_small",
    (_known(_col("small")) | (_col("never_full") & (_col("payload_bytes") > 0))) & ~_known(_col("payload_bytes") == _col("rounded_bytes")),
)
_SENT_AGAIN = _fact("sent_again", _col("resent_by").is_not_null())
_SPURIOUS = _fact("is_spurious", KIND == "spurious")
_REPEATS_SYN = IS_BARE_FIN & (_col("seq") == 0)
"""A FIN in the place of the SYN repeats nothing."""
IS_RESENT = _fact("is_resent", _SENT_AGAIN & ~_REPEATS_SYN & _known(_col("held_ns") <= LONGEST_TIMEOUT_NS))
IS_TIMED_OUT = _fact("is_timed_out", IS_RESENT & _known(_col("resent_by") == "timeout"))
IS_REPAIR = _fact("is_repair", IS_RESENT & ~_SPURIOUS & (IS_TIMED_OUT | _known(_col("unacked_bytes") != 0)))
"""Sent again, and not for nothing: not all of it was acknowledged, or the ACK had not come when the timer ran out."""
TIMER_CAME_BEFORE_ACK = (
    IS_TIMED_OUT
    & ~_SPURIOUS
    & _known(_col("tells_no_copies"))
    & _known(_col("unacked_before_bytes") < 2 * _col("full_bytes"))
    & _known(_col("held_ns") - RTT_NS <= LATEST_ACK_NS)
)
"""Perhaps nothing was lost: the ACK of fewer than two segments may be delayed longer than the sender's timer runs (Linux: 200 ms; lwIP: up
to 250), a copy lets it go at once, and neither DSACK nor a timestamp tells which of the two it is for."""
IS_LATE_FIN = _fact(
    "is_late_fin",
    IS_BARE_FIN
    & IS_RESENT
    & (_known(_col("unacked_bytes") <= 1) | (IS_TIMED_OUT & _col("unacked_bytes").is_null()))
    & ~_known(_col("other_last_data_ts_ns") > _col("ts_ns") - _col("held_ns")),
)
"""A FIN sent again, when neither side has data left: the FIN is all that is not acknowledged, and the other side sent none since. Where it
goes on to send, it may have waited for that FIN as for the end of a request. A timer sends the oldest again that is not acknowledged
(RFC 6298, 5.4): where the capture holds no ACK, that tells as much."""
IS_STRANGE = _fact("is_strange", _SENT_AGAIN & ~IS_RESENT)
"""Sent again in a way that no stack does: two captures in one file, or segments that others made."""
IS_NEEDLESS = _fact("is_needless", _known((_col("resent_by") == "tail_probe") | _SPURIOUS))
"""Sent again although nothing was lost, or only to ask whether something was: it does not tell what holds the next new byte."""
IS_WINDOW_PROBE = _fact("is_window_probe", KIND == "zero_window_probe")
_REPAIR_UNSEEN = (
    ~_col("near_sender")
    & _known(_col("uses_sack"))
    & _known(_col("out_of_order_segments") == 0)
    & _known(_col("loss_told_ns") == _col("held_ns"))
    & _col("repaired_by").is_null()
    & _known(_col("unacked_bytes") > 0)
)
"""Away from its sender, where nothing was overtaken: by the departure before, as many SACK blocks had reached the sender as make it repair
(RFC 6675, 5), and what is missing has not come since. The repair was lost on its way here as well."""
IS_RECOVERING = _fact("is_recovering", _known(_col("recovering")) | _REPAIR_UNSEEN)

AFTER_LOSS = _fact("is_after_loss", _known(_col("after_loss")))
HAS_BEGUN_ANEW = _fact(
    "has_begun_anew",
    _col("only_late") & _known(_col("flight_bytes") == 0) & _known(_col("unacked_before_bytes") >= INITIAL_SEGMENTS * _col("full_bytes")),
)
"""The first flight after a pause, with a whole initial window in it (RFC 5681, 4.1), of a sender whose resends were all for nothing."""
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
    & ~_SENT_AGAIN
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

_OWN_LINE_NS = _beyond_least_ns("line", "full_bytes")
_neighbour_over_ns = _col("neighbour_ns") - _col("rtt_min_ns") - _OWN_LINE_NS
_FOR_LESS_THAN_TWO = _known(_col("unacked_before_bytes") - _col("unacked_bytes") < 2 * _col("full_bytes"))
LATE_ALONE = _fact("was_late_alone", _known(_neighbour_over_ns <= _col("queue_ns")) & (_FOR_LESS_THAN_TWO | IS_OLD))
"""The ACK came late, and that of the segment just before, in the same flight, had come in time: both had the same queue before them. It is
for less than two full segments, which a receiver may keep back (RFC 5681, 4.2); or for more, between old hosts, whose ACKs no adapter
gathers: out of a queue segments come one by one, and every second is acknowledged, unless the receiver waits for its program to read."""

DRAINED_BIT_BY_BIT = _fact(
    "was_drained_bit_by_bit",
    _col("near_sender") & ALL_ACKED & ~LITTLE_IN_FLIGHT & ~PEER_SPOKE & _known(_neighbour_over_ns > _col("queue_ns")),
)
"""The flight is acknowledged to its last byte, and the ACK of the segment just before came as late, by itself: the flight went through a
queue segment by segment. A receiver that delays its ACK has one for all that has come (RFC 9293, 3.4)."""

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

LET_GO_PART = 8
"""An ACK that let a departure go came within this part of its wait before its end (a heuristic; the engine counts so, too)."""
ACK_HAD_LAIN = _fact(
    "ack_had_lain",
    SAYS_WHEN
    & _known(4 * _col("held_ns") < 3 * RTT_NS)
    & _known(_col("echo_ns") - _col("reaction_min_ns") - QUEUED_NS > CAUSAL_NS)
    & _known(LET_GO_PART * _col("acked_ago_ns") > _col("held_ns")),
)
"""Away from the sender, where a share of the round trip is allowed for the path's unsteadiness, some ACK seems to let go whatever leaves
more often than that. By the timestamp that it echoes, though, and its own, its sender had known of that ACK for some time: they tell more
exactly. What waits for a flight to be acknowledged waits longer."""

_TAKEN_FOR_SMALL = _known(_col("full_bytes") > _col("rounded_bytes"))
"""The engine did not know yet that the sender rounds its MSS: full segments that passed a small one looked like small ones themselves."""
_PASSES = _known(_col("small_passes")) & ~_TAKEN_FOR_SMALL & ~_col("none_passed")
_FITS_IN_ANY = _known(
    _col("unacked_before_bytes") + _col("payload_bytes") <= pl.max_horizontal("full_bytes", pl.lit(of_direction.DEFAULT_MSS_BYTES))
)
"""No congestion window is smaller than a segment (RFC 5681, 3.1)."""
ONE_IN_FLIGHT = _known((_col("unacked_before_bytes") == _col("payload_before_bytes")) & (_col("unacked_before_bytes") < LEAST_BUFFER_BYTES))
NOTHING_WAS_SHORT = _fact(
    "nothing_was_short",
    IS_SMALL & ~AFTER_LOSS & ONE_IN_FLIGHT & _FITS_IN_ANY & _known(_col("usable_before_bytes") > _col("payload_bytes")),
)
"""One segment was in flight, small enough that neither the congestion window, the receiver's, nor a send buffer was short of room for this
one: nothing but Nagle's rule can have kept it in the stack."""


PACE_PART = 4
"""What comes at a pace comes no sooner and no later than by this part of it (a heuristic)."""
REACTION_NS = NS_PER_MS // 10
"""A host lets go within this time of an ACK what waits for it (a heuristic: five times what it needs for a segment, `BURST_NS`)."""

_TWO_BURSTS_FLEW = _known(_col("unacked_before_bytes") >= 2 * _col("paced_payload_bytes"))
_PACE_IS_NO_ROUND_TRIP = _TWO_BURSTS_FLEW | ~_known(
    (_col("paced_ns") * (PACE_PART + 1) >= PACE_PART * RTT_NS) & (_col("paced_ns") * (PACE_PART - 1) <= PACE_PART * (RTT_NS + NS_PER_MS))
)
"""One flight in each round trip, and a program that goes on some time behind its ACK, look like bursts at a pace."""
_NO_ACK = ~_known(_col("acked_ago_ns") <= pl.max_horizontal(pl.lit(CAUSAL_NS), of_direction.CAUSAL_SHARE_NEAR * RTT_NS))
_ITS_ACK_NS = pl.when(_col("near_sender")).then("acked_ago_ns").otherwise(_col("echo_ns") - QUEUED_NS)
_LATER_THAN_ITS_ACK = ~_known(_ITS_ACK_NS - _col("reaction_min_ns").fill_null(0) <= REACTION_NS)
_ARRIVES_NS = RTT_NS - pl.when(_col("near_sender")).then(0).otherwise(RTT_NS // 32)
"""Away from the sender an ACK is taken to reach it a little sooner than the shortest round trip tells (`TOLERANCE_PART` of the engine)."""
_WITHOUT_PAUSE = (
    _TWO_BURSTS_FLEW
    & _known(_col("unacked_before_bytes") * _col("paced_ns") // _col("paced_payload_bytes") >= _ARRIVES_NS)
    & _LATER_THAN_ITS_ACK
)
"""What is in flight takes a round trip at that pace: the ACKs of a smaller flight leave a pause, and those of a larger one tell of a queue.
It came later than ACKs let go."""
_QUEUE_BEFORE_IT = _known(
    _col("queue_ns") < pl.when(SAYS_WHEN).then(_col("queued_ns")).otherwise(_col("round_trip_ns") - _col("rtt_min_ns") - _OWN_LINE_NS)
)
LEFT_AT_ITS_PACE = _fact(
    "left_at_its_pace",
    _col("paces")
    & HAD_IN_FLIGHT
    & ~IS_BARE_FIN
    & ~PEER_SPOKE
    & ~_QUEUE_BEFORE_IT
    & ~_known(_col("small_before"))
    & _known((PACE_PART - 1) * _col("paced_ns") <= PACE_PART * _col("held_ns"))
    & _known(PACE_PART * _col("held_ns") <= (PACE_PART + 1) * _col("paced_ns"))
    & ((_NO_ACK & _PACE_IS_NO_ROUND_TRIP) | _WITHOUT_PAUSE),
)
"""The sender had more than full segments, and bursts of them leave evenly: this one, too, which no ACK let go, whatever came before it by
chance. The path is as steady as the bursts are: away from the sender, too, an ACK that let it go would have come no sooner before it than
near the sender."""
PACED_BY_SENDER = LEFT_AT_ITS_PACE & (_col("near_sender") | SAYS_WHEN)
"""Away from the sender, where no timestamps tell of queues, a path that lets bursts pass (a token bucket) looks alike."""

RELEASED_BY_ACK = _fact(
    "was_released_by_ack",
    HAD_IN_FLIGHT
    & ~IS_BARE_FIN
    & ~ACK_HAD_LAIN
    & ~(NOTHING_WAS_SHORT & _PASSES)
    & ~LEFT_AT_ITS_PACE
    & pl.when(ALL_ACKED).then(~PEER_SPOKE & _known(_col("idle_ns") - QUEUED_NS <= EPSILON_NS) & ~MAY_BE_FAR).otherwise(ACK_JUST_CAME),
)
"""An ACK without data let it leave: the program cannot have known of it."""

IN_BURST = _fact("in_burst", _col("acked_ago_ns").is_null() & _known(_col("held_ns") <= _col("burst_ns")))

_room = _col("usable_before_bytes")
WINDOW_WAS_FULL = _fact(
    "window_was_full",
    _known((_room < _col("payload_bytes")) | (_room < 1)) & (_room < _col("full_bytes")).fill_null(value=True),
)
"""There was room for less than a full segment, and for less than this one, or for none."""
_LAST_ACK_CAME = _col("near_sender") | _known(_col("since_last_ack_ns") > RTT_NS + EPSILON_NS)
"""What the last ACK said of the window had reached the sender when this left: away from it, a round trip after the ACK was seen."""
_room_now = pl.when(_LAST_ACK_CAME).then(_col("usable_window_bytes")).otherwise(_room)
WINDOW_CUT = _fact("window_cut", IS_SMALL & _known(_col("payload_bytes") >= _room_now) & _known(_room < _col("full_bytes")))
"""A small segment that takes all the room there was: the sender had waited for more room, and gave up (RFC 9293, 3.8.6.2.1: override)."""
WINDOW_FILLED = _fact("window_filled", IS_SMALL & _known(_col("payload_bytes") == _col("usable_window_bytes")))
"""A small segment that fills the window to the byte: whatever opened it before, it held this one, too."""
FIRST_FORCED_IN = _fact(
    "first_was_forced_in",
    _col("near_sender")
    & IS_FIRST
    & WINDOW_FILLED
    & _known(_col("usable_window_bytes") < _col("full_bytes"))
    & _known(_col("idle_ns") >= LEAST_OVERRIDE_NS)
    & _known(_col("reaction_min_ns") >= LEAST_OVERRIDE_NS),
)
"""The same of the first data of all, for which the window had stood open since the handshake: no opening of it ever let this sender go on
sooner than its timer, so that the timer is what let this go, too."""
_EDGE_WAS_REACHED = _known(_col("small_before")) & _known(_room == 0)
"""The departure before was cut to the room there was: the program had given more."""
FORCED_IN = _fact(
    "was_forced_in",
    ~_col("near_sender")
    & IS_SMALL
    & _EDGE_WAS_REACHED
    & ~PEER_SPOKE
    & _known(_col("idle_ns") >= LEAST_RTO_NS)
    & _known(_col("window_opened_ns") - _col("acked_ago_ns") > EPSILON_NS),
)
"""The same away from the sender, where the room that it knew of is not seen: what was cut before waited for more room than the ACKs made,
until the sender's timer (RFC 9293, 3.8.6.2.1) or its window probe's (Linux, `tcp_send_probe0`: an RTO) let it go."""
FORCED_IN_UNSCALED = _fact(
    "was_forced_in_unscaled",
    _known(_col("fills_unscaled")) & IS_SMALL & ALL_ACKED & ~PEER_SPOKE & _known(_col("idle_ns") >= LEAST_OVERRIDE_NS),
)
"""The same where no SYN tells the scale of the window: that a small segment ends to the byte where the window does by one of the fifteen
scales, after its sender had waited so long with nothing in flight, is no chance."""
WINDOW_WAS_NEARLY_FULL = _fact("window_was_nearly_full", _known(_room < 2 * _col("full_bytes")))
_EMPTIED_LONG_AGO_NS = pl.when(ALL_ACKED & (_col("idle_ns") > EPSILON_NS)).then(_col("idle_ns"))
"""Where a window is smaller than a segment, it is all open when all is acknowledged."""
WINDOW_LET_GO = _fact(
    "window_let_go",
    ~_known(_col("window_opened_ns") > EPSILON_NS)
    | ~_col("near_sender")
    | _known(_col("max_window_bytes") <= _col("payload_bytes"))
    | WINDOW_CUT,
) & ~(_col("near_sender") & _known(_col("peer_last_ns") < pl.coalesce("window_opened_ns", _EMPTIED_LONG_AGO_NS)))
"""What a window holds leaves when it opens. Where the sender sent nothing then, or only when an answer came, it had nothing to send, unless
there is no room for a full segment and this one takes all of it (RFC 9293, 3.8.6.2.1). Away from the sender, that it was so is not
seen so exactly."""
_OPENED_BEFORE_THE_LAST = _known(_col("window_opened_ns") > _col("held_ns"))
"""The departure before, which left before the window opened, came to the capture point behind what that ACK can have let go."""
_ACK_NOT_SEEN = _known(_col("in_flight_bytes") < _col("unacked_bytes")) & _known(
    _col("since_last_ack_ns") > _col("reaction_min_ns") + pl.max_horizontal(EPSILON_NS, CAUSAL_NS)
)
"""It does not know of an ACK that would have reached its sender, had it left as late as the quickest way tells."""
ON_THE_WAY = _fact("was_on_the_way", ~_col("near_sender") & _known(_col("flight_bytes") > 0) & (_OPENED_BEFORE_THE_LAST | _ACK_NOT_SEEN))
"""Away from its sender: it had left long before, and stood in a queue that was there before, whoever filled it. Of the first
flight that is not said: as much as the window its ACK opens the congestion window."""
GROWN_NS = _fact(
    "grown_ns",
    pl.when(SAYS_WHEN)
    .then(_col("queue_grew_ns"))
    .when(~_col("near_sender") & (ON_THE_WAY | _col("flight_bytes").is_null()))
    .then(JITTER_NS)
    .otherwise(0),
)
"""By so much the queue was longer for it than for the departures before: that is the path's, whatever held its sender. What a queue grew
and shrank by meanwhile made one wait longer and another shorter. Where no clock tells of the queue, the departure before does."""
WINDOW_KNOWN = _fact("window_known", _room.is_not_null())
WINDOW_OPENED = _fact("window_opened", _col("window_opened_ns").is_not_null())

_NEVER_HELD = _col("flags") & (FIN | URG) > 0
"""A close sends what is left, and urgent data leave at once (Linux, `tcp_send_fin`; 4.4BSD, `tcp_output`): they wait for their program."""
_HELD_NOW = _fact("held_now", ~_PASSES & _col("holds_small"))
STANDS = _fact("flight_stands", _known(_col("unacked_before_bytes") <= _col("flight_bytes")) & ~AFTER_LOSS)
"""The flight is no larger than one of the round trip before. The congestion window had room for that one, and slow start adds to it with
each ACK (RFC 5681, 3.1): so it is not what holds this one back, but for a sender that began anew after a pause."""
HAS_FLOWN = _fact("has_flown", STANDS | _known(_col("flown_before")))
"""The same of all flights before, however long ago, but for a sender that may have begun anew. Behind a loss, of those since, if they have
stood for so long that the congestion avoidance of old stacks would have made them larger: a segment in each round trip (RFC 5681, 3.1)."""


def _is_half(payload: str) -> pl.Expr:
    """BSD lets half of the largest window pass, whatever Nagle's rule says (`tcp_output`; RFC 9293, 3.8.6.2.1)."""
    return IS_OLD & _known(_col(payload) >= _col("max_window_bytes") // 2)


IS_HALF = _fact("is_half_a_window", _is_half("payload_bytes"))
LEFT_AS_HALF = _fact("left_as_half_a_window", IS_HALF & _known(_col("reaction_min_ns") < LEAST_OVERRIDE_NS))
"""Such a segment leaves as soon as it is given; its sender was seen to go on sooner than a timer that waits for more room."""
BUFFER_EMPTIED = _fact("buffer_emptied", _known(_col("pushed_before")) & of_direction.emptied(_col("unacked_before_bytes")))
_AT_A_STOP = of_direction.at_a_stop(_col("unacked_before_bytes")) | BUFFER_EMPTIED
_MAY_BE_HELD = _fact("may_be_held_at_all", IS_SMALL & ~_NEVER_HELD & ~IS_HALF & ~_AT_A_STOP)
_BEHIND_HALF = _known(_col("small_before")) & _is_half("payload_before_bytes")
WRITTEN_WITH_THE_ACK = _fact(
    "written_with_the_ack",
    RELEASED_BY_ACK
    & ~IS_OLD
    & SMALL_UNACKED
    & ~_known(_col("small_before"))
    & _known(_col("small_held_went_on") >= HELD_TIMES)
    & _known(_col("unacked_before_bytes") > 2 * _col("full_bytes")),
)
"""Behind full segments an ACK lets a small one go, and time after time more follows it at once: its program gave all of that just then,
and so was woken by the ACK. What a program that wants to go on has left in the buffer does not wait for Nagle's rule: Linux pushes it when
it blocks its program (`tcp_sendmsg`, TCP_NAGLE_PUSH), and in other stacks of today the ACK of the flight's first two segments wakes the
program, which makes it a full one. Old receivers acknowledge more at once."""
_KERNEL_LET_GO = ~_col("near_sender") | _known(
    _col("acked_ago_ns") <= pl.max_horizontal(pl.lit(REACTION_NS), _col("held_ns") // LET_GO_PART)
)
"""Near the sender. What Nagle's rule holds is let go by the host that takes the ACK, and no program has to be woken for it."""
HELD_BEHIND_SMALL = _fact(
    "held_behind_small",
    _MAY_BE_HELD & SMALL_UNACKED & _HELD_NOW & _KERNEL_LET_GO & (~_BEHIND_HALF | _FITS_IN_ANY | STANDS) & ~WRITTEN_WITH_THE_ACK,
)
"""A small segment behind a small one in flight, while the sender let none pass: what Nagle's rule holds in all its forms. It may be
switched on and off under way: then what came last tells, and one run of waits in a row. Behind half of the largest window, which passes a
small one, there may be more in flight than slow start has room for."""

_NO_CHANCE = 100
HELD_AT_FIRST = _fact(
    "held_at_first",
    RELEASED_BY_ACK
    & _MAY_BE_HELD
    & SMALL_UNACKED
    & NOTHING_WAS_SHORT
    & ~HELD_BEHIND_SMALL
    & _known(_NO_CHANCE * _col("acked_ago_ns") <= _col("held_ns")),
)
"""A small segment left with the ACK of the only one in flight, before any passed another: a program that sets TCP_NODELAY later, as
OpenSSH's does behind the login, had not set it yet. Of what a program writes by its own clock a hundredth comes so close behind an ACK."""

_A_LITTLE_LATE = 8
LET_GO_LATE = _fact(
    "let_go_late",
    HELD_BEHIND_SMALL
    & HAD_IN_FLIGHT
    & ALL_ACKED
    & ~PEER_SPOKE
    & ~IS_BARE_FIN
    & _known(_col("small_held_run") >= HELD_TIMES)
    & _known(_col("idle_ns") * _A_LITTLE_LATE <= _col("held_ns")),
)
"""A busy host may be late to react to the ACK. Where three in a row left at once, one that left within an eighth of its wait was held, too
(a heuristic)."""

_OPENED_BEFORE = _col("near_sender") & (_room == _col("payload_bytes")) & (_col("window_opened_ns") > EPSILON_NS)
"""The window had room for just this segment, and opened long before it left: something else held it from then on."""

HELD_BEHIND_FULL = _fact(
    "held_behind_full",
    _MAY_BE_HELD
    & ~SMALL_UNACKED
    & _HELD_NOW
    & ALL_ACKED
    & (_known(_col("unacked_before_bytes") <= 2 * _col("full_bytes")) | ACKED_AT_ONCE)
    & _known((_room > _col("payload_bytes")) | _OPENED_BEFORE)
    & ~AFTER_LOSS
    & _col("holds_behind_full"),
)
"""A small segment behind full ones in flight: held by Nagle's rule in its first form (RFC 896, BSD), not in Minshall's (Linux). A tail that
the congestion window holds looks alike, so the sender must have done it three times, never let one pass, and have lost nothing."""

HELD_THROUGH_ROOM = _fact(
    "held_through_room",
    _col("near_sender")
    & IS_OLD
    & _MAY_BE_HELD
    & ~SMALL_UNACKED
    & ALL_ACKED
    & _known(_col("window_opened_ns") > EPSILON_NS)
    & STANDS
    & _known(_col("small_past_full") == 0),
)
"""The same behind a window that was full: an ACK made room for a full segment, and yet this small one waited for the ACK of all. Neither
the window nor, with no more in flight than before, the congestion window can have held it."""

_QUANTUM_BYTES = pl.max_horizontal(_col("full_bytes"), pl.lit(CLUSTER_BYTES))
MAY_FILL_BUFFER = _fact(
    "may_fill_buffer",
    _known(_col("unacked_before_bytes") >= LEAST_BUFFER_BYTES)
    & _known(_col("unacked_before_bytes") + _QUANTUM_BYTES > _col("max_in_flight_bytes")),
)
"""Never was so much more in flight that the send buffer is known to have had room: what waits behind such a flight was held back in the
buffer, or found no place there. A full buffer takes nothing until a segment or a cluster of it is free (BSD `sosend`), or takes one piece
more than it has room for (Linux, Solaris)."""

HELD_SHORT_OF_BUFFER = _fact(
    "held_short_of_buffer",
    _col("near_sender")
    & IS_OLD
    & _MAY_BE_HELD
    & ~SMALL_UNACKED
    & ALL_ACKED
    & HAS_FLOWN
    & ~MAY_FILL_BUFFER
    & _known(_room > _col("payload_bytes"))
    & _known(_col("small_past_full") == 0),
)
"""The same behind a flight that leaves room in every send buffer, and in the window; nor, as a flight as large had flown before, is it the
congestion window that held it."""

MORE_WAS_GIVEN = _fact(
    "more_was_given",
    _col("near_sender")
    & IS_OLD
    & _col("pushes")
    & ~_known(_col("pushed_before"))
    & _known(_col("payload_before_bytes") > 0)
    & (_col("payload_bytes") > 0)
    & ~_SENT_AGAIN,
)
"""A sender that sets PSH did not in the departure before: it had more in its buffer by then (RFC 9293, 3.9.1.2: the last segment of what
is buffered must have it; 4.4BSD, `tcp_output`). Stacks of today leave it out for a program that corks, too, or within one write."""
_HAD_ROOM = _known(_room >= _col("full_bytes")) | (IS_SMALL & _known(_room >= _col("payload_bytes")))
"""In the window: for a full segment, or for what left."""
KEPT_BEHIND_WINDOW = _fact(
    "was_kept_behind_window",
    ~_HAD_ROOM & _known(_col("usable_window_bytes") >= _col("full_bytes")) & _known(_col("window_opened_ns") > EPSILON_NS),
)
"""It had not, until it opened."""
KEPT_BACK = _fact(
    "was_kept_back",
    MORE_WAS_GIVEN & (_HAD_ROOM | KEPT_BEHIND_WINDOW) & ~ACK_JUST_CAME & _known(_col("held_ns") - LINE_NS > CAUSAL_NS),
)
"""The sender had more, the window had room for it, and this one left by itself: neither the congestion window nor the send buffer opens
without an ACK. So less than a full segment was kept back, until the program filled it or a timer let it go."""
HELD_THOUGH_GIVEN = _fact(
    "held_though_given",
    MORE_WAS_GIVEN
    & IS_SMALL
    & ~_NEVER_HELD
    & ~IS_HALF
    & ALL_ACKED
    & _known(_room > _col("payload_bytes"))
    & (HAS_FLOWN | _known(_col("flown_bytes") >= _col("unacked_before_bytes") + _col("payload_bytes"))),
)
"""A small segment that the sender had, and for which the window had room, and the congestion window as well: so much flew at once before,
or the flight without it, and slow start adds a segment. Yet it waited for the ACK of all."""

HELD_BY_NAGLE = _fact(
    "held_by_nagle", HELD_BEHIND_SMALL | HELD_AT_FIRST | HELD_BEHIND_FULL | HELD_THROUGH_ROOM | HELD_SHORT_OF_BUFFER | HELD_THOUGH_GIVEN
)

BULK = _fact("bulk", RELEASED_BY_ACK & WINDOW_KNOWN & (~IS_SMALL | ACK_CLOCKED))
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

_OVER_LEAST_NS = (_col("round_trip_ns") - _col("rtt_min_ns") - _OWN_LINE_NS).fill_null(0) + (
    _col("echo_ns") - _col("reaction_min_ns")
).fill_null(0)
_UNECHOED_QUEUE_NS = pl.when(SAYS_WHEN & _col("echo_ns").is_null()).then(_col("queued_ns"))
"""Where it is not known which ACK let it go, its own timestamp tells."""
IN_QUEUE = _fact("in_queue", _col("queue_ns") < pl.coalesce(_UNECHOED_QUEUE_NS, _OVER_LEAST_NS))
_ACKED_BEFORE_IT_SPOKE = ~PEER_SPOKE | _known(_col("idle_ns") > _col("peer_first_ns"))
STILL_QUEUED_NS = _fact(
    "still_queued_ns",
    pl.when(
        _col("near_sender")
        & IN_QUEUE
        & _known(_neighbour_over_ns > _col("queue_ns"))
        & HAD_IN_FLIGHT
        & ~LITTLE_IN_FLIGHT
        & _ACKED_BEFORE_IT_SPOKE
    )
    .then(_col("round_trip_ns"))
    .otherwise(0)
    .fill_null(0),
)
"""So long, as the last ACK told, what is in flight takes through a queue, whether its program has more or not. The ACK of the segment just
before was late as well: a timer's comes for both at once, and one with an answer may have waited for the other side's program."""
UNHEARD = _fact("unheard", _col("near_sender") & _known(_col("held_ns") > RTT_NS) & (_col("acked_ago_ns") > RTT_NS).fill_null(value=True))
"""At the sender, no ACK came for a round trip before it left: of what the path did meanwhile its sender knew nothing."""
ONLY_LATE = _fact("was_only_late", _col("only_late") & (IN_QUEUE | WAS_DELAYED))
"""Behind the path nothing was missing or overtaken, and what came twice had been late in a queue: the path's rate spaces these bytes,
whatever their sender took for lost (as a tail-loss probe does, RFC 8985, 7)."""


_REPAIRED = RELEASED_BY_ACK & ~ONLY_LATE
REPAIRED_BY_TIMEOUT = _fact("was_repaired_by_timeout", _REPAIRED & _known(_col("repaired_by") == "timeout"))
"""Its flight had ended with a timeout, of which the ACK of what was sent again let it go: the congestion window had room for that one
segment alone (RFC 5681, 3.1: the loss window)."""
REPAIRED = _fact("was_repaired", _REPAIRED & _col("repaired_by").is_not_null() & WINDOW_KNOWN)
"""What was sent again filled the last hole, and the ACK of that let it go. Where no SYN tells the window's scale, it may have been full."""

PROBED_ON = _fact(
    "probed_on",
    _col("near_sender")
    & ~_SENT_AGAIN
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
ROOM_UNSEEN = _fact("room_unseen", ~WINDOW_KNOWN & HAD_IN_FLIGHT & ~IS_BARE_FIN & (RELEASED_BY_ACK | _UPDATE_LET_GO | IS_NEEDLESS))
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
