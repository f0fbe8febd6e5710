"""This side waits for the other side's message."""

from __future__ import annotations

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.rule import Confidence, Rule

RULE = Rule(
    cause="peer",
    colour="#d3d8de",
    pattern=".",
    lost_to="waiting for the other side's messages",
    confidence=Confidence.CONSISTENT,
    proof=(proof.ACK,),
    refuted_by="no data of the other side before this side goes on",
    source="the other direction's ledger says what it did with the time",
)
