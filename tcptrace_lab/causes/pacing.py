"""pacing: the sender spreads segments over time although it could send them at once."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Confidence, Rule
from tcptrace_lab.causes.texts import proof

RULE = Rule(
    cause="pacing",
    colour="#3aa6a0",
    pattern="|",
    lost_to="pacing (gaps that the sender itself leaves between segments)",
    confidence=Confidence.POSSIBLE,
    proof=(proof.IN_FLIGHT, proof.ROOM),
    refuted_by="ACKs that release the segments; uneven gaps; a TCP stack without pacing",
    source="Linux net/ipv4/tcp_output.c (internal pacing); BBR",
)
