"""The path's own rate, or the queue before it, spaces the bytes."""

from __future__ import annotations

from tcptrace_lab.rules import facts
from tcptrace_lab.rules.plateau import ON_PLATEAU
from tcptrace_lab.rules.rule import Advice, Confidence, Rule

_DRAINING = (
    (facts.RELEASED_BY_ACK & ~facts.ACKED_AT_ONCE)
    | (facts.HAD_IN_FLIGHT & ~facts.LITTLE_IN_FLIGHT & ~facts.ALL_ACKED & ~facts.ACK_WAS_HELD & ~facts.IS_BARE_FIN & ~facts.UNHEARD)
) & facts.IN_QUEUE

_SPACED = facts.IN_TRAIN & ~ON_PLATEAU & ~facts.AFTER_LOSS

RULE = Rule(
    cause="network",
    lost_to="the network: bytes in transit, or draining at the path's own rate",
    holds=(facts.IN_BURST & ~facts.IS_SMALL) | _DRAINING | _SPACED | facts.WAS_DELAYED | facts.PROBED_ON,
    confidence=Confidence.CONSISTENT,
    refuted_by="round trips at their minimum while the sender waits",
    source="RFC 6349, 3.3 (round trips under load); Gettys & Nichols 2011 (bufferbloat)",
    advice=Advice(
        finding="network-limited",
        title="Limited by the network for {share}{reached}",
        mechanism=(
            "Bytes were on their way, or drained through the path at its own rate: "
            "the round trip took {rtt} at least and {round_trip} at most."
        ),
        limits="Which hop is the narrow one cannot be seen.",
        cure="a faster path, or fewer bytes,",
        remedy=("a faster path, or fewer bytes (compression, caching)",),
        worth_share=0.3,
        is_a_fault=False,
        of_data_alone=True,
    ),
)
