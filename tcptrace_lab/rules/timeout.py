"""The retransmission timer."""

from __future__ import annotations

from tcptrace_lab.rules import proof, too_large
from tcptrace_lab.rules.needless import CURE, FINDING, LIMITS, REFUTED_BY, REMEDY
from tcptrace_lab.rules.rule import Advice, Case, Confidence, Doubt, Instead, Rule

RULE = Rule(
    cause="timeout",
    colour="#b3261e",
    pattern="-",
    lost_to="waiting for the retransmission timer",
    confidence=Confidence.PROVED,
    doubt=Doubt(
        limits="With neither SACK nor timestamps, an ACK that the receiver delays for longer than the timer runs looks the same.",
        remedy=("if nothing is lost: whole messages in one write, or TCP_NODELAY, so that no ACK is delayed",),
    ),
    proof=(proof.IN_FLIGHT, proof.TIMER),
    refuted_by="ACKs or other segments within the timeout before it",
    source="RFC 6298; Linux net/ipv4/tcp_timer.c (at least 200 ms)",
    advice=Advice(
        finding="timeout",
        title="{cost} spent waiting for the retransmission timer and the ACK of what it sent again, in {waits}",
        mechanism=(
            "A segment, or its ACK, was lost and too little came back to show it sooner: the sender stood still until its timer ran out, "
            "and then until what it sent again was acknowledged: {median} in the middle, where the round trip takes {rtt}. Each wait for "
            "the timer doubles the next."
        ),
        limits="Where on the path the segment was lost cannot be seen from one point.",
        cure="a path without the losses",
        remedy=(
            "find and mend the loss",
            "use SACK and tail-loss probes (RFC 8985) at the sender",
            "avoid many tiny exchanges whose last segment nothing follows",
        ),
        instead={
            Case.TOO_LARGE: Instead(
                title="{cost} spent waiting for the retransmission timer, {times}: segments of {lost_bytes} do not get through",
                mechanism=too_large.MECHANISM,
                limits=too_large.LIMITS,
                remedy=too_large.REMEDY,
                cure=too_large.CURE,
                lost_to=too_large.LOST_TO,
            ),
            Case.NEEDLESS: Instead(
                finding=FINDING,
                title="{cost} spent waiting for the retransmission timer, in {waits}, for segments that had arrived",
                mechanism=(
                    "The ACKs came later than the sender's timer expected, or not at all, so it sent again what had arrived: after "
                    "{median} in the middle. Each such wait doubles the next."
                ),
                limits=LIMITS,
                refuted_by=REFUTED_BY,
                remedy=("where the ACKs do not come at all: find what drops them on their way back", *REMEDY),
                cure=CURE,
                lost_to="the retransmission timer, although nothing was lost",
            ),
        },
    ),
)
