"""nagle: Nagle's algorithm delays a small segment for one RTT, and the receiver sends its ACK at once."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Confidence, Doubt, Rule
from tcptrace_lab.causes.texts import proof
from tcptrace_lab.connections import ack_policy

RULE = Rule(
    cause="nagle",
    colour="#e88bb0",
    pattern="-",
    lost_to="Nagle's algorithm (small segments delayed by one RTT)",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.HELD_SEGMENT, proof.ACK),
    refuted_by="a small segment that this sender sent while its previous small segment was in flight",
    doubt=Doubt(of_all=ack_policy.all_in_doubt),
    cure="TCP_NODELAY on {sender}, or writing each message with one call,",
    source="RFC 896; RFC 9293, 3.7.4; Linux net/ipv4/tcp_output.c (tcp_nagle_check, Minshall's form)",
)
