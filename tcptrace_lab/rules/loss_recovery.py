"""Something was lost, or taken for lost, and is being repaired."""

from __future__ import annotations

from tcptrace_lab.rules import proof, too_large
from tcptrace_lab.rules.needless import CURE, FINDING, LIMITS, REFUTED_BY, REMEDY
from tcptrace_lab.rules.rule import Advice, Case, Confidence, Doubt, Instead, Rule

RULE = Rule(
    cause="loss-recovery",
    colour="#e8743b",
    pattern="x",
    lost_to="repairing losses",
    confidence=Confidence.PROVED,
    doubt=Doubt(
        consistent_if="numbered",
        limits="What was lost before the capture is shown by its sender's IP identifications: packets to others in between look alike. A "
        "tail-loss probe asks whether something was lost, and shows no loss by itself.",
    ),
    proof=(proof.IN_FLIGHT, proof.ACK, proof.TIMER),
    refuted_by="ACKs that had covered what was sent again before it was",
    source="RFC 5681, 3.2; RFC 6675; RFC 8985",
    advice=Advice(
        finding="loss",
        title="{cost} spent repairing losses, in {waits}",
        mechanism=(
            "What was lost was sent again, {resent} in all. Until the repair is acknowledged, a round trip of {rtt} later at least, the "
            "sender sends little that is new; afterwards it goes on with a smaller congestion window."
        ),
        limits="Where on the path they were lost cannot be seen from one point.",
        cure="a path without the losses",
        remedy=(
            "find the loss: cable, duplex, wireless, policer, full queue",
            "at a full queue: pace the sender, or use a queue discipline that marks (ECN)",
        ),
        instead={
            Case.TOO_LARGE: Instead(
                title="{cost} spent repairing losses, in {waits}: segments of {lost_bytes} do not get through",
                mechanism=too_large.MECHANISM,
                limits=too_large.LIMITS,
                remedy=too_large.REMEDY,
                cure=too_large.CURE,
                lost_to=too_large.LOST_TO,
            ),
            Case.NEEDLESS: Instead(
                finding=FINDING,
                title="{cost} spent repairing what was not lost, in {waits}",
                mechanism=(
                    "What was sent again, {resent}, had arrived before: the path had overtaken it, or its ACKs came late. "
                    "Until that showed, the sender took them for lost and sent little that was new."
                ),
                limits=LIMITS,
                refuted_by=REFUTED_BY,
                remedy=REMEDY,
                cure=CURE,
                lost_to="repairing what was not lost",
            ),
        },
    ),
)
