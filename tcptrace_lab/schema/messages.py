"""The table `messages`: one application message per row."""

from __future__ import annotations

from tcptrace_lab.schema.categories import CONFIDENCES, MESSAGE_STATES
from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.ledger import CAUSES

MESSAGES = table(
    "messages",
    "one application message: consecutive bytes of one direction, ended by a change of direction or a pause of the application",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's message"),
        Column("index", "Int64", Unit.NONE, "Its number in its direction, from 0"),
        Column("start_offset", "Int64", Unit.OFFSET, "Its first byte"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Its size", "too small if its start or end was not captured"),
        Column("segments", "Int64", Unit.SEGMENTS, "Segments with its bytes, as captured, including retransmits"),
        Column("first_frame", "Int64", Unit.FRAME, "The first of them"),
        Column("last_frame", "Int64", Unit.FRAME, "The last of them"),
        Column("stall_frame", "Int64", Unit.FRAME, "The segment that ended its first stall", "null without any"),
        Column("first_ts_ns", "Int64", Unit.NS, "Time of the first of its segments"),
        Column("last_ts_ns", "Int64", Unit.NS, "Time of the last of them"),
        Column("acked_ts_ns", "Int64", Unit.NS, "Time of the first ACK of its last byte", "null without one"),
        Column("answer_ts_ns", "Int64", Unit.NS, "Time of the first byte of the peer's answer", "null without one, and if both hosts sent at once"),
        Column("transfer_ns", "Int64", Unit.NS, "From its first segment to its last", "without the transit of the last one"),
        Column("stalled_ns", "Int64", Unit.NS, "Part of transfer_ns: waits of more than two RTTs (10 ms on a LAN, at most the minimum RTO) caused by TCP"),
        Column("stall_cause", "Enum", Unit.NONE, "Cause of the longest of them", "null without any", tuple(CAUSES)),
        Column("short_nagle_wait_ns", "Int64", Unit.NS, "Part of transfer_ns: shorter waits caused by Nagle's algorithm and a late ACK, each one RTT (1 ms on a LAN) longer than without"),
        Column("short_nagle_wait_frame", "Int64", Unit.FRAME, "The segment that ended the first of them", "null without any"),
        Column("writes_inferred", "List(Int64)", Unit.BYTES, "Sizes of the writes of the message, inferred from segments below the MSS: the first 64 and the rest", "writes of full segments, and writes that TCP merged while it delayed them, do not show; null if bytes were retransmitted or are missing"),
        Column("writes_confidence", "Enum", Unit.NONE, "Confidence of the writes", "null without writes", CONFIDENCES),
        Column("state", "Enum", Unit.NONE, "Completeness of the message", values=MESSAGE_STATES),
    ],
)
