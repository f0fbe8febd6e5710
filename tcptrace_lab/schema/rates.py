"""Columns of `connections` on the rates of a direction and their upper bounds, and the table `rates` with one direction per row."""

from __future__ import annotations

from tcptrace_lab.schema.categories import BOUND_BY
from tcptrace_lab.schema.column import Column, Unit, table

BOUNDS = (
    Column("send_bps", "Float64", Unit.BITS_PER_SECOND, "λ, the rate of the sender: its rate within bursts that nothing limits; at least its average rate", "null away from the sender (there the path spaces the segments), below 10 samples, and if bursts mix segments of different sizes; departures that an ACK may have triggered are not counted; for a pacing sender, the pacing rate"),
    Column("send_samples", "Int64", Unit.SEGMENTS, "Number of segments from which send_bps is computed", "null if little was sent"),
    Column("drain_bps", "Float64", Unit.BITS_PER_SECOND, "Rate at which a queue drained: the rate of the receiving host, or of the bottleneck", "from the ACKs that arrive while more data is queued; null at the receiver, and below 10 samples"),
    Column("drain_samples", "Int64", Unit.SEGMENTS, "Number of ACKs from which drain_bps is computed", "null if little was sent"),
    Column("read_bps", "Float64", Unit.BITS_PER_SECOND, "Rate at which the receiving application read while its receive buffer was at least half full", "from the advertised windows; null if the buffer was never half full, and below 10 samples"),
    Column("read_samples", "Int64", Unit.SEGMENTS, "Number of advertised windows from which read_bps is computed", "null if little was sent"),
    Column("receive_bps", "Float64", Unit.BITS_PER_SECOND, "μ, the rate of the receiver: the lower of drain_bps and read_bps", "null without either"),
    Column("ratio", "Float64", Unit.NONE, "Ratio of the sender's rate to the receiver's, λ / μ", "null unless both rates are known"),
    Column("link_bps", "Float64", Unit.BITS_PER_SECOND, "Link rate, if drain_bps or send_bps, with headers added, is within 1% of a standard rate", "null in most captures"),
    Column("link_bound_bps", "Float64", Unit.BITS_PER_SECOND, "Data rate that the link allows: link_bps times best_payload_share", "null if either is unknown"),
    Column("bound_bps", "Float64", Unit.BITS_PER_SECOND, "Upper bound of the data rate: the lowest of send_bps, receive_bps and link_bound_bps", "only known rates count; null if none is known, or if data was delivered faster"),
    Column("bound_by", "Enum", Unit.NONE, "Which of send_bps, receive_bps and link_bound_bps is the lowest, and so the bound", "null without a bound", BOUND_BY),
    Column("sent_bps", "Float64", Unit.BITS_PER_SECOND, "New data per second, from the first data segment to the last", "null if both segments have the same time"),
    Column("reached_share", "Float64", Unit.NONE, "sent_bps as a share of bound_bps", "at most 1; if sent_bps exceeds bound_bps because data was still queued at the end, the delivered rate replaces sent_bps"),
    Column("idle_share", "Float64", Unit.NONE, "Share of the time from the first data segment to the last in which the sender sent nothing", "the lower of two estimates: the time outside of bursts, and the time that the data does not need at the rate λ; includes pauses of the application; null away from the sender"),
    Column("base_rtt_ns", "Int64", Unit.NS, "Base RTT: the shortest RTT from end to end", "null unless answers of both ends were captured"),
    Column("send_buffer_needed_bytes", "Int64", Unit.BYTES, "Smallest send buffer with which the sending application never waits for room: λ times base RTT", "null if either is unknown"),
    Column("receive_buffer_needed_bytes", "Int64", Unit.BYTES, "Smallest receive buffer, and smallest send buffer, that allow bound_bps: bound times base RTT", "null if either is unknown"),
    Column("window_segments", "Int64", Unit.SEGMENTS, "Number of full segments that fit in the largest window", "null while the window scale is unknown"),
    Column("window_full_share", "Float64", Unit.NONE, "Share of segments that would find the window full in an M/M/1/K queue: (1-r) r^K / (1-r^(K+1)) with r = λ/μ and K = window_segments", "a model of random arrivals; null without λ/μ"),
    Column("send_buffer_estimate_bytes", "Int64", Unit.BYTES, "Estimate of the send buffer: the number of bytes that the largest flights do not exceed while the sender limits them", "a clamped congestion window looks the same; an application that writes large pieces never fills the buffer completely; null unless there are at least five such round trips, in which ACKs release the segments and the flights are at least two segments below the window"),
)
"""Columns with the rates of both hosts of a direction, and the upper bound that follows. The prefix of a column names the sender."""

RATES = table(
    "rates",
    "rates of both ends of one direction with data, and the upper bound that follows",
    [
        Column("conn", "UInt32", Unit.NONE, "Number of the connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction"),
        *BOUNDS,
    ],
)
