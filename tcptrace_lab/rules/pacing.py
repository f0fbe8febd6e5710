"""The sender spaces what it could send."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import facts, proof
from tcptrace_lab.rules.rule import Confidence, Rule

RULE = Rule(
    cause="pacing",
    lost_to="gaps that the sender itself left between its segments",
    holds=facts.PACED_BY_SENDER
    | facts.HAD_IN_FLIGHT
    & ~facts.ALL_ACKED
    & ~facts.IS_BARE_FIN
    & ~pl.col("small_before").fill_null(value=False)
    & ~facts.IS_OLD
    & ~facts.ROOM_UNSEEN
    & ~facts.ACK_UNSEEN
    & (facts.PACED_PART * pl.col("held_ns") <= facts.RTT_NS),
    confidence=Confidence.POSSIBLE,
    proof=(proof.IN_FLIGHT, proof.ROOM),
    refuted_by="ACKs that release the segments; uneven spacing; a stack that is older than pacing",
    source="Linux net/ipv4/tcp_output.c (internal pacing); BBR",
)
