"""The path's own rate, or the queue before it, spaces the bytes."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.facts import acks, flow, path, released, resent
from tcptrace_lab.rules.of_direction import AROUND_BYTES, RTT_NS, known
from tcptrace_lab.rules.plateau import ON_PLATEAU
from tcptrace_lab.rules.rule import Advice, Confidence, Doubt, Rule

_DRAINING = (
    (
        (released.RELEASED_BY_ACK & (~acks.ACKED_AT_ONCE | acks.DRAINED_BIT_BY_BIT))
        | (acks.HAD_IN_FLIGHT & ~acks.LITTLE_IN_FLIGHT & ~acks.ALL_ACKED & ~acks.ACK_WAS_HELD & ~resent.IS_BARE_FIN & ~flow.UNHEARD)
    )
    & flow.IN_QUEUE
    & ~(ON_PLATEAU & (acks.LATE_ALONE | acks.DRAINED_BIT_BY_BIT))
)

_DELAYED = path.WAS_DELAYED & ~(acks.PEER_SPOKE & path.SAYS_WHEN)
"""Behind a message of the other side that is a part of the wait alone, and how long it was is known."""

_SPACED = flow.IN_TRAIN & ~ON_PLATEAU & ~resent.AFTER_LOSS

LEAST_SPREAD_SEGMENTS = 4
"""Fewer segments in a round trip are as far apart as flights are (a heuristic)."""

_share_of_round_trip = pl.col("payload_before_bytes") * RTT_NS / pl.col("unacked_before_bytes")
_MANY = known(pl.col("unacked_before_bytes") >= LEAST_SPREAD_SEGMENTS * pl.col("full_bytes"))
_NO_BURST = known(4 * pl.col("held_ns") >= 3 * _share_of_round_trip)
_NO_PAUSE = known(3 * pl.col("held_ns") <= 4 * _share_of_round_trip)
_EVENLY_SPREAD = ~pl.col("near_sender") & pl.col("tick_ns").is_null() & flow.BULK & _MANY & _NO_BURST & (flow.IN_TRAIN | _NO_PAUSE)
"""Away from the sender, and no timestamps tell of queues: what comes in a round trip is spread over it evenly, to a quarter, and there is
no pause. At the path's full rate just rate times round trip comes in each, so that the flight seems to stand on a plateau whatever the
sender has in flight. What a full buffer lets go comes in flights, with pauses between them."""

_at_pace_ns = (pl.col("payload_bytes") + AROUND_BYTES) * pl.col("steady_ns") / (pl.col("steady_payload_bytes") + AROUND_BYTES)
_STEADY = (
    pl.col("comes_steadily")
    & (~ON_PLATEAU | pl.col("comes_by_size") | (_MANY & _NO_BURST & _NO_PAUSE))
    & known(4 * pl.col("held_ns") <= 5 * _at_pace_ns)
    & (~pl.col("near_sender") | (~pl.col("small_before") & ~known(released.LET_GO_PART * pl.col("acked_ago_ns") <= pl.col("held_ns"))))
)
"""Of a sender without timestamps: it came no later, by a quarter, than the path's narrowest place lets a segment of its size pass. That is
told by segments that others of their write came behind: their program had given these, so that they did not wait for it. At the sender no
ACK let it go: its own host keeps it that long (a shaper on the interface that is captured)."""

_BY_SENDER_OR_PATH = _STEADY | (released.LEFT_AT_ITS_PACE & ~released.PACED_BY_SENDER)

RULE = Rule(
    cause="network",
    lost_to="the network: bytes in transit, or draining at the path's own rate",
    holds=(released.IN_BURST & ~resent.IS_SMALL)
    | _DRAINING
    | _SPACED
    | _EVENLY_SPREAD
    | _BY_SENDER_OR_PATH
    | _DELAYED
    | flow.IN_OWN_QUEUE
    | flow.PROBED_ON,
    confidence=Confidence.CONSISTENT,
    doubt=Doubt(
        _BY_SENDER_OR_PATH,
        limits="Without timestamps, a sender that spaces its segments evenly looks as a narrow path, or a shaper on its host, does.",
        remedy=("if the sender paces (BBR, a rate limit of its own): raise its rate",),
    ),
    proof=(proof.IN_FLIGHT, proof.ACK, proof.TIMER),
    refuted_by="round trips at their minimum while the sender waits",
    source="RFC 6349, 3.3 (round trips under load); Gettys & Nichols 2011 (bufferbloat)",
    advice=Advice(
        finding="network-limited",
        title="Limited by the network for {share}{reached}",
        mechanism=("Bytes were on their way, or drained through the path at its own rate. The round trip took {round_trips}."),
        limits="Which hop is the narrow one cannot be seen.",
        cure="a faster or nearer path, or fewer bytes or round trips,",
        remedy=(
            "where much is sent: a faster path, or fewer bytes (compression, caching)",
            "where little is sent to and fro: a nearer server, or fewer round trips (connections kept open, several requests together)",
        ),
        worth_share=0.3,
        is_a_fault=False,
        of_data_alone=True,
    ),
)
