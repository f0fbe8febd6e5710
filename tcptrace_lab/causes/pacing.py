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
    refuted_by=(
        "segments that the sender sends as soon as an ACK arrives; uneven gaps between the segments; a sending host whose TCP stack does "
        "not pace"
    ),
    source="Linux net/ipv4/tcp_output.c (internal pacing); BBR",
)
