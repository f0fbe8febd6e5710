"""The capture does not tell."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Confidence, Rule

RULE = Rule(
    cause="unknown",
    colour="#5a5f66",
    pattern="+",
    lost_to="causes that the capture does not tell",
    confidence=Confidence.POSSIBLE,
    proof=(proof.IN_FLIGHT, proof.ACK, proof.TIMER),
    refuted_by="nothing: it says that nothing was found",
    source="two rules hold as well, or none",
)
