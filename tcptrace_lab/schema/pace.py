"""Columns of `connections`: how fast both ends of one direction are."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

_FREE = "one whose window had room, behind which no ACK let it go and no data of the peer came: nothing but the sender's host and program can have spaced it; of a direction with four segments of data or more; away from the sender the path spaces them, too"

_BACKLOG = "each of which ends on a segment that had waited since the ACK before, so that something was queued all the time: at a bottleneck of the path, or in the receiver's host; not seen at the receiver, whose ACKs wait for nothing"

_UNREAD = "while the window was below half of the largest, so that unread bytes filled the buffer: the window's right edge moves as the application reads"

_CUT = "a segment that is not full ends at a multiple of 1,024 bytes from the message's begin, or a full one leaves an eighth of a segment or less, and the rest follows at once or with the next ACK; one write that a buffer cut looks like two writes"

PACE = (
    Column("burst_bytes", "Int64", Unit.BYTES, "Data of segments sent without having been held, no pause before them", _FREE),
    Column("burst_ns", "Int64", Unit.NS, "Time from the departure before to each of them", "pauses, of more than 10 ms and of two RTTs, are not in it; null as above"),
    Column("burst_departures", "Int64", Unit.SEGMENTS, "How many they are", "null as above"),
    Column("paused_bytes", "Int64", Unit.BYTES, "Data of segments sent without having been held, after a pause", _FREE),
    Column("paused_ns", "Int64", Unit.NS, "Time of these pauses", "null as above"),
    Column("paused_departures", "Int64", Unit.SEGMENTS, "How many they are", "null as above"),
    Column("drained_bytes", "Int64", Unit.BYTES, "Bytes that were acknowledged while more was queued", f"of ACKs {_BACKLOG}; null as above"),
    Column("drained_ns", "Int64", Unit.NS, "Time in which they were", "stretches of 1 ms and half an RTT, or more; null as above"),
    Column("drained_acks", "Int64", Unit.SEGMENTS, "ACKs that tell of them", "null as above"),
    Column("read_bytes", "Int64", Unit.BYTES, "Bytes by which the receiving application made room", f"{_UNREAD}; null as above"),
    Column("read_ns", "Int64", Unit.NS, "Time in which it did", "null as above"),
    Column("read_windows", "Int64", Unit.SEGMENTS, "Advertised windows that tell of them", "null as above"),
    Column("cut_messages", "Int64", Unit.NONE, "Messages that were cut", f"{_CUT}; null as above"),
    Column("cut_pieces", "Int64", Unit.SEGMENTS, "Segments in them that end there, and not with the message", "null as above"),
    Column("cut_waited_ns", "Int64", Unit.NS, "Time that what was cut off waited for the ACK of what came before", "waits of 10 ms or less are not in it; null as above"),
    Column("cut_at_bytes", "Int64", Unit.BYTES, "Where these messages are cut first, from their begin", "null unless all are cut at the same place"),
    Column("cut_frame", "Int64", Unit.FRAME, "Last segment of the first of them", "null without any"),
)
"""How fast one side sends in bursts and its receiver drains, as sums of bytes and time (`rates` divides them), and what its buffers cut."""
