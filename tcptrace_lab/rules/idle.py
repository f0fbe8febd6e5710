"""A long silence in which nobody owed anything."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Confidence, Rule

RULE = Rule(
    cause="idle",
    colour="#eceef1",
    pattern="",
    lost_to="silence in which nobody owed anything",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.ACK),
    refuted_by="a request that was open, or pauses as long throughout the transfer",
    source="a heuristic: everything is acknowledged, no request is open, and it is longer than a second and than ten usual pauses",
)
