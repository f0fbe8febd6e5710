"""zero-window: the receive window is zero."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Clause, Confidence, Rule
from tcptrace_lab.causes.texts import proof

RULE = Rule(
    cause="zero-window",
    colour="#8a5a00",
    pattern="x",
    lost_to=Clause("zero receive window: the application on {receiver} was not reading"),
    confidence=Confidence.PROVED,
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK, proof.TIMER),
    refuted_by="a receive window that already had room for the sender's next segment while the sender waited",
    source="RFC 9293, 3.8.6.1",
    advice=Advice(
        finding="zero-window",
        title="The receive window was zero for {cost}: the application on {receiver} ({receiving}) was not reading",
        mechanism=(
            "The receiving application was not reading, its receive buffer filled up, and the receiver offered no room. "
            "The sender waited {times} for the window to open."
        ),
        limits="The capture does not show why the application was not reading.",
        cure="earlier reading",
        remedy=(
            "let the receiving application read earlier, or in a separate thread",
            "find what the application waits for: disk, lock, another service",
        ),
    ),
)
