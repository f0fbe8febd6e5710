"""Columns of `connections`: what drained, and what a buffer cut."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

_BACKLOG = "ACKs that end on a segment that had waited since the previous ACK, so that data was always queued: at a bottleneck of the path or in the receiving host; not visible at the receiver, whose ACKs do not wait"

_CUT = "a segment below the MSS ends at a multiple of 1,024 bytes from the start of the message, or a full one leaves an eighth of a segment or less, and the rest follows at once or with the next ACK; one write cut by a buffer looks like two writes"

PACE = (
    Column("drained_bytes", "Int64", Unit.BYTES, "Bytes ACKed while more data was queued", f"from {_BACKLOG}; null below four segments of data"),
    Column("drained_ns", "Int64", Unit.NS, "Time in which they were ACKed", "stretches of at least 1 ms and half an RTT; null as above"),
    Column("drained_acks", "Int64", Unit.SEGMENTS, "Number of these ACKs", "null as above"),
    Column("read_ns", "Int64", Unit.NS, "Time in which the receiving application read from a buffer at least half full", "null as above"),
    Column("cut_messages", "Int64", Unit.NONE, "Messages cut by a buffer", f"{_CUT}; null as above"),
    Column("cut_pieces", "Int64", Unit.SEGMENTS, "Segments of these messages that end at the cut", "null as above"),
    Column("cut_waited_ns", "Int64", Unit.NS, "Time that the rest of these messages waited for the ACK of the earlier data", "without waits of 10 ms or less; null as above"),
    Column("cut_at_bytes", "Int64", Unit.BYTES, "Offset of the first cut in these messages", "null unless all are cut at the same place"),
    Column("cut_frame", "Int64", Unit.FRAME, "Last segment of the first of them", "null without any"),
)
"""Bytes and time of drained queues, as sums, and messages that buffers cut."""
