"""Tables on waits that the engine returns but that are not exported: every interval with its proof, and the evidence for findings."""

from __future__ import annotations

from tcptrace_lab.schema.categories import KINDS
from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.ledger import CAUSES, LEDGER, STALLS

_DIRECTION = (LEDGER["conn"], LEDGER["from_client"])

WAITS = table(
    "waits",
    "one interval of the ledger, and the wait that it is a part of; null before the first departure and after the last, but for the threshold",
    [
        *LEDGER,
        Column("kind", "Enum", Unit.NONE, "What the segment is that ended the wait", values=KINDS),
        *(column for column in STALLS if column.name not in LEDGER.names),
        Column("wait_ns", "Int64", Unit.NS, "Length of the whole wait"),
        Column("since_all_acked_ns", "Int64", Unit.NS, "Time from the ACK of everything sent to the end of the wait, at the sender", "null with bytes in flight"),
        Column("since_ack_ns", "Int64", Unit.NS, "Time from the last ACK in the wait to its end, at the sender", "null without one"),
        Column("peer_spoke", "Boolean", Unit.NONE, "Data of the peer reached the sender in the wait"),
    ],
)

NOTES = table(
    "notes",
    "one departure that the analysis of messages needs",
    [
        LEDGER["conn"],
        Column("frame", "UInt64", Unit.FRAME, "The departure"),
        Column("stall_cause", "Enum", Unit.NONE, "What in TCP held it back for so long that it is a stall", "null for the others", tuple(CAUSES)),
        Column("caused_ns", "Int64", Unit.NS, "How long the cause of its wait held it"),
        Column("brief", "Boolean", Unit.NONE, "Nagle's algorithm held it for less than a stall, and longer than its ACK needed"),
        Column("paused", "Boolean", Unit.NONE, "The application paused before it"),
        Column("is_resent", "Boolean", Unit.NONE, "It was retransmitted"),
    ],
)

KINDS_OF_WAITS = table(
    "kinds_of_waits",
    "one cause of one direction",
    [
        *_DIRECTION,
        LEDGER["cause"],
        Column("ns", "Int64", Unit.NS, "Time that it holds"),
        Column("waits", "Int64", Unit.NONE, "Intervals with it"),
        Column("sure_waits", "Int64", Unit.NONE, "Those of them that are more than possible"),
        Column("median_ns", "Float64", Unit.NS, "Length of the one in the middle"),
    ],
)

LONGEST = table(
    "longest",
    "one of the longest intervals of a direction",
    [
        *WAITS,
        Column("place", "Int64", Unit.NONE, "How many of its direction are longer"),
        Column("place_in_cause", "Int64", Unit.NONE, "How many of its direction and cause are longer"),
        Column("place_in_stalls", "Int64", Unit.NONE, "How many stalls of its direction are longer", "null if it is no stall"),
    ],
)

LOCKS = table(
    "locks",
    "a throughput deadlock: the one of a direction that took most time",
    [
        *_DIRECTION,
        Column("flight_bytes", "Int64", Unit.BYTES, "In flight in each round; the larger of two in turn"),
        Column("min_flight_bytes", "Int64", Unit.BYTES, "The smaller of two in turn, else the same"),
        Column("queued_bytes", "Int64", Unit.BYTES, "Most sent with the ACK that ended a round; 0 where nothing but the buffer can have held it"),
        Column("min_buffer_bytes", "Int64", Unit.BYTES, "In flight and queued in one round"),
        Column("smss_bytes", "Int64", Unit.BYTES, "Payload of a full segment"),
        Column("window_bytes", "Int64", Unit.BYTES, "The largest window of the receiver"),
        Column("rounds", "Int64", Unit.NONE, "How many rounds"),
        Column("ns", "Int64", Unit.NS, "Time that their waits took"),
        Column("median_ns", "Int64", Unit.NS, "Length of the wait in the middle"),
        Column("nagle", "Boolean", Unit.NONE, "All sent with the ACKs were small segments behind small ones"),
        Column("may_fill_buffer", "Boolean", Unit.NONE, "Hardly more was ever in flight"),
        Column("frames", "List(Int64)", Unit.FRAME, "The ends of the first rounds' waits, and the late ACKs"),
    ],
)

PLACES = table(
    "places",
    "one direction, and where it was captured",
    [
        *_DIRECTION,
        Column("near_sender", "Boolean", Unit.NONE, "It was captured at its sender's end"),
        Column("to_sender_ns", "Int64", Unit.NS, "From the capture point to the sender and back", "0 where it is unknown"),
        Column("rtt_whole_ns", "Int64", Unit.NS, "The shortest RTT from end to end", "0 or null where it is unknown"),
    ],
)
