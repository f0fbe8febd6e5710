"""Slow start: flights still double."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Advice, Confidence, Rule

RULE = Rule(
    cause="slow-start",
    colour="#6fb7e0",
    pattern=".",
    lost_to="slow start, with flights that still grew",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK),
    refuted_by="flights that no longer grow; a loss before",
    source="RFC 5681, 3.1; RFC 6928",
    advice=Advice(
        finding="slow-start-limited",
        title="Slow start kept the sender back for {cost}",
        mechanism=(
            "A new connection begins with about ten segments and doubles its flight every round trip ({rtt}). "
            "The transfer was over, or met another limit, before the path was full."
        ),
        limits="How fast the path is cannot be told from a transfer that never filled it.",
        cure="keeping connections open and using them again",
        remedy=(
            "keep connections open and use them again",
            "move the server nearer to the client",
            "a larger initial window (Linux: ip route … initcwnd)",
        ),
        is_a_fault=False,
    ),
)
