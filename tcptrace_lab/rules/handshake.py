"""The three-way handshake, its repetitions included.

Which segment was sent again tells which way something went missing; where none was, the round trips of the data tell whether the answer
came late or the path is long. Attempts that never became a connection are told together (`attempts`).
"""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Advice, Case, Confidence, Instead, Rule

_REUSE = "keep connections open and use them again"
_QUEUE = "look at the server's queues (Linux, nstat: TcpExtListenOverflows, TcpExtListenDrops); raise its backlog if they are full"

RULE = Rule(
    cause="handshake",
    colour="#5b6c8f",
    pattern="|",
    lost_to="opening the connection",
    confidence=Confidence.PROVED,
    proof=(proof.ACK,),
    refuted_by="the segment carries no SYN",
    source="RFC 9293, 3.5; RFC 6298, 2.1 (the first timeout is one second)",
    advice=Advice(
        finding="handshake-slow",
        title="The answer to the SYN came after {cost}",
        mechanism="No SYN was sent again: the answer to the first came after {answer}. Nothing else can begin before.",
        limits="Whether the far host or the path was slow is not told: the capture holds no other round trip to compare with.",
        cure="a quicker answer to the SYN",
        remedy=("measure the round trip (ping): is it as long, or is the far host slow to answer?", _REUSE),
        instead={
            Case.UNANSWERED: Instead(cure="", lost_to="asking for a connection, and nobody answered"),
            Case.REFUSED: Instead(cure="", lost_to="asking for a connection, which was refused"),
            Case.ANSWER_RESENT: Instead(
                title="Opening the connection took {cost}: the answer to the SYN was sent {answers}",
                mechanism=(
                    "The server answered, and answered again: its first SYN-ACK did not reach the client, or the client's ACK did not "
                    "reach the server, or found its accept queue full. Each repetition waits for a timer, of a second at first."
                ),
                limits="What of the two was lost is seen at the client only: whether the first SYN-ACK came.",
                cure="a first SYN-ACK that arrives",
                remedy=("find what drops the SYN-ACK or its ACK: a firewall that sees one direction, a lossy path", _QUEUE, _REUSE),
            ),
            Case.SYN_RESENT: Instead(
                title="Opening the connection took {cost}: the SYN was sent {syns}",
                mechanism=(
                    "Nothing came back for {unanswered} until a SYN was sent again; the last one was answered after {answer}. "
                    "A SYN waits for its timer, of a second at first, and nothing else can begin before."
                ),
                limits="Whether the SYN, or its answer before the capture point, was lost, or the server let it lie, cannot be seen.",
                cure="a quick answer to the first SYN",
                remedy=("find what drops the first SYN or its answer: a firewall, a rate limit, a lossy path", _QUEUE, _REUSE),
            ),
            Case.SLOW_ANSWER: Instead(
                title="The far host answered the SYN after {answer}, where the path takes {rtt}",
                mechanism=(
                    "No SYN was sent again, so none was lost: the answer itself came late, while data later went there and back in {rtt}. "
                    "Nothing else can begin before."
                ),
                limits="What stands before the host (a proxy, a load balancer, a firewall that asks first) looks like the host itself.",
                cure="a quicker answer to the SYN",
                remedy=(
                    "find what answers late: an overloaded or sleeping host, a proxy that connects onward first, a radio that wakes up",
                    _REUSE,
                ),
            ),
            Case.SLOW_ACK: Instead(
                title="Opening the connection took {cost}: the answer to the SYN was acknowledged after {acked}",
                mechanism=(
                    "The server answered the SYN after {answer}, and nothing was sent again: what took the time is the way from here to "
                    "the client and back. The server cannot take anything before."
                ),
                limits="Whether the path to the client or the client itself was slow is not told: nothing else went that way as slowly.",
                cure="connections kept open",
                remedy=("measure the round trip to the client (ping): is it as long, or is the client slow?", _REUSE),
                is_a_fault=False,
            ),
            Case.LONG_PATH: Instead(
                title="Opening the connection took {cost}, one round trip of a long path",
                mechanism=(
                    "Nothing was lost: data later took as long, {rtt} at least. The handshake costs each connection one round trip."
                ),
                limits="A far host that is always slow looks alike.",
                cure="connections kept open",
                remedy=(_REUSE, "send data with the SYN (TCP Fast Open, RFC 7413)", "a server nearer to the client"),
                is_a_fault=False,
            ),
        },
        worth_ns=500_000_000,
        of_client_alone=True,
    ),
)
