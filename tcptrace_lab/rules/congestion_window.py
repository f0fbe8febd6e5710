"""The congestion window, still small after a loss."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.needless import CURE, FINDING, LIMITS, REFUTED_BY, REMEDY
from tcptrace_lab.rules.rule import Advice, Case, Confidence, Instead, Rule

RULE = Rule(
    cause="congestion-window",
    colour="#2f7fb8",
    pattern="\\",
    lost_to="a congestion window that losses kept small",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK),
    refuted_by="flights as large as before the loss; a growing round trip (the path itself is full)",
    source="RFC 5681, 3.1 and 3.2; RFC 9438",
    advice=Advice(
        finding="loss",
        title="The congestion window kept the sender back for {cost} after losses",
        mechanism=(
            "After a loss the sender cuts its window, or begins again with one segment, and grows it slowly, per round trip of {rtt}. "
            "The path stood partly idle meanwhile."
        ),
        limits="The congestion window itself is not in a capture; it is concluded from the flights.",
        cure="a path without the losses",
        remedy=("find and mend the loss", "use a congestion control that takes single losses less hard (CUBIC, BBR)"),
        instead={
            Case.NEEDLESS: Instead(
                finding=FINDING,
                title="The congestion window kept the sender back for {cost} after losses that were none",
                mechanism=(
                    "The sender cut its window for segments that it took for lost, and which had arrived all the same; then it grew "
                    "it slowly, per round trip of {rtt}."
                ),
                limits=LIMITS,
                refuted_by=REFUTED_BY,
                remedy=REMEDY,
                cure=CURE,
                lost_to="a congestion window cut for losses that were none",
            )
        },
    ),
)
