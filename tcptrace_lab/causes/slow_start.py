"""slow-start: the number of bytes in flight still doubles every RTT."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Confidence, Rule
from tcptrace_lab.causes.texts import proof

RULE = Rule(
    cause="slow-start",
    colour="#6fb7e0",
    pattern=".",
    lost_to="slow start",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK),
    refuted_by="bytes in flight that no longer increase from RTT to RTT; a packet loss earlier in this direction",
    source="RFC 5681, 3.1; RFC 6928",
    advice=Advice(
        finding="slow-start-limited",
        title="Slow start limited the sender for {cost}",
        mechanism=(
            "A new connection starts with a flight of about ten segments and doubles it every RTT ({rtt}). The transfer ended, or reached "
            "another limit, before it filled the path."
        ),
        limits="A transfer that never filled the path does not show how fast the path is.",
        cure="reusing connections",
        remedy=(
            "reuse connections",
            "move the server closer to the client",
            "use a larger initial window (Linux: ip route … initcwnd)",
        ),
        is_a_fault=False,
    ),
)
