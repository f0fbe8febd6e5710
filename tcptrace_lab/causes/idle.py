"""idle: for a long time, neither application had data to send, and no request was open."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Confidence, Rule
from tcptrace_lab.causes.texts import proof

RULE = Rule(
    cause="idle",
    colour="#eceef1",
    pattern="",
    lost_to="idle time (no data due)",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.ACK),
    refuted_by="a request that was unanswered during the pause; pauses of this length throughout the transfer",
    source="a heuristic: all data is ACKed, every request is answered, and the pause is longer than 1 s and than ten times the usual pause",
)
