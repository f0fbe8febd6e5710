"""The table `messages`: one application message per row."""

from __future__ import annotations

from tcptrace_lab.schema.categories import CONFIDENCES, MESSAGE_STATES
from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.ledger import CAUSES

MESSAGES = table(
    "messages",
    "one application message: consecutive bytes of one direction, ended by a change of direction or a pause of the application",
    [
        Column("conn", "UInt32", Unit.NONE, "Number of the connection"),
        Column("from_client", "Boolean", Unit.NONE, "True if the client sent the message"),
        Column("index", "Int64", Unit.NONE, "Number of the message in its direction, from 0"),
        Column("start_offset", "Int64", Unit.OFFSET, "Stream offset of the first byte of the message"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Size of the message", "too small if its start or its end was not captured"),
        Column("segments", "Int64", Unit.SEGMENTS, "Captured segments with bytes of the message, including retransmits"),
        Column("first_frame", "Int64", Unit.FRAME, "Frame of the first captured segment of the message"),
        Column("last_frame", "Int64", Unit.FRAME, "Frame of the last captured segment of the message"),
        Column("stall_frame", "Int64", Unit.FRAME, "Frame of the segment that ended the first stall (see stalled_ns) of the message", "null without stalls"),
        Column("first_ts_ns", "Int64", Unit.NS, "Time of the segment in first_frame, in ns since 1970-01-01 UTC"),
        Column("last_ts_ns", "Int64", Unit.NS, "Time of the segment in last_frame, in ns since 1970-01-01 UTC"),
        Column("acked_ts_ns", "Int64", Unit.NS, "Time of the first ACK that covers the last byte of the message", "null without one"),
        Column("answer_ts_ns", "Int64", Unit.NS, "Time of the first byte of the peer's answer", "null without one, and if both hosts sent at the same time"),
        Column("transfer_ns", "Int64", Unit.NS, "Time from the first segment of the message to the last", "does not include the transit of the last segment"),
        Column("stalled_ns", "Int64", Unit.NS, "Part of transfer_ns spent in stalls: waits that TCP caused, above the threshold of two RTTs (but at least 10 ms, and at most one RTT plus the minimum RTO)"),
        Column("stall_cause", "Enum", Unit.NONE, "Cause of the longest stall of the message", "null without stalls", tuple(CAUSES)),
        Column("short_nagle_wait_ns", "Int64", Unit.NS, "Part of transfer_ns spent in short waits that Nagle's algorithm and a late ACK caused: shorter than a stall, but at least one RTT (1 ms on a LAN) longer than the ACK needed"),
        Column("short_nagle_wait_frame", "Int64", Unit.FRAME, "Frame of the segment that ended the first wait in short_nagle_wait_ns", "null without any"),
        Column("writes_inferred", "List(Int64)", Unit.BYTES, "Sizes of the application's writes, inferred from segments below the MSS: the first 64 writes, then the rest as one", "writes that end with a full segment, and delayed writes that TCP merged, are not visible; null if bytes were retransmitted or are missing"),
        Column("writes_confidence", "Enum", Unit.NONE, "Confidence of writes_inferred", "null without writes", CONFIDENCES),
        Column("state", "Enum", Unit.NONE, "Completeness of the message", values=MESSAGE_STATES),
    ],
)
