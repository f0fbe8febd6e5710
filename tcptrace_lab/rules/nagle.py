"""Nagle's rule holds a small segment for a round trip, and nobody delays."""

from __future__ import annotations

from tcptrace_lab import policy
from tcptrace_lab.rules import proof
from tcptrace_lab.rules.facts import held, released
from tcptrace_lab.rules.plateau import TAKEN_IN_TURN, TAKEN_ONE_BY_ONE
from tcptrace_lab.rules.rule import Confidence, Doubt, Rule

RULE = Rule(
    cause="nagle",
    lost_to="small segments that Nagle's algorithm held for a round trip",
    holds=(((released.RELEASED_BY_ACK & held.HELD_BY_NAGLE) | held.LET_GO_LATE) & ~TAKEN_ONE_BY_ONE & ~TAKEN_IN_TURN) | held.KEPT_BACK,
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.HELD_SEGMENT, proof.ACK),
    refuted_by="a small segment that leaves while an earlier small one is in flight",
    doubt=Doubt(held.MAY_FILL_BUFFER & ~held.MORE_WAS_GIVEN, of_all=policy.all_in_doubt),
    cure="TCP_NODELAY on {sender}, or whole messages in one write,",
    source="RFC 896; RFC 9293, 3.7.4; Linux net/ipv4/tcp_output.c (tcp_nagle_check, Minshall's form)",
)
