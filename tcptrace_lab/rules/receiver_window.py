"""The receiver's window has no room for the next segment."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Advice, Case, Confidence, Instead, Rule

RULE = Rule(
    cause="receiver-window",
    colour="#e0a526",
    pattern="/",
    lost_to="waiting for room in the receiver's window",
    confidence=Confidence.PROVED,
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK),
    refuted_by="room for a full segment, and for a third of the window, before the ACK that released it",
    source="RFC 9293, 3.8.6",
    advice=Advice(
        finding="receiver-window-limited",
        title="The receiver's window, {window}, held the sender for {cost}",
        mechanism=(
            "The window that the receiver offers is smaller than rate times round trip ({rtt}). "
            "The sender fills it and waits for room, once per round trip."
        ),
        limits="Whether a larger window would meet the next limit soon cannot be told from this capture alone.",
        cure="a larger receive buffer on {receiver}",
        remedy=(
            "raise the receive buffer at the receiver (SO_RCVBUF; Linux: net.ipv4.tcp_rmem) to at least bandwidth × round trip",
            "allow window scaling where it is off",
        ),
        instead={
            Case.SLOW_READER: Instead(
                title="The receiving program read slowly, and its window, {window}, held the sender for {cost}",
                mechanism=(
                    "The receiving program took {read} out of a buffer that was at least half full. "
                    "The sender fills the room that this makes, and waits for the next."
                ),
                limits="Why the program read no faster cannot be seen. A larger buffer takes what it has room for once, and no more.",
                lost_to="a window that the program on {receiver} kept small by reading slowly",
                cure="reading faster there",
                remedy=(
                    "let the receiving program read faster, or find what it waits for: disk, printer, another service",
                    "if only the sender must not wait: a receive buffer (SO_RCVBUF) that holds the whole transfer",
                ),
            )
        },
    ),
)
