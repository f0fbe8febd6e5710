"""The tables `ledger`, `accounts` and `stalls`: where the time went."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.connections import SIDES
from tcptrace_lab.schema.words import CONFIDENCES

CAUSES = {
    "handshake": "opening the connection",
    "idle": "a long silence in which nobody owed anything",
    "application": "the sender's program had nothing to send",
    "peer": "waiting for the other side's message",
    "nagle": "held by Nagle's algorithm, although nothing was delayed",
    "nagle-delayed-ack": "held by Nagle's algorithm until a delayed ACK",
    "delayed-ack": "other waits for a delayed ACK",
    "send-buffer": "the send buffer was full of unacknowledged bytes",
    "receiver-window": "the receiver's window had no room",
    "zero-window": "the receiver's window was closed",
    "slow-start": "flights still growing towards what the path can carry",
    "congestion-window": "the congestion window, small after a loss",
    "pacing": "spaced by the sender",
    "loss-recovery": "repairing losses",
    "timeout": "waiting for the retransmission timer",
    "network": "bytes in transit, or draining through the bottleneck",
    "close": "after the FIN",
    "unknown": "the capture does not tell",
}
"""Every answer to "why is the next byte of this direction not leaving now?", and what it means."""

LEDGER = table(
    "ledger",
    "one interval of one direction's life; those of a direction touch and never overlap",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction"),
        Column("start_ns", "Int64", Unit.NS, "Its begin, since 1970-01-01 UTC"),
        Column("end_ns", "Int64", Unit.NS, "Its end"),
        Column("cause", "Enum", Unit.NONE, "Why the next byte of this direction did not leave", values=tuple(CAUSES)),
        Column("frame_before", "Int64", Unit.FRAME, "The last departure before it", "null before the first"),
        Column("frame_after", "Int64", Unit.FRAME, "The departure that ended the wait it belongs to", "null after the last"),
        Column("confidence", "Enum", Unit.NONE, "How sure the cause is", values=CONFIDENCES),
    ],
)

DEPARTURES = table(
    "departures",
    "one segment with data, SYN or FIN: how long its sender had waited with it, and why for the most part",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True if the client sent it"),
        Column("frame", "UInt64", Unit.FRAME, "The segment", "one frame may carry segments of several connections"),
        Column("ts_ns", "Int64", Unit.NS, "When it left, since 1970-01-01 UTC"),
        Column("wait_ns", "Int64", Unit.NS, "Time since the departure before it, or since the direction began"),
        Column("cause", "Enum", Unit.NONE, "The cause of the longest interval of that time", "the first of several as long", tuple(CAUSES)),
        Column("cause_ns", "Int64", Unit.NS, "How long that interval is"),
        Column("confidence", "Enum", Unit.NONE, "How sure its cause is", values=CONFIDENCES),
    ],
)

ACCOUNTS = table(
    "accounts",
    "where the time of one connection's directions went",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        *(
            Column(f"{side}_{cause.replace('-', '_')}_ns", "Int64", Unit.NS, f"Time of the {side}'s direction: {meaning}", "null without times")
            for side in SIDES
            for cause, meaning in CAUSES.items()
        ),
    ],
)

STALL_TIMERS = {
    "ack-40ms": "delayed ACK of 40 ms",
    "ack-50ms": "delayed ACK of 50 ms",
    "ack-100ms": "delayed ACK of 100 ms",
    "ack-200ms": "delayed ACK of 200 ms",
    "ack-heartbeat": "the receiver's heartbeat of 200 ms",
    "retransmission": "the sender's retransmission timer",
    "tail-probe": "the sender's tail-loss probe",
    "persist": "the sender's window probe",
}
"""Timers that end stalls, and what they are."""

STALLS = table(
    "stalls",
    "one stall: an interval of the ledger that is longer than two round trips (at least 10 ms, at most the least timeout), with its proof",
    [
        *LEDGER,
        Column("threshold_ns", "Int64", Unit.NS, "From this length on it is a stall", "by the shortest round trip, which delayed ACKs do not lengthen"),
        Column("round_trip_ns", "Int64", Unit.NS, "That round trip, from end to end", "0 where it is not known"),
        Column("timer", "Enum", Unit.NONE, "The timer that ended it", "of ACKs by how late this one was, or by the receiver's habit where that is a heartbeat; null if none shows", tuple(STALL_TIMERS)),
        Column("acked_by_frame", "Int64", Unit.FRAME, "The last ACK that reached the sender in it", "null without one; this column and those after it are null before the first departure and after the last"),
        Column("acked_lag_ns", "Int64", Unit.NS, "Time from the oldest data which that ACK acknowledges to it", "null if it acknowledges nothing new"),
        Column("ack_late_ns", "Int64", Unit.NS, "What of that is more than the shortest round trip", "null as before"),
        Column("unacked_before_bytes", "Int64", Unit.BYTES, "Bytes in flight when it began"),
        Column("unacked_bytes", "Int64", Unit.BYTES, "Bytes in flight when it ended"),
        Column("usable_before_bytes", "Int64", Unit.BYTES, "Room in the window when it began", "null while the window scale is unknown"),
        Column("full_bytes", "Int64", Unit.BYTES, "Payload of a full segment"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Payload of the segment that ended it"),
    ],
)
