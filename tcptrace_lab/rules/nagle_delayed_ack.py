"""Nagle's rule at the sender waits for an ACK that the receiver delays."""

from __future__ import annotations

from tcptrace_lab.rules import at_once, proof
from tcptrace_lab.rules.rule import Advice, Confidence, Doubt, Rule

RULE = Rule(
    cause="nagle-delayed-ack",
    colour="#c2185b",
    pattern="/",
    lost_to="waiting for delayed ACKs that Nagle's algorithm was holding out for",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.HELD_SEGMENT, proof.LATE_ACK, proof.TIMER),
    refuted_by="a small segment that leaves while an earlier small one is in flight; a full segment released; an ACK that carries data",
    proved_by_repetition=True,
    doubt=Doubt(
        consistent_if="answered",
        limits=(
            "Where hardly more was ever in flight, a send buffer that was full would look the same, and TCP_NODELAY would not help; "
            "where small segments pass later, the program may have written just when the ACK came."
        ),
        remedy=("if TCP_NODELAY is set already: raise the send buffer (SO_SNDBUF)",),
    ),
    source="RFC 896; RFC 1122, 4.2.3.2",
    advice=Advice(
        finding="nagle-delayed-ack",
        title="Nagle's algorithm and delayed ACKs cost {cost} in {waits} of {median}",
        mechanism=(
            "The program writes a message in pieces. The stack holds the last small piece back until what went before is acknowledged, "
            "and the receiver delays that ACK because it waits for more: {median} in the middle, where the round trip takes {rtt}."
        ),
        limits="The kernel keeps no count of this; that the program had already written the held bytes is concluded from when they left.",
        cure="TCP_NODELAY on {sender}, or whole messages in one write,",
        remedy=(
            "write each message with one call (writev, a buffer, TCP_CORK)",
            "set TCP_NODELAY at the sender",
            at_once.PLACE,
        ),
    ),
)
