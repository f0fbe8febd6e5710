"""The table `messages`."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.ledger import CAUSES
from tcptrace_lab.schema.words import CONFIDENCES, MESSAGE_STATES

MESSAGES = table(
    "messages",
    "one application message: a run of bytes one way, ended by a turn of direction or by a pause of the program",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's message"),
        Column("index", "Int64", Unit.NONE, "Its number in its direction, from 0"),
        Column("start_offset", "Int64", Unit.OFFSET, "Its first byte"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Its size", "too small where its begin or end was not captured"),
        Column("segments", "Int64", Unit.SEGMENTS, "Segments with its bytes as captured, those sent again included"),
        Column("first_frame", "Int64", Unit.FRAME, "The first of them"),
        Column("last_frame", "Int64", Unit.FRAME, "The last of them"),
        Column("stall_frame", "Int64", Unit.FRAME, "The segment that ended its first stall", "null without any"),
        Column("first_ts_ns", "Int64", Unit.NS, "Time of the first of its segments"),
        Column("last_ts_ns", "Int64", Unit.NS, "Time of the last of them"),
        Column("acked_ts_ns", "Int64", Unit.NS, "Time of the first ACK of its last byte", "null without one"),
        Column("answer_ts_ns", "Int64", Unit.NS, "Time of the first byte of the other side's answer", "null without one, and where both sides sent at once"),
        Column("transfer_ns", "Int64", Unit.NS, "From its first segment to its last", "the transit of the last one is not in it"),
        Column("stalled_ns", "Int64", Unit.NS, "Of that, waits of more than two round trips (10 ms on a LAN, at most the least timeout) in which TCP held back its bytes"),
        Column("stall_cause", "Enum", Unit.NONE, "Cause of the longest of them", "null without any", tuple(CAUSES)),
        Column("briefly_held_ns", "Int64", Unit.NS, "Of transfer_ns, shorter waits in which Nagle's rule held its bytes until an ACK that was late: each a round trip, or 1 ms on a LAN, longer than an undisturbed one"),
        Column("briefly_held_frame", "Int64", Unit.FRAME, "The segment that ended the first of them", "null without any"),
        Column("writes_inferred", "List(Int64)", Unit.BYTES, "Sizes of the writes that made it, as far as segments below the MSS show where one ended: the first 64 and the rest", "writes of full segments, and those that TCP joined while it held them, do not show; null where bytes were sent again or are missing"),
        Column("writes_confidence", "Enum", Unit.NONE, "How sure they are", "null without writes", CONFIDENCES),
        Column("state", "Enum", Unit.NONE, "Whether it is known as a whole", values=MESSAGE_STATES),
    ],
)
