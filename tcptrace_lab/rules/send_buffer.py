"""The send buffer is full of unacknowledged bytes."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Advice, Confidence, Doubt, Rule

FINDING = "send-buffer-limited"

RULE = Rule(
    cause="send-buffer",
    colour="#b27800",
    pattern="x",
    lost_to="a full send buffer",
    confidence=Confidence.CONSISTENT,
    doubt=Doubt(
        limits="One small segment in each round trip may also be what the program wrote meanwhile, held by Nagle's algorithm.",
        remedy=("if the program writes no faster: set TCP_NODELAY",),
    ),
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK),
    refuted_by="flights that still grow; a loss before; a program that answers ACKs late",
    source="Abrams & Chen 1991; Siekkinen et al. 2005 (limitation by the transport layer)",
    advice=Advice(
        finding=FINDING,
        title="The send buffer of about {plateau} held the sender for {cost}",
        mechanism=(
            "No more than {plateau} were in flight, though the window had room for more, and each ACK was answered at once. "
            "So the sender fills its buffer and stands still until a round trip of {rtt} is over."
        ),
        limits="A capture alone cannot tell a send buffer from a clamped congestion window.",
        cure="a larger send buffer on {sender}",
        remedy=(
            "raise the send buffer (SO_SNDBUF; Linux: net.ipv4.tcp_wmem) to at least bandwidth × round trip, or leave it to the kernel",
            "write larger pieces, so that the buffer is refilled while it drains",
        ),
    ),
)
