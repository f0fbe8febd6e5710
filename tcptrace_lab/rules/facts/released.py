"""Whether an ACK let the departure go: not where nothing was short of room, nor at a pace of its sender's own."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import of_direction
from tcptrace_lab.rules.columns import fact as _fact
from tcptrace_lab.rules.facts.acks import ACK_JUST_CAME, ALL_ACKED, HAD_IN_FLIGHT, MAY_BE_FAR, PEER_SPOKE, over_least_ns
from tcptrace_lab.rules.facts.limits import LEAST_BUFFER_BYTES, NS_PER_MS, RTT_NS
from tcptrace_lab.rules.facts.path import EPSILON_NS, QUEUED_NS, SAYS_WHEN
from tcptrace_lab.rules.facts.resent import AFTER_LOSS, IS_BARE_FIN, IS_SMALL
from tcptrace_lab.rules.of_direction import CAUSAL_NS

_col, _known = pl.col, of_direction.known

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
_NO_CHANCE = 100
CAME_WITH_ACK = _fact("came_with_ack", _known(_NO_CHANCE * _col("acked_ago_ns") <= _col("held_ns")))
"""Of what a program writes by its own clock a hundredth comes so close behind an ACK by chance."""
PASSES = _known(_col("small_passes")) & ~_TAKEN_FOR_SMALL & ~_col("none_passed")
FITS_IN_ANY = _known(
    _col("unacked_before_bytes") + _col("payload_bytes") <= pl.max_horizontal("full_bytes", pl.lit(of_direction.DEFAULT_MSS_BYTES))
)
"""No congestion window is smaller than a segment (RFC 5681, 3.1)."""
_ONE_IN_FLIGHT = _known(
    (_col("unacked_before_bytes") == _col("payload_before_bytes")) & (_col("unacked_before_bytes") < LEAST_BUFFER_BYTES)
)
NOTHING_WAS_SHORT = _fact(
    "nothing_was_short",
    IS_SMALL & ~AFTER_LOSS & _ONE_IN_FLIGHT & FITS_IN_ANY & _known(_col("usable_before_bytes") > _col("payload_bytes")),
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
_QUEUE_BEFORE_IT = _known(_col("queue_ns") < pl.when(SAYS_WHEN).then(_col("queued_ns")).otherwise(over_least_ns))
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
    & ~(NOTHING_WAS_SHORT & PASSES & ~CAME_WITH_ACK)
    & ~LEFT_AT_ITS_PACE
    & pl.when(ALL_ACKED).then(~PEER_SPOKE & _known(_col("idle_ns") - QUEUED_NS <= EPSILON_NS) & ~MAY_BE_FAR).otherwise(ACK_JUST_CAME),
)
"""An ACK without data let it leave: the program cannot have known of it."""

IN_BURST = _fact("in_burst", _col("acked_ago_ns").is_null() & _known(_col("held_ns") <= _col("burst_ns")))
