"""The receiver's window is closed."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Advice, Confidence, Rule

RULE = Rule(
    cause="zero-window",
    colour="#8a5a00",
    pattern="x",
    lost_to="a window that the program on {receiver} kept closed by not reading",
    confidence=Confidence.PROVED,
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK, proof.TIMER),
    refuted_by="a window with room for the segment before it left",
    source="RFC 9293, 3.8.6.1",
    advice=Advice(
        finding="zero-window",
        title="The receiver's window was closed for {cost}",
        mechanism=(
            "The receiving program did not read, its buffer filled, and the receiver offered no room. "
            "The sender waited for the window to open, {times}."
        ),
        limits="Why the program did not read cannot be seen.",
        cure="reading sooner there",
        remedy=("let the receiving program read sooner or in a thread of its own", "find what it waits for: disk, lock, another service"),
    ),
)
