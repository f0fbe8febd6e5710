"""unknown: the capture does not show why the sender waits."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Confidence, Rule
from tcptrace_lab.causes.texts import proof

RULE = Rule(
    cause="unknown",
    colour="#5a5f66",
    pattern="+",
    lost_to="unknown causes",
    confidence=Confidence.POSSIBLE,
    proof=(proof.RIVALS, proof.IN_FLIGHT, proof.ACK, proof.TIMER),
    refuted_by="nothing, because no cause was found",
    source="several rules explain the wait equally well, or none does",
)
