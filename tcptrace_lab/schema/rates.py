"""Columns of `connections` with the rates and bounds of a direction, and the table `rates` with one direction per row."""

from __future__ import annotations

from tcptrace_lab.schema.categories import BOUND_BY
from tcptrace_lab.schema.column import Column, Unit, table

BOUNDS = (
    Column("send_bps", "Float64", Unit.BITS_PER_SECOND, "λ: rate of the sender in unlimited bursts; at least its average rate", "null away from the sender, where the path spaces its segments, below 10 samples, and where bursts mix segments of different sizes; without departures that an ACK may have triggered; for a pacing sender, the pacing rate"),
    Column("send_samples", "Int64", Unit.SEGMENTS, "Segments behind that rate", "null where little was sent"),
    Column("drain_bps", "Float64", Unit.BITS_PER_SECOND, "Rate at which a queue drained: that of the receiving host, or of the bottleneck", "from ACKs while more was queued; null at the receiver, and below 10 samples"),
    Column("drain_samples", "Int64", Unit.SEGMENTS, "ACKs behind that rate", "null where little was sent"),
    Column("read_bps", "Float64", Unit.BITS_PER_SECOND, "Rate at which the receiving application read while its buffer was at least half full", "from the window; null if it never was, and below 10 samples"),
    Column("read_samples", "Int64", Unit.SEGMENTS, "Windows behind that rate", "null where little was sent"),
    Column("receive_bps", "Float64", Unit.BITS_PER_SECOND, "μ: the lower of drain_bps and read_bps", "null without either"),
    Column("ratio", "Float64", Unit.NONE, "λ / μ", "null unless both are known"),
    Column("link_bps", "Float64", Unit.BITS_PER_SECOND, "Link rate, if one of these rates matches a standard rate within 1%", "null in most captures"),
    Column("link_bound_bps", "Float64", Unit.BITS_PER_SECOND, "Part of the link rate left for data (best_payload_share)", "null without"),
    Column("bound_bps", "Float64", Unit.BITS_PER_SECOND, "Upper bound: the lowest of λ, μ and the bound of the link", "of those that are known; null without any. What was delivered faster had no such bound"),
    Column("bound_by", "Enum", Unit.NONE, "Which of them is the bound", "null without any", BOUND_BY),
    Column("sent_bps", "Float64", Unit.BITS_PER_SECOND, "New data per time from the first to the last data segment", "null if both are at one instant"),
    Column("reached_share", "Float64", Unit.NONE, "sent_bps as a share of the bound; where the sender was faster, as data queued at the end makes it, the delivered rate", "at most 1"),
    Column("idle_share", "Float64", Unit.NONE, "Share of that time in which the sender was idle: the time outside its bursts, or the time beyond what its data need at λ, whichever is less", "includes pauses of the application; null away from the sender"),
    Column("base_rtt_ns", "Int64", Unit.NS, "Shortest RTT from end to end", "null unless answers of both ends were captured"),
    Column("send_buffer_needed_bytes", "Int64", Unit.BYTES, "Send buffer with which the sending application never waits: λ × RTT", "null without either"),
    Column("receive_buffer_needed_bytes", "Int64", Unit.BYTES, "Receive buffer, and send buffer, needed to reach the bound: bound × RTT", "null without either"),
    Column("window_segments", "Int64", Unit.SEGMENTS, "Full segments that fit in the largest window", "null while the scale is unknown"),
    Column("window_full_share", "Float64", Unit.NONE, "Share of segments that would find the window full in an M/M/1/K queue: (1-r) r^K / (1-r^(K+1)) with r = λ/μ", "a model of random arrivals; null without λ/μ"),
    Column("send_buffer_estimate_bytes", "Int64", Unit.BYTES, "Level of the largest flights if the sender limits them: its send buffer, or a clamped congestion window", "a capture does not show which; an application that writes large pieces never fills the buffer completely; null without a plateau of five RTTs, below the window by two segments, in step with the ACKs"),
)
"""Rates of both ends of one direction, and the upper bound that follows; columns are named by the sender."""

RATES = table(
    "rates",
    "rates of both ends of one direction with data, and the upper bound that follows",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction"),
        *BOUNDS,
    ],
)
