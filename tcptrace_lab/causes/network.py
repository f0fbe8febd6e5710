"""network: data is in transit, or waits in a queue at the bottleneck of the path."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Confidence, Doubt, Rule
from tcptrace_lab.causes.texts import proof

RULE = Rule(
    cause="network",
    colour="#7fbf9a",
    pattern="",
    lost_to="the network (bytes in transit, or a queue draining at the rate of the path)",
    confidence=Confidence.CONSISTENT,
    doubt=Doubt(
        limits="Without timestamps, a pacing sender looks the same as a slow path or a shaper on the sending host.",
        remedy=("if the sender paces its segments (BBR, or a rate limit in the application): raise the pacing rate",),
    ),
    proof=(proof.IN_FLIGHT, proof.ACK, proof.TIMER),
    refuted_by="an RTT that stays at the minimum of the connection while the sender waits",
    source="RFC 6349, 3.3 (round trips under load); Gettys & Nichols 2011 (bufferbloat)",
    advice=Advice(
        finding="network-limited",
        title="The network limited the transfer for {share} of the time{reached}",
        mechanism=("Data was in transit, or in a queue that drained at the rate of the path. The RTT was {round_trips}."),
        limits="The capture does not show which hop is the bottleneck.",
        cure="a faster or shorter path, or fewer bytes or round trips,",
        remedy=(
            "for bulk data: use a faster path, or send fewer bytes (compression, caching)",
            (
                "for many small exchanges: move the server closer, or use fewer round trips (reuse connections, send several requests "
                "together)"
            ),
        ),
        worth_share=0.3,
        is_a_fault=False,
        of_data_alone=True,
    ),
)
