"""Columns of `connections`: rates of both endpoints of one direction."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

_FREE = "segments that the window allowed and that no ACK and no data from the peer triggered: only the sending host and application can have spaced them; for directions with at least four segments of data; away from the sender, the path also spaces them"

_BACKLOG = "ACKs that end on a segment that had waited since the previous ACK, so that data was always queued: at a bottleneck of the path or in the receiving host; not visible at the receiver, whose ACKs do not wait"

_UNREAD = "while the window was below half of the largest, so that unread bytes filled the buffer: the right edge of the window moves as the application reads"

_CUT = "a segment below the MSS ends at a multiple of 1,024 bytes from the start of the message, or a full one leaves an eighth of a segment or less, and the rest follows at once or with the next ACK; one write cut by a buffer looks like two writes"

PACE = (
    Column("burst_bytes", "Int64", Unit.BYTES, "Data of segments in unlimited bursts (no limit and no pause before them)", _FREE),
    Column("burst_ns", "Int64", Unit.NS, "Time of these bursts: from the previous departure to each of these segments", "without pauses (more than 10 ms and two RTTs); null as above"),
    Column("burst_departures", "Int64", Unit.SEGMENTS, "Number of these segments", "null as above"),
    Column("paused_bytes", "Int64", Unit.BYTES, "Data of unlimited segments after a pause", _FREE),
    Column("paused_ns", "Int64", Unit.NS, "Duration of these pauses", "null as above"),
    Column("paused_departures", "Int64", Unit.SEGMENTS, "Number of these segments", "null as above"),
    Column("drained_bytes", "Int64", Unit.BYTES, "Bytes ACKed while more data was queued", f"from {_BACKLOG}; null as above"),
    Column("drained_ns", "Int64", Unit.NS, "Time in which they were ACKed", "stretches of at least 1 ms and half an RTT; null as above"),
    Column("drained_acks", "Int64", Unit.SEGMENTS, "Number of these ACKs", "null as above"),
    Column("read_bytes", "Int64", Unit.BYTES, "Bytes that the receiving application read", f"{_UNREAD}; null as above"),
    Column("read_ns", "Int64", Unit.NS, "Time in which it read them", "null as above"),
    Column("read_windows", "Int64", Unit.SEGMENTS, "Number of windows that show this", "null as above"),
    Column("cut_messages", "Int64", Unit.NONE, "Messages cut by a buffer", f"{_CUT}; null as above"),
    Column("cut_pieces", "Int64", Unit.SEGMENTS, "Segments of these messages that end at the cut", "null as above"),
    Column("cut_waited_ns", "Int64", Unit.NS, "Time that the rest of these messages waited for the ACK of the earlier data", "without waits of 10 ms or less; null as above"),
    Column("cut_at_bytes", "Int64", Unit.BYTES, "Offset of the first cut in these messages", "null unless all are cut at the same place"),
    Column("cut_frame", "Int64", Unit.FRAME, "Last segment of the first of them", "null without any"),
)
"""Bytes and time of a sender's bursts and of its receiver's draining, as sums (`rates` divides them), and messages that buffers cut."""
