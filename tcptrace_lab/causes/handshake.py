"""handshake: the three-way handshake, including retransmits of the SYN and the SYN-ACK.

A retransmit shows in which direction a segment was lost. If nothing was retransmitted, the RTTs of later data show whether the server was
slow to answer or the path is long. Attempts that never became a connection are grouped in `findings.failed_attempts`.
"""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Case, Confidence, Instead, Rule
from tcptrace_lab.causes.texts import proof

_REUSE = "reuse connections"
_QUEUE = "check the server's listen queues (Linux, nstat: TcpExtListenOverflows, TcpExtListenDrops); raise the backlog if they overflow"

RULE = Rule(
    cause="handshake",
    colour="#5b6c8f",
    pattern="|",
    lost_to="opening the connection",
    confidence=Confidence.PROVED,
    proof=(proof.ACK,),
    refuted_by="a segment without the SYN flag at the end of the wait",
    source="RFC 9293, 3.5; RFC 6298, 2.1 (the first timeout is one second)",
    advice=Advice(
        finding="handshake-slow",
        title="The answer to the SYN took {cost}",
        mechanism="No SYN was retransmitted: the answer to the only SYN arrived after {answer}. No data can be sent before this answer.",
        limits="The capture does not show whether the server or the path was slow: it contains no other round trip for comparison.",
        cure="a faster answer to the SYN",
        remedy=("measure the RTT (ping): if it is much shorter, the server is slow to answer", _REUSE),
        instead={
            Case.UNANSWERED: Instead(cure="", lost_to="a connection attempt without an answer"),
            Case.REFUSED: Instead(cure="", lost_to="a connection attempt that was refused"),
            Case.ANSWER_RESENT: Instead(
                title="Opening the connection took {cost}: the SYN-ACK was sent {answers}",
                mechanism=(
                    "The server retransmitted its SYN-ACK. Either the first SYN-ACK did not reach the client, or the client's ACK did not "
                    "reach the server, or the server's accept queue was full. Each retransmit waits for a timer, initially 1 s."
                ),
                limits="Only a capture at the client shows whether the first SYN-ACK arrived there.",
                cure="delivery of the first SYN-ACK",
                remedy=(
                    "find what drops the SYN-ACK or the client's ACK: a firewall that sees only one direction, a lossy path",
                    _QUEUE,
                    _REUSE,
                ),
            ),
            Case.SYN_IGNORED: Instead(
                title="Opening the connection took {cost}: the SYN was sent {syns}, and the server answered only the last one",
                mechanism=(
                    "The capture was made at the server. The first SYN arrived there, and the server sent no answer for {unanswered}, "
                    "until the client retransmitted the SYN. A server drops SYNs while its listen queue or its accept queue is full."
                ),
                limits="A firewall on the server that drops SYNs looks the same.",
                cure="room in the server's listen queue",
                remedy=(
                    _QUEUE,
                    "let the application accept connections faster, or let the clients open fewer connections at the same time",
                    "find a firewall or a rate limit on the server that drops SYNs",
                    _REUSE,
                ),
            ),
            Case.SYN_RESENT: Instead(
                title="Opening the connection took {cost}: the SYN was sent {syns}",
                mechanism=(
                    "No answer arrived for {unanswered}, until the client retransmitted the SYN; the last SYN was answered after "
                    "{answer}. A SYN is retransmitted when a timer expires, initially after 1 s, and no data can be sent before the "
                    "answer."
                ),
                limits=(
                    "The capture does not show whether the SYN or its answer was lost or late before the capture point, or the server "
                    "ignored the SYN."
                ),
                cure="an answer to the first SYN",
                remedy=("find what drops or delays the first SYN or its answer: a firewall, a rate limit, a lossy path", _QUEUE, _REUSE),
            ),
            Case.SLOW_ANSWER: Instead(
                title="The server answered the SYN after {answer}; the RTT is {rtt}",
                mechanism=(
                    "No SYN was retransmitted, so none was lost. The answer itself was late: later data had an RTT of {rtt}. No data can "
                    "be sent before the answer."
                ),
                limits="A proxy, a load balancer or a firewall in front of the server looks like the server itself.",
                cure="a faster answer to the SYN",
                remedy=(
                    (
                        "find what answers late: an overloaded or sleeping host, a proxy that connects to its backend "
                        "first, a radio that wakes up"
                    ),
                    _REUSE,
                ),
            ),
            Case.SLOW_ACK: Instead(
                title="Opening the connection took {cost}: the SYN-ACK was ACKed after {acked}",
                mechanism=(
                    "The server answered the SYN after {answer}, and nothing was retransmitted. The rest of the time passed between the "
                    "capture point and the client. The server cannot accept data before the client's ACK arrives."
                ),
                limits=(
                    "The capture does not show whether the client or the path to it was slow: it contains no other round trip on that "
                    "path for comparison."
                ),
                cure="reusing connections",
                remedy=("measure the RTT to the client (ping): if it is much shorter, the client is slow", _REUSE),
                is_a_fault=False,
            ),
            Case.LONG_PATH: Instead(
                title="Opening the connection took {cost}: one RTT of a long path",
                mechanism=(
                    "Nothing was lost, and the RTT of later data was similar: at least {rtt}. The handshake costs each connection one RTT."
                ),
                limits="A server that answers everything slowly looks the same.",
                cure="reusing connections",
                remedy=(_REUSE, "send data with the SYN (TCP Fast Open, RFC 7413)", "move the server closer to the client"),
                is_a_fault=False,
            ),
        },
        worth_ns=500_000_000,
        of_client_alone=True,
    ),
)
