"""The table `rates`."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.words import BOUND_BY

RATES = table(
    "rates",
    "how fast both ends of one direction with data are, and what that bounds",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction"),
        Column("send_bps", "Float64", Unit.BITS_PER_SECOND, "λ: rate of the sender in bursts that nothing holds; at least what it sent on average", "null away from the sender, where the path spaces its segments, below 10 samples, and where bursts mix segments of different sizes; departures at the time of an ACK are left out where it may have let them go; of a sender that paces itself, that pace"),
        Column("send_samples", "Int64", Unit.SEGMENTS, "Segments that tell of it", "null where little was sent"),
        Column("drain_bps", "Float64", Unit.BITS_PER_SECOND, "Rate at which a queue drained: of the receiving host, or of the path's narrowest place", "by ACKs while more was waiting; null at the receiver's end, and below 10 samples"),
        Column("drain_samples", "Int64", Unit.SEGMENTS, "ACKs that tell of it", "null where little was sent"),
        Column("read_bps", "Float64", Unit.BITS_PER_SECOND, "Rate at which the receiving program read while its buffer was at least half full", "by the window; null if it never was, and below 10 samples"),
        Column("read_samples", "Int64", Unit.SEGMENTS, "Windows that tell of it", "null where little was sent"),
        Column("receive_bps", "Float64", Unit.BITS_PER_SECOND, "μ: the lower of both", "null without either"),
        Column("ratio", "Float64", Unit.NONE, "λ / μ", "null unless both are known"),
        Column("line_bps", "Float64", Unit.BITS_PER_SECOND, "Rate of the line, where one of these rates is one of a standard's to 1 %", "null in most captures"),
        Column("line_bound_bps", "Float64", Unit.BITS_PER_SECOND, "What framing (best_payload_share) leaves of it", "null without"),
        Column("bound_bps", "Float64", Unit.BITS_PER_SECOND, "The lowest of λ, μ and the line's bound", "of those that are known: with λ alone, no more than that; null without any"),
        Column("bound_by", "Enum", Unit.NONE, "Which of them it is", "null without any", BOUND_BY),
        Column("sent_bps", "Float64", Unit.BITS_PER_SECOND, "New data over the time from the first data segment to the last", "null if both are at one instant"),
        Column("reached_share", "Float64", Unit.NONE, "How much of the bound that is", "at most 1: what was queued when the last segment left would make it more"),
        Column("idle_share", "Float64", Unit.NONE, "Share of that time in which the sender stood still: all but its bursts, or but the time of its data at λ, whichever is less", "pauses of its program are in it; null away from the sender"),
        Column("round_trip_ns", "Int64", Unit.NS, "Shortest round trip from end to end", "null unless both ends' answers were captured"),
        Column("send_buffer_needed_bytes", "Int64", Unit.BYTES, "Send buffer with which the sending program never waits: λ times the round trip", "null without either"),
        Column("receive_buffer_needed_bytes", "Int64", Unit.BYTES, "Receive buffer, and send buffer, that let the bound be reached: bound times round trip", "null without either"),
        Column("window_segments", "Int64", Unit.SEGMENTS, "Full segments that the largest window has room for", "null while the scale is unknown"),
        Column("window_full_share", "Float64", Unit.NONE, "How often a segment would find that window full, were it a queue M/M/1/K: (1-r) r^K / (1-r^(K+1)) with r = λ/μ", "a model of random arrivals; null without λ/μ"),
        Column("send_buffer_estimate_bytes", "Int64", Unit.BYTES, "Level of the largest flights, where it is the sender's: its send buffer, or a congestion window that something clamps", "which of them, a capture does not tell; a program that writes large pieces never fills the buffer wholly; null without a plateau of five round trips, below the window by two segments, in step with the ACKs"),
    ],
)
