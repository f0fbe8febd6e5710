"""Tables of waits that the engine returns but that are not exported: every interval with its proof, and the evidence for findings."""

from __future__ import annotations

from tcptrace_lab.schema.categories import KINDS
from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.ledger import CAUSES, LEDGER, STALLS

_DIRECTION = (LEDGER["conn"], LEDGER["from_client"])

WAITS = table(
    "waits",
    "one interval of the ledger, and the wait that contains it; before the first departure and after the last, only the wait's threshold is known",
    [
        *LEDGER,
        Column("kind", "Enum", Unit.NONE, "Kind of the segment that ended the wait", values=KINDS),
        *(column for column in STALLS if column.name not in LEDGER.names),
        Column("wait_ns", "Int64", Unit.NS, "Length of the whole wait"),
        Column("since_all_acked_ns", "Int64", Unit.NS, "Time from the ACK that covered all sent data to the end of the wait, at the sender", "null while bytes are in flight"),
        Column("since_ack_ns", "Int64", Unit.NS, "Time from the last ACK in the wait to the end of the wait, at the sender", "null without an ACK in the wait"),
        Column("peer_spoke", "Boolean", Unit.NONE, "True if data of the peer reached the sender during the wait"),
    ],
)

NOTES = table(
    "notes",
    "one departure that the analysis of messages needs",
    [
        LEDGER["conn"],
        Column("frame", "UInt64", Unit.FRAME, "Frame of the departure"),
        Column("stall_cause", "Enum", Unit.NONE, "Cause of the wait before it, if TCP caused a stall", "null for all other departures", tuple(CAUSES)),
        Column("caused_ns", "Int64", Unit.NS, "Time that the cause of its wait took"),
        Column("short_nagle_delay", "Boolean", Unit.NONE, "True if Nagle's algorithm delayed it for less than a stall, but for longer than its ACK needed"),
        Column("paused", "Boolean", Unit.NONE, "True if the application paused before it"),
        Column("is_resent", "Boolean", Unit.NONE, "True if it was retransmitted"),
    ],
)

KINDS_OF_WAITS = table(
    "kinds_of_waits",
    "one cause of one direction",
    [
        *_DIRECTION,
        LEDGER["cause"],
        Column("ns", "Int64", Unit.NS, "Time that the cause took"),
        Column("waits", "Int64", Unit.NONE, "Number of intervals with this cause"),
        Column("sure_waits", "Int64", Unit.NONE, "Number of these intervals whose confidence is better than possible"),
        Column("sure_ns", "Int64", Unit.NS, "Time of the intervals whose confidence is better than possible"),
        Column("proved_ns", "Int64", Unit.NS, "Time of the intervals whose cause is proved"),
        Column("median_ns", "Float64", Unit.NS, "Median length of these intervals"),
    ],
)

LONGEST = table(
    "longest",
    "one of the longest intervals of a direction",
    [
        *WAITS,
        Column("place", "Int64", Unit.NONE, "Number of longer intervals in the direction"),
        Column("place_in_cause", "Int64", Unit.NONE, "Number of longer intervals with the same cause in the direction"),
        Column("place_in_stalls", "Int64", Unit.NONE, "Number of longer stalls in the direction", "null if the interval is no stall"),
    ],
)

LOCKS = table(
    "locks",
    "the throughput deadlock that took most time in a direction",
    [
        *_DIRECTION,
        Column("flight_bytes", "Int64", Unit.BYTES, "Bytes in flight in each round; the larger number if two alternate"),
        Column("min_flight_bytes", "Int64", Unit.BYTES, "The smaller number if two alternate, else flight_bytes"),
        Column("queued_bytes", "Int64", Unit.BYTES, "Largest number of bytes sent when the ACK that ended a round arrived; 0 if only a full send buffer can have delayed them"),
        Column("min_buffer_bytes", "Int64", Unit.BYTES, "Lower bound of the send buffer: bytes in flight and queued in one round"),
        Column("smss_bytes", "Int64", Unit.BYTES, "Payload of a full segment (SMSS: RFC 5681)"),
        Column("window_bytes", "Int64", Unit.BYTES, "Largest window of the receiver"),
        Column("rounds", "Int64", Unit.NONE, "Number of rounds"),
        Column("ns", "Int64", Unit.NS, "Total length of the waits of the deadlock"),
        Column("median_ns", "Int64", Unit.NS, "Median length of the waits of the deadlock"),
        Column("nagle", "Boolean", Unit.NONE, "True if all segments sent at the ACKs were below the MSS, and each segment before them was below the MSS, too"),
        Column("may_fill_buffer", "Boolean", Unit.NONE, "True if hardly more bytes were ever in flight"),
        Column("frames", "List(Int64)", Unit.FRAME, "Frames at the ends of the first rounds' waits, and of the late ACKs"),
    ],
)

PLACES = table(
    "places",
    "one direction, and where it was captured",
    [
        *_DIRECTION,
        Column("near_sender", "Boolean", Unit.NONE, "True if the direction was captured at its sender"),
        Column("to_sender_ns", "Int64", Unit.NS, "Shortest time from the capture point to the sender and back", "0 if unknown"),
        Column("base_rtt_ns", "Int64", Unit.NS, "Base RTT: the shortest RTT from end to end", "0 or null if unknown"),
    ],
)
