"""The tables `ledger`, `accounts` and `stalls`: where the time went."""

from __future__ import annotations

from tcptrace_lab.schema.categories import CONFIDENCES
from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.connections import SIDES

CAUSES = {
    "handshake": "opening the connection",
    "idle": "a long pause in which neither application owed data",
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
"""Every answer to "why is the next byte of this direction not sent now?", with its meaning."""

LEDGER = table(
    "ledger",
    "one interval in the lifetime of one direction; the intervals of a direction are adjacent and never overlap",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction"),
        Column("start_ns", "Int64", Unit.NS, "Start, since 1970-01-01 UTC"),
        Column("end_ns", "Int64", Unit.NS, "End"),
        Column("cause", "Enum", Unit.NONE, "Why this direction did not send its next byte", values=tuple(CAUSES)),
        Column("frame_before", "Int64", Unit.FRAME, "Last departure before the interval", "null before the first"),
        Column("frame_after", "Int64", Unit.FRAME, "Departure that ended the wait of this interval", "null after the last"),
        Column("confidence", "Enum", Unit.NONE, "Confidence of the cause", values=CONFIDENCES),
    ],
)

DEPARTURES = table(
    "departures",
    "one segment with data, SYN or FIN: how long the sender waited before sending it, and the main cause",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True if the client sent it"),
        Column("frame", "UInt64", Unit.FRAME, "The segment", "one frame may carry segments of several connections"),
        Column("ts_ns", "Int64", Unit.NS, "Departure time, since 1970-01-01 UTC"),
        Column("wait_ns", "Int64", Unit.NS, "Time since the previous departure, or since the start of the direction"),
        Column("cause", "Enum", Unit.NONE, "Cause of the longest interval in that time", "the first of several equally long ones", tuple(CAUSES)),
        Column("cause_ns", "Int64", Unit.NS, "Length of that interval"),
        Column("confidence", "Enum", Unit.NONE, "Confidence of that cause", values=CONFIDENCES),
    ],
)

ACCOUNTS = table(
    "accounts",
    "time by cause for both directions of one connection",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        *(
            Column(f"{side}_{cause.replace('-', '_')}_ns", "Int64", Unit.NS, f"Time in the {side}'s direction: {meaning}", "null without times")
            for side in SIDES
            for cause, meaning in CAUSES.items()
        ),
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
"""Timers that end stalls, with their descriptions."""

STALLS = table(
    "stalls",
    "one stall: an interval of the ledger that is longer than two RTTs (at least 10 ms, at most the minimum RTO), with its evidence",
    [
        *LEDGER,
        Column("threshold_ns", "Int64", Unit.NS, "Minimum length of a stall", "based on the shortest RTT, which delayed ACKs do not lengthen"),
        Column("base_rtt_ns", "Int64", Unit.NS, "That RTT, from end to end", "0 where unknown"),
        Column("timer", "Enum", Unit.NONE, "Timer that ended the stall", "for ACKs inferred from their delay, or from a periodic timer of the receiver; null without a timer", tuple(STALL_TIMERS)),
        Column("ack_frame", "Int64", Unit.FRAME, "Last ACK that reached the sender during the stall", "null without one; this column and the following ones are null before the first departure and after the last"),
        Column("ack_lag_ns", "Int64", Unit.NS, "Time from the oldest data covered by that ACK to the ACK", "null if it acknowledges nothing new"),
        Column("ack_late_ns", "Int64", Unit.NS, "Part of that time beyond the shortest RTT", "null as acked_lag_ns"),
        Column("flight_before_bytes", "Int64", Unit.BYTES, "Bytes in flight at the start"),
        Column("flight_after_bytes", "Int64", Unit.BYTES, "Bytes in flight at the end"),
        Column("usable_window_before_bytes", "Int64", Unit.BYTES, "Room in the window at the start", "null while the window scale is unknown"),
        Column("smss_bytes", "Int64", Unit.BYTES, "Payload of a full segment"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Payload of the segment that ended the stall"),
    ],
)
