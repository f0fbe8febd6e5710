"""delayed-ack: the sender waits for a delayed ACK. Nagle's algorithm is not involved."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Confidence, Rule
from tcptrace_lab.causes.texts import immediate_ack, proof

RULE = Rule(
    cause="delayed-ack",
    colour="#8e5bb5",
    pattern="|",
    lost_to="waiting for delayed ACKs",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.LATE_ACK, proof.TIMER),
    refuted_by=(
        "other segments that the receiver ACKed at once, with an RTT as long as the wait; data in the ACK that ended the wait; data that "
        "this ACK does not cover although it was sent more than an RTT earlier"
    ),
    source="RFC 5681, 4.2",
    advice=Advice(
        finding="delayed-ack",
        title="Delayed ACKs cost {cost} in {waits} (median {median})",
        mechanism=(
            "The sender has sent all that it may send and waits for an ACK. "
            "The receiver delays this ACK because too little data has arrived for an immediate ACK: median delay {median}, RTT {rtt}."
        ),
        limits="The capture does not show whether the congestion window or the send buffer was full.",
        cure="a larger send buffer on {sender}, or " + immediate_ack.CURE,
        remedy=(
            "raise the send buffer (SO_SNDBUF) to at least three segments, so that later data does not wait for this ACK",
            immediate_ack.PLACE,
        ),
    ),
)
