"""send-buffer: the send buffer is full of unacknowledged bytes."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Confidence, Doubt, Rule
from tcptrace_lab.causes.texts import proof

FINDING = "send-buffer-limited"

RULE = Rule(
    cause="send-buffer",
    colour="#b27800",
    pattern="x",
    lost_to="a full send buffer on {sender}",
    confidence=Confidence.CONSISTENT,
    doubt=Doubt(
        limits="One small segment per RTT may also be new application data that Nagle's algorithm delayed.",
        remedy=("if the send buffer is not full: set TCP_NODELAY",),
    ),
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK),
    refuted_by=(
        "bytes in flight that still increase from RTT to RTT; a packet loss earlier in this direction; an application that writes only "
        "some time after each ACK"
    ),
    source="Abrams & Chen 1991; Siekkinen et al. 2005 (limitation by the transport layer)",
    advice=Advice(
        finding=FINDING,
        title="The send buffer (about {plateau}) limited the sender for {cost}",
        mechanism=(
            "At most {plateau} was in flight although the receive window had room for more, and each ACK released new data at once. The "
            "sender fills its send buffer and is then idle for the rest of the RTT ({rtt})."
        ),
        limits="A capture alone cannot distinguish a send buffer from a clamped congestion window.",
        cure="a larger send buffer on {sender}",
        remedy=(
            "raise the send buffer (SO_SNDBUF; Linux: net.ipv4.tcp_wmem) to at least bandwidth × RTT, or leave its size to the kernel",
            "write larger pieces, so that a blocked write refills the buffer as soon as ACKs free room",
        ),
    ),
)
