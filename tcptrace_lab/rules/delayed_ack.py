"""The sender waits for a delayed ACK, and Nagle's rule is not why."""

from __future__ import annotations

from tcptrace_lab.rules import at_once, proof
from tcptrace_lab.rules.rule import Advice, Confidence, Rule

RULE = Rule(
    cause="delayed-ack",
    colour="#8e5bb5",
    pattern="|",
    lost_to="waiting for delayed ACKs",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.LATE_ACK, proof.TIMER),
    refuted_by="round trips as long without a pause; an ACK that carries data, or leaves out what had long left",
    source="RFC 5681, 4.2",
    advice=Advice(
        finding="delayed-ack",
        title="Delayed ACKs cost {cost} in {waits} of {median}",
        mechanism=(
            "The sender has used up what it may send and waits for an ACK. "
            "The receiver holds the ACK back, because too little has arrived to send it at once: {median} in the middle, where the round "
            "trip takes {rtt}."
        ),
        limits="Whether the congestion window or the send buffer is what the sender had used up cannot be seen.",
        cure="a larger send buffer on {sender}, or " + at_once.CURE,
        remedy=(
            "raise the send buffer (SO_SNDBUF), to three segments at least, so that what follows does not wait for this ACK",
            at_once.PLACE,
        ),
    ),
)
