"""peer: the host has no data to send until its peer sends a message."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Confidence, Rule
from tcptrace_lab.causes.texts import proof

RULE = Rule(
    cause="peer",
    colour="#d3d8de",
    pattern=".",
    lost_to="waiting for messages from {receiver}",
    confidence=Confidence.CONSISTENT,
    proof=(proof.ACK,),
    refuted_by="new data that this endpoint sends before data of its peer arrives",
    source="the ledger of the opposite direction shows what the peer was waiting for",
)
