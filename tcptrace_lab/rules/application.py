"""The sender's program had nothing to send."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Advice, Confidence, Rule

RULE = Rule(
    cause="application",
    colour="#b9bfc7",
    pattern="",
    lost_to="the program on {sender}, which had nothing to send",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.ACK, proof.TIMER),
    refuted_by="a segment released by an ACK, a timer, or a window that opened",
    source="Siekkinen et al. 2005 (application-limited periods)",
    advice=Advice(
        finding="application-limited",
        title="The sending program had nothing to send for {cost}",
        mechanism=(
            "Everything sent was acknowledged and the window was open, yet nothing left, {times}, for {median} in the middle. "
            "TCP waited for the program, not the other way round."
        ),
        limits="What the program did meanwhile is not in the capture: computing, reading a disk, sleeping, or waiting for a user. "
        "Away from the sender, segments that stood in a queue before the capture point, or were lost there with nothing behind them, "
        "look alike.",
        remedy=("look into the program, with a profiler or its log, at the times of the evidence",),
        is_a_fault=False,
    ),
)
