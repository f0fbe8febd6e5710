"""The capture does not tell."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.plateau import TAKEN_IN_TURN
from tcptrace_lab.rules.rule import Confidence, Rule

RULE = Rule(
    cause="unknown",
    lost_to="causes that the capture does not tell",
    holds=TAKEN_IN_TURN,
    confidence=Confidence.POSSIBLE,
    proof=(proof.IN_FLIGHT, proof.ACK, proof.TIMER),
    refuted_by="nothing: it says that nothing was found",
    source="two rules hold as well, or none",
)
