"""The three-way handshake, its repetitions included."""

from __future__ import annotations

from tcptrace_lab.rules import facts
from tcptrace_lab.rules.rule import Advice, Case, Confidence, Instead, Rule

RULE = Rule(
    cause="handshake",
    lost_to="opening the connection",
    holds=facts.IS_SYN,
    confidence=Confidence.PROVED,
    refuted_by="the segment carries no SYN",
    source="RFC 9293, 3.5; RFC 6298, 2.1 (the first timeout is one second)",
    advice=Advice(
        finding="handshake-slow",
        title="The handshake took {cost}",
        mechanism=(
            "A SYN or its answer came late, or was sent again after a second or more; the round trip takes {rtt}. "
            "Nothing else can begin before."
        ),
        limits="Why the first was lost or refused cannot be seen.",
        cure="a quick answer to the first SYN",
        remedy=(
            "find what drops the first SYN: a full accept queue at the server, a firewall, a lossy path",
            "keep connections open and use them again",
        ),
        instead={
            Case.UNANSWERED: Instead(
                title="Nobody answered for {cost}",
                mechanism=(
                    "The client sent its SYN, and sent it again {times}, and nothing came back: the server is down, its address is "
                    "wrong, or something on the path drops the SYN or its answer."
                ),
                cure="",
                lost_to="asking for a connection, and nobody answered",
            )
        },
        worth_ns=500_000_000,
        of_client_alone=True,
    ),
)
