"""nagle-delayed-ack: Nagle's algorithm at the sender waits for an ACK that the receiver delays."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Confidence, Doubt, Rule
from tcptrace_lab.causes.texts import immediate_ack, proof

RULE = Rule(
    cause="nagle-delayed-ack",
    colour="#c2185b",
    pattern="/",
    lost_to="Nagle's algorithm waiting for delayed ACKs",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.HELD_SEGMENT, proof.LATE_ACK, proof.TIMER),
    refuted_by=(
        "a small segment that this sender sent while its previous small segment was in flight; a late ACK that releases a full "
        "segment or carries data"
    ),
    proved_by_repetition=True,
    doubt=Doubt(
        consistent_if="answered",
        limits=(
            "If the sender never had much more data in flight, a full send buffer looks the same. TCP_NODELAY does not help against a full "
            "send buffer. If later small segments were sent without waiting, the application may have written new data just when the ACK "
            "arrived."
        ),
        remedy=("if TCP_NODELAY is set already: raise the send buffer (SO_SNDBUF)",),
    ),
    source="RFC 896; RFC 1122, 4.2.3.2",
    advice=Advice(
        finding="nagle-delayed-ack",
        title="Nagle's algorithm and delayed ACKs cost {cost} in {waits} (median {median})",
        mechanism=(
            "The application writes a message in pieces. The sender's TCP delays the last small piece until earlier data is ACKed, "
            "and the receiver delays that ACK because it waits for more data: median delay {median}, RTT {rtt}."
        ),
        limits=(
            "No kernel counter shows how long Nagle's algorithm delays data, and the capture does not show the write calls. "
            "The times of the segments only suggest that the application had already written the delayed bytes."
        ),
        cure="TCP_NODELAY on {sender}, or writing each message with one call,",
        remedy=(
            "write each message with one call (writev, a buffer, TCP_CORK)",
            "set TCP_NODELAY at the sender",
            immediate_ack.PLACE,
        ),
    ),
)
