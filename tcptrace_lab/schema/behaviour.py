"""Columns of `connections` on the behaviour of an endpoint, and on what delayed its segments."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

_PURE_ACKS = "counts only ACKs without data, because the application decides when an ACK with data is sent"

_DELAYED = "an ACK is delayed if it has no data, covers all earlier data, follows a silence, and comes later after its newest segment than the fastest ACK, by more than 2 ms; a timer or a read of the application triggered it, not a segment"

_AT_ONCE = "counts only waits of at least 2 ms that end soon after the ACK: within the fastest reaction time of this host, plus 1 ms or 1/16 of the wait, whichever is less"

BEHAVIOUR = (
    Column("reaction_min_ns", "Int64", Unit.NS, "Shortest time from a segment towards this host to the first segment back that proves its arrival (by an echoed TCP timestamp, or by data beyond the previously offered window)", "upper bound of the RTT from the capture point to this host; null without such proof; rtt_min_ns of the peer is another bound"),
    Column("wire_data_segments", "Int64", Unit.SEGMENTS, "Data segments that this host sent, as on the wire: a super-segment (offload) counts as the segments into which it is split", "equals data_segments while full_segment_bytes is unknown"),
    Column("missing_segments", "Int64", Unit.SEGMENTS, "Segments of this host, as on the wire, that are missing from the capture: lost before the capture point, or not captured", "counted by gaps in the IPv4 identification; null unless the identifications number this host's segments consecutively and at most one in ten is missing; null for IPv6, which has no such number: there, retransmitted_segments is a lower bound of the losses"),
    Column("super_segments", "Int64", Unit.SEGMENTS, "Captured segments of this host with more data than a full segment: offload (TSO, GSO, GRO, LRO) merged segments, or has not split them yet", "0 while full_segment_bytes is unknown"),
    Column("late_segments", "Int64", Unit.SEGMENTS, "Data segments that were captured after the ACK that covers them", "the capture reordered packets, or the segment took another path"),
    Column("initial_flight_bytes", "Int64", Unit.BYTES, "Bytes of data that this host sent before the first ACK of data can have reached it", "lower bound of the initial window, because the application may have had no more data; null without SYN or data"),
    Column("initial_flight_segments", "Int64", Unit.SEGMENTS, "Number of segments, as on the wire, in initial_flight_bytes", "lower bound of the initial window; null without SYN or data"),
    Column("small_in_flight", "Int64", Unit.SEGMENTS, "Segments below the MSS that this host sent while an earlier segment below the MSS was not ACKed", "Nagle's algorithm in any form forbids them; segments with FIN or URG, segments above half of the largest window, and segments sent with more than 4,096 bytes in flight are not counted"),
    Column("small_in_flight_frame", "UInt64", Unit.FRAME, "Frame of the first segment counted in small_in_flight", "null if there is none"),
    Column("small_over_full", "Int64", Unit.SEGMENTS, "Segments below the MSS, other than the last segment of a burst, that this host sent while all unacknowledged segments were full", "Nagle's algorithm forbids them in its BSD form, but not in its Linux form; the exceptions of small_in_flight apply"),
    Column("nagle_holds", "Int64", Unit.SEGMENTS, "Segments that Nagle's algorithm delayed: below the MSS, sent as soon as an ACK covered all earlier data, after a segment that was also below the MSS", _AT_ONCE),
    Column("nagle_holds_over_full", "Int64", Unit.SEGMENTS, "Segments that only the BSD form of Nagle's algorithm delays: below the MSS, sent as soon as an ACK covered all earlier data, after a full-sized segment", _AT_ONCE),
    Column("nagle_holds_ambiguous", "Int64", Unit.SEGMENTS, "Segments counted in nagle_holds or nagle_holds_over_full whose wait a full send buffer explains equally well, because the flight before them was nearly the largest", "nearly the largest: at least 2,048 bytes, and less than one segment or less than 2,048 bytes below the largest flight"),
    Column("nagle_releases", "Int64", Unit.SEGMENTS, "For comparison with nagle_holds: segments below the MSS that this host sent after an ACK of all earlier data, at once or later, as the first segment and before anything else arrived"),
    Column("acks_by_segments", "List(Int64)", Unit.SEGMENTS, "Numbers of ACKs of new data by the number of segments that one ACK covers: 1, 2, 3, 4, 5 to 8, more than 8; super-segments count as on the wire", f"{_PURE_ACKS}; null if there is none"),
    Column("stretch_acks", "Int64", Unit.SEGMENTS, "ACKs without data that cover more than two segments and more than twice the MSS (stretch ACKs: RFC 2525, 2.13)", "also counts ACKs that cover more because other ACKs were lost or merged (GRO) before the capture point"),
    Column("ack_lag_samples", "Int64", Unit.SEGMENTS, "Number of samples of the ACK lag: time from the transmission of the oldest data that an ACK newly covers to that ACK", "only ACKs without data; retransmitted data gives no samples (Karn's algorithm)"),
    Column("ack_lag_min_ns", "Int64", Unit.NS, "Smallest ACK lag", "includes the RTT from the capture point to this host; null without samples"),
    Column("ack_lag_mean_ns", "Int64", Unit.NS, "Mean ACK lag", "null without samples"),
    Column("ack_lag_max_ns", "Int64", Unit.NS, "Largest ACK lag", "null without samples"),
    Column("prompt_ack_min_bytes", "Int64", Unit.BYTES, "Smallest number of new bytes covered by an ACK that was not delayed", "null without such ACKs; delayed_acks defines delayed"),
    Column("prompt_small_pairs", "Int64", Unit.SEGMENTS, "ACKs that were not delayed and cover two segments with little data (together at most the data of the longest segment, or 536 bytes): they show that every second segment triggers an ACK, whatever its size"),
    Column("delayed_acks", "Int64", Unit.SEGMENTS, "Delayed ACKs that this host sent", _DELAYED),
    Column("delayed_ack_max_bytes", "Int64", Unit.BYTES, "Largest number of new bytes that a delayed ACK covers; so much data does not trigger an ACK", "null without delayed ACKs"),
    Column("heartbeat_concentration", "Float64", Unit.NONE, "How well the delayed ACKs agree in their phase of a 200 ms period (mean resultant length): 1 if all have the same phase, about 1/√n without a periodic timer", "null without delayed ACKs"),
    Column("syn_options", "String", Unit.NONE, "Kinds of the TCP options in the first SYN of this host, in order, named as in tcpdump", "null without SYN, or if its options are truncated"),
    Column("syn_window_bytes", "Int64", Unit.BYTES, "Window that the first SYN of this host advertises", "null without SYN, or if its options are truncated"),
    Column("syn_ttl", "UInt8", Unit.NONE, "IPv4 time to live, or IPv6 hop limit, of the first SYN of this host", "null without SYN, or if its options are truncated"),
    Column("ttl", "UInt8", Unit.NONE, "Largest IPv4 time to live, or IPv6 hop limit, of the segments of this host, RSTs excepted", "64, 128 or 255 if no router lies between this host and the capture point; null without segments"),
    Column("min_window_scale", "UInt8", Unit.NONE, "Smallest window scale of this host that permits the bytes that the peer had in flight", "wrong if a window shrank; null if the window scale is known, or if no scaling is needed"),
)
"""Columns on the behaviour of an endpoint over the whole connection. The prefix of a column names the endpoint."""

WAITS = (
    Column("first_departure_frame", "Int64", Unit.FRAME, "Frame of the first segment with data, SYN or FIN", "null without one"),
    Column("first_departure_is_syn", "Boolean", Unit.NONE, "True if the first segment with data, SYN or FIN is a SYN", "null without one"),
    Column("level_flight_bytes", "Int64", Unit.BYTES, "Bytes in flight in the longest series of round trips with equal flights, before any loss", "flights that differ by at most 1/20 count as equal; after data of the peer, only flights of at least two full segments count; null below one RTT"),
    Column("level_rounds", "Int64", Unit.NONE, "Number of consecutive round trips at level_flight_bytes"),
    Column("small_behind_small", "Int64", Unit.SEGMENTS, "Segments below the MSS that the sender sent while an earlier segment below the MSS was in flight: Nagle's algorithm is off", "segments with FIN or urgent data are not counted"),
    Column("small_delayed_run", "Int64", Unit.SEGMENTS, "Largest number of consecutive segments below the MSS that were each sent at once when the ACK of the previous one arrived", "a segment below the MSS that is sent before that ACK ends the run"),
    Column("small_delayed_over_full", "Int64", Unit.SEGMENTS, "Segments below the MSS that were sent at once when the ACK of earlier full segments arrived"),
    Column("line_payload_bytes", "Int64", Unit.BYTES, "Data of the segment from which serialization_ns is measured", "the segment that is followed by the shortest interval relative to its size; only full segments count, and segments whose RTTs show the same rate; null without such a segment"),
    Column("serialization_ns", "Int64", Unit.NS, "Upper bound of the time that the link is busy with a segment of line_payload_bytes (serialization delay)", "the interval to the next segment, or the RTT of a full segment minus the RTT of the SYN, whichever is shorter; if the sender's host is slower than the link, the time shows the rate of the host; null without one"),
)
"""Columns from all departures of one direction: its first departure, and values that help to find causes of delay."""
