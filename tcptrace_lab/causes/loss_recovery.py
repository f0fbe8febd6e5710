"""loss-recovery: the sender retransmits a segment that was lost, or that it assumes lost."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Case, Confidence, Doubt, Instead, Rule
from tcptrace_lab.causes.texts import path_mtu, proof
from tcptrace_lab.causes.texts.spurious_retransmits import CURE, FINDING, LIMITS, REFUTED_BY, REMEDY

RULE = Rule(
    cause="loss-recovery",
    colour="#e8743b",
    pattern="x",
    lost_to="loss recovery",
    confidence=Confidence.PROVED,
    doubt=Doubt(
        consistent_if="numbered",
        limits=(
            "Losses before the capture point are inferred from gaps in the sender's IP IDs. Packets that the sender sent to other hosts "
            "leave the same gaps. A tail-loss probe alone does not show that a packet was lost."
        ),
    ),
    proof=(proof.IN_FLIGHT, proof.ACK, proof.TIMER),
    refuted_by="an ACK that covers the retransmitted data and reached the sender before the retransmit",
    source="RFC 5681, 3.2; RFC 6675; RFC 8985",
    advice=Advice(
        finding="loss",
        title="Loss recovery took {cost} in {waits_longest}",
        mechanism=(
            "The sender retransmitted {resent}. Until the retransmits are ACKed, at least one RTT ({rtt}) later, the sender sends little "
            "new data; afterwards it continues with a smaller congestion window."
        ),
        limits="A capture at one point does not show where on the path the segments were lost.",
        cure="a path without packet loss",
        remedy=(
            "find and fix the packet loss: cable, duplex mismatch, wireless, policer, full queue",
            "for a full queue: pace the sender, or use a queue discipline that marks packets (ECN)",
        ),
        instead={
            Case.TOO_LARGE: Instead(
                title="Loss recovery took {cost} in {waits_longest}: segments of {lost_bytes} do not pass the path",
                mechanism=path_mtu.MECHANISM,
                limits=path_mtu.LIMITS,
                remedy=path_mtu.REMEDY,
                cure=path_mtu.CURE,
                lost_to=path_mtu.LOST_TO,
            ),
            Case.NEEDLESS: Instead(
                finding=FINDING,
                title="Recovery of segments that were not lost took {cost} in {waits_longest}",
                mechanism=(
                    "The sender retransmitted {resent}, but the originals had arrived: either the path reordered them, or their ACKs were "
                    "late. Meanwhile the sender assumed a loss and sent little new data."
                ),
                limits=LIMITS,
                refuted_by=REFUTED_BY,
                remedy=REMEDY,
                cure=CURE,
                lost_to="recovery of segments that were not lost",
            ),
        },
    ),
)
