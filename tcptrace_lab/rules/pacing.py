"""The sender spaces what it could send."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.facts import acks, flow, limits, path, released, resent
from tcptrace_lab.rules.rule import Confidence, Rule

RULE = Rule(
    cause="pacing",
    lost_to="gaps that the sender itself left between its segments",
    holds=released.PACED_BY_SENDER
    | acks.HAD_IN_FLIGHT
    & ~acks.ALL_ACKED
    & ~resent.IS_BARE_FIN
    & ~pl.col("small_before").fill_null(value=False)
    & ~path.IS_OLD
    & ~flow.ROOM_UNSEEN
    & ~flow.ACK_UNSEEN
    & (flow.PACED_PART * pl.col("held_ns") <= limits.RTT_NS),
    confidence=Confidence.POSSIBLE,
    proof=(proof.IN_FLIGHT, proof.ROOM),
    refuted_by="ACKs that release the segments; uneven spacing; a stack that is older than pacing",
    source="Linux net/ipv4/tcp_output.c (internal pacing); BBR",
)
