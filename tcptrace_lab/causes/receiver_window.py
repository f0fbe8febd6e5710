"""receiver-window: the receive window has no room for the next segment."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Case, Clause, Confidence, Instead, Rule
from tcptrace_lab.causes.texts import proof

RULE = Rule(
    cause="receiver-window",
    colour="#e0a526",
    pattern="/",
    lost_to="a full receive window on {receiver}",
    confidence=Confidence.PROVED,
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK),
    refuted_by=("a receive window that already had room for a full segment, and was at least a third free, while the sender waited"),
    source="RFC 9293, 3.8.6",
    advice=Advice(
        finding="receiver-window-limited",
        title="The receive window ({window}) limited the sender for {cost}",
        mechanism=(
            "The receive window is smaller than rate × RTT ({rtt}). The sender fills the window and then waits for room, once per RTT."
        ),
        limits="This capture does not show what would limit the sender next if the window were larger.",
        cure="a larger receive buffer on {receiver}",
        remedy=(
            "raise the receive buffer at the receiver (SO_RCVBUF; Linux: net.ipv4.tcp_rmem) to at least bandwidth × RTT",
            "enable window scaling where it is off",
        ),
        instead={
            Case.SLOW_READER: Instead(
                title="The application on {receiver} ({receiving}) was reading slowly; its window ({window}) limited the sender for {cost}",
                mechanism=(
                    "The receiving application read at {read} from a buffer that was at least half full. Each read frees room in the "
                    "buffer; the sender fills this room and waits for the next read."
                ),
                limits="The capture does not show why the application was reading slowly. A larger buffer helps only until it is full.",
                lost_to=Clause("small receive window: the application on {receiver} was reading slowly"),
                cure="faster reading",
                remedy=(
                    "let the receiving application read faster, or find what it waits for: disk, printer, another service",
                    "if only the sender has to finish quickly: use a receive buffer (SO_RCVBUF) as large as the whole transfer",
                ),
            )
        },
    ),
)
