"""The sender spaces what it could send."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Confidence, Rule

RULE = Rule(
    cause="pacing",
    colour="#3aa6a0",
    pattern="|",
    lost_to="gaps that the sender itself left between its segments",
    confidence=Confidence.POSSIBLE,
    proof=(proof.IN_FLIGHT, proof.ROOM),
    refuted_by="ACKs that release the segments; uneven spacing; a stack that is older than pacing",
    source="Linux net/ipv4/tcp_output.c (internal pacing); BBR",
)
