"""Columns of `connections` on how fast queues drained, and on messages that were cut at buffer sizes."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

_BACKLOG = "data counts as queued, at a bottleneck of the path or in the receiving host, if an ACK covers only data that was sent before the previous ACK; not visible at the receiver"

_CUT = "a message is cut if its next piece follows at once or with the next ACK, and its previous piece either is a full segment and leaves at most 1/8 of a segment, or is below the MSS and ends at a multiple of 1,024 bytes from the start of the message; two writes look the same"

PACE = (
    Column("drained_bytes", "Int64", Unit.BYTES, "Bytes of this host that were ACKed while more of its data was queued", f"{_BACKLOG}; null below four segments of data"),
    Column("drained_ns", "Int64", Unit.NS, "Time in which drained_bytes were ACKed", "counts periods of at least 1 ms and half an RTT; null below four segments of data"),
    Column("drained_acks", "Int64", Unit.SEGMENTS, "Number of ACKs that cover drained_bytes", "null below four segments of data"),
    Column("read_ns", "Int64", Unit.NS, "Time in which the receiving application read from a receive buffer that was at least half full", "null below four segments of data"),
    Column("cut_messages", "Int64", Unit.NONE, "Messages of this host that a full send buffer cut into pieces", f"{_CUT}; null below four segments of data"),
    Column("cut_pieces", "Int64", Unit.SEGMENTS, "Segments that end at the cut of a cut message", "null below four segments of data"),
    Column("cut_waited_ns", "Int64", Unit.NS, "Time that the rest of the cut messages waited for the ACK of the earlier data", "waits of 10 ms or less do not count; null below four segments of data"),
    Column("cut_at_bytes", "Int64", Unit.BYTES, "Offset of the first cut from the start of the message", "null unless all messages are cut at the same offset"),
    Column("cut_frame", "Int64", Unit.FRAME, "Frame of the last segment of the first cut message", "null without cut messages"),
)
"""Sums over a connection: the bytes that drained from queues, the time in which they drained, and the messages that buffers cut."""
