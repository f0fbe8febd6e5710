"""The path's own rate, or the queue before it, spaces the bytes."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Advice, Confidence, Doubt, Rule

RULE = Rule(
    cause="network",
    colour="#7fbf9a",
    pattern="",
    lost_to="the network: bytes in transit, or draining at the path's own rate",
    confidence=Confidence.CONSISTENT,
    doubt=Doubt(
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
