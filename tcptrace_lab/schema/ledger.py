"""The tables `ledger`, `accounts` and `stalls`, which assign the time of each direction to causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.schema.categories import CONFIDENCES
from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.connections import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator

CAUSES = {
    "handshake": "opening the connection",
    "idle": "a long pause in which no data was expected from either application",
    "application": "the sending application was not sending",
    "peer": "waiting for a message from the peer",
    "nagle": "Nagle's algorithm, without a delayed ACK",
    "nagle-delayed-ack": "Nagle's algorithm waiting for a delayed ACK",
    "delayed-ack": "waiting for a delayed ACK, without Nagle's algorithm",
    "send-buffer": "the send buffer was full",
    "receiver-window": "the receive window was full",
    "zero-window": "the receive window was zero",
    "slow-start": "slow start: the flight was still growing",
    "congestion-window": "the congestion window was reduced by packet loss",
    "pacing": "the sender paced its segments",
    "loss-recovery": "loss recovery",
    "timeout": "waiting for a retransmission timeout (RTO)",
    "network": "data in transit, or draining through the bottleneck",
    "close": "after the FIN",
    "unknown": "the capture does not show the cause",
}
"""Cause → meaning. A cause answers the question: why is the next byte of this direction not sent now?"""

LEDGER = table(
    "ledger",
    "one interval in the lifetime of one direction; the intervals of a direction are adjacent and never overlap",
    [
        Column("conn", "UInt32", Unit.NONE, "Number of the connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction"),
        Column("start_ns", "Int64", Unit.NS, "Start of the interval, in ns since 1970-01-01 UTC"),
        Column("end_ns", "Int64", Unit.NS, "End of the interval, in ns since 1970-01-01 UTC"),
        Column("cause", "Enum", Unit.NONE, "Why this direction did not send its next byte in this interval", values=tuple(CAUSES)),
        Column("frame_before", "Int64", Unit.FRAME, "Frame of the last departure before the interval", "null before the first departure"),
        Column("frame_after", "Int64", Unit.FRAME, "Frame of the departure that ended the wait to which the interval belongs", "null after the last departure"),
        Column("confidence", "Enum", Unit.NONE, "Confidence of cause", values=CONFIDENCES),
        Column("rivals", "String", Unit.NONE, "Causes that explain the interval equally well, separated by |", "null if cause is known, or if the capture shows no such causes"),
    ],
)

DEPARTURES = table(
    "departures",
    "one segment with data, SYN or FIN, with the time that the sender waited before it and the main cause of that wait",
    [
        Column("conn", "UInt32", Unit.NONE, "Number of the connection"),
        Column("from_client", "Boolean", Unit.NONE, "True if the client sent the segment"),
        Column("frame", "UInt64", Unit.FRAME, "Frame of the segment", "a frame may carry segments of several connections"),
        Column("ts_ns", "Int64", Unit.NS, "Time of the departure, in ns since 1970-01-01 UTC"),
        Column("wait_ns", "Int64", Unit.NS, "Time since the previous departure, or since the start of the direction"),
        Column("cause", "Enum", Unit.NONE, "Cause of the longest interval within wait_ns", "the first one of several equally long ones", tuple(CAUSES)),
        Column("cause_ns", "Int64", Unit.NS, "Length of the longest interval within wait_ns"),
        Column("confidence", "Enum", Unit.NONE, "Confidence of cause", values=CONFIDENCES),
    ],
)


def _account(side: str) -> Iterator[Column]:
    for cause, meaning in CAUSES.items():
        name = f"{side}_{cause.replace('-', '_')}_ns"
        yield Column(name, "Int64", Unit.NS, f"Time in the {side}'s direction: {meaning}", "null without times")
    yield Column(f"{side}_rivals", "String", Unit.NONE, f"Causes that explain more than half of {side}_unknown_ns equally well, separated by |", "null if there are none")


ACCOUNTS = table(
    "accounts",
    "time by cause for both directions of one connection",
    [
        Column("conn", "UInt32", Unit.NONE, "Number of the connection"),
        *(column for side in SIDES for column in _account(side)),
    ],
)

STALL_TIMERS = {
    "ack-40ms": "delayed-ACK timer of 40 ms",
    "ack-50ms": "delayed-ACK timer of 50 ms",
    "ack-100ms": "delayed-ACK timer of 100 ms",
    "ack-200ms": "delayed-ACK timer of 200 ms",
    "ack-heartbeat": "periodic delayed-ACK timer of 200 ms",
    "retransmission": "retransmission timer",
    "tail-probe": "tail-loss probe timer",
    "persist": "persist timer (window probe)",
}
"""Timer that ends a stall → description."""

STALLS = table(
    "stalls",
    "one stall: an interval of the ledger above the threshold of two RTTs (but at least 10 ms, and at most one RTT plus the minimum RTO), with its evidence",
    [
        *LEDGER,
        Column("threshold_ns", "Int64", Unit.NS, "Minimum length of a stall in this direction", "from the base RTT, which delayed ACKs do not lengthen"),
        Column("base_rtt_ns", "Int64", Unit.NS, "Base RTT: the shortest RTT from end to end", "0 if unknown"),
        Column("timer", "Enum", Unit.NONE, "Timer that ended the stall", "for ACK timers, inferred from the delay of the ACK or from the receiver's periodic timer; null without a timer", tuple(STALL_TIMERS)),
        Column("ack_frame", "Int64", Unit.FRAME, "Frame of the last ACK that reached the sender during the stall", "null without an ACK; this column and those that follow are null before the first departure and after the last"),
        Column("ack_lag_ns", "Int64", Unit.NS, "Time from the transmission of the oldest data that the ACK in ack_frame covers to that ACK", "null if the ACK covers nothing new"),
        Column("ack_late_ns", "Int64", Unit.NS, "Part of ack_lag_ns beyond the base RTT", "null if the ACK covers nothing new"),
        Column("flight_before_bytes", "Int64", Unit.BYTES, "Bytes in flight at the start of the wait"),
        Column("flight_after_bytes", "Int64", Unit.BYTES, "Bytes in flight at the end of the wait"),
        Column("usable_window_before_bytes", "Int64", Unit.BYTES, "Bytes that the advertised window still allowed at the start of the wait", "null while the window scale is unknown"),
        Column("smss_bytes", "Int64", Unit.BYTES, "Payload of a full segment (SMSS: RFC 5681)"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Payload of the segment that ended the stall"),
    ],
)
