"""Columns of `connections`: how an endpoint behaves, and what delayed its departures."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

_PURE_ACKS = "only ACKs without data that cover data: the others depend on when the application answers"

_DELAYED = "ACKs without data that no segment triggered: over 2 ms later than the fastest ACK for the newest segment that they cover, after silence, with nothing left unacknowledged: triggered by a timer, or by reads of the application"

_HOLD = "within 1 ms, and a sixteenth of the wait, of the fastest reaction to that ACK; after a wait of at least 2 ms"

BEHAVIOUR = (
    Column("reaction_min_ns", "Int64", Unit.NS, "Shortest time from a segment to this host until one from it proves its arrival, by an echoed timestamp or by data beyond the window offered before", "an upper bound of the RTT from the capture point to this host; null without such proof; see also the peer's rtt_min_ns"),
    Column("wire_data_segments", "Int64", Unit.SEGMENTS, "Segments with data as on the wire: super-segments (offload) count as the segments that they become", "equal to data_segments while full_segment_bytes is unknown"),
    Column("missing_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent but are missing from the capture, as on the wire: lost before the capture point, or not captured", "by IPv4 identifications: null unless they count this host's segments one by one, and at most one in ten is missing; null for IPv6, where nothing counts segments (the flow label is one for all, timestamps are shared by the segments of a tick): there retransmitted_segments, among them those that filled a hole, are the least"),
    Column("super_segments", "Int64", Unit.SEGMENTS, "Segments with more data than a full one: offload (TSO, GSO, GRO, LRO) merged them, or has not split them yet", "0 while full_segment_bytes is unknown"),
    Column("late_segments", "Int64", Unit.SEGMENTS, "Segments with data that were captured after their ACK", "the capture changed the order, or the segment took another path"),
    Column("initial_flight_bytes", "Int64", Unit.BYTES, "Data sent before the first ACK of data can have arrived at this host", "a lower bound of the initial window: the application may have had no more; null without SYN or data"),
    Column("initial_flight_segments", "Int64", Unit.SEGMENTS, "That amount in segments, as on the wire", "a lower bound; null without SYN or data"),
    Column("small_in_flight", "Int64", Unit.SEGMENTS, "Segments below the MSS sent while an earlier one below the MSS was not ACKed", "Nagle's algorithm in any form forbids this; not counted: segments with FIN or URG, over half of the largest window, or with more than 4,096 bytes in flight"),
    Column("small_in_flight_frame", "UInt64", Unit.FRAME, "Frame of the first one", "null without any"),
    Column("small_over_full", "Int64", Unit.SEGMENTS, "Segments below the MSS, not the end of a burst, sent while only full ones were not ACKed", "Nagle's algorithm forbids this in the BSD form, not in the Linux form; same exceptions as for small_in_flight"),
    Column("nagle_holds", "Int64", Unit.SEGMENTS, "Segments below the MSS sent as soon as an ACK emptied the flight, whose last segment was below the MSS", _HOLD),
    Column("nagle_holds_over_full", "Int64", Unit.SEGMENTS, "As nagle_holds, after a flight whose last segment was full: only the BSD form delays these", _HOLD),
    Column("nagle_holds_ambiguous", "Int64", Unit.SEGMENTS, "nagle_holds and nagle_holds_over_full after a flight that may have filled the send buffer: hardly more was ever in flight before", "flights of 2,048 bytes and more; less than a segment, or 2,048 bytes, below the largest"),
    Column("nagle_releases", "Int64", Unit.SEGMENTS, "Segments below the MSS sent at any time after such an ACK, before anything else arrived: the base rate for coincidence"),
    Column("acks_by_segments", "List(Int64)", Unit.SEGMENTS, "ACKs sent for new data by the segments that each covers: 1, 2, 3, 4, 5 to 8, more; super-segments counted as on the wire", f"{_PURE_ACKS}; null without any"),
    Column("stretch_acks", "Int64", Unit.SEGMENTS, "ACKs without data that cover more than two segments and more than twice the MSS (RFC 2525, 2.13)", "ACKs lost or merged (GRO) before the capture point also appear as such"),
    Column("ack_lag_samples", "Int64", Unit.SEGMENTS, "ACKs without data with a known time since the oldest data that they cover", "none for retransmitted data (Karn)"),
    Column("ack_lag_min_ns", "Int64", Unit.NS, "Shortest time from the oldest data that such an ACK covers to the ACK", "includes the RTT from the capture point to this host; null without samples"),
    Column("ack_lag_mean_ns", "Int64", Unit.NS, "Mean of these times", "null without samples"),
    Column("ack_lag_max_ns", "Int64", Unit.NS, "Longest of these times", "null without samples"),
    Column("prompt_ack_min_bytes", "Int64", Unit.BYTES, "Fewest new bytes that a prompt ACK covers", "null without any"),
    Column("prompt_small_pairs", "Int64", Unit.SEGMENTS, "Prompt ACKs that cover two segments with a total of at most the longest segment, or 536 bytes: a second segment of any size triggers the ACK"),
    Column("delayed_acks", "Int64", Unit.SEGMENTS, "Delayed ACKs", _DELAYED),
    Column("delayed_ack_max_bytes", "Int64", Unit.BYTES, "Most new bytes that a delayed ACK covers: this amount does not trigger an ACK", "null without any"),
    Column("heartbeat_concentration", "Float64", Unit.NONE, "How closely the times of delayed ACKs follow a heartbeat of 200 ms: 1 if all have one phase, about 1/√n without a periodic timer (mean resultant length)", "null without delayed ACKs"),
    Column("syn_options", "String", Unit.NONE, "Kinds of the options in this host's first SYN, in order, as tcpdump names them", "null without SYN, or if its options are truncated"),
    Column("syn_window_bytes", "Int64", Unit.BYTES, "Window in that SYN", "null as above"),
    Column("syn_ttl", "UInt8", Unit.NONE, "Time to live or hop limit of that SYN", "null as above"),
    Column("ttl", "UInt8", Unit.NONE, "Largest time to live or hop limit of this host's segments, without RSTs", "64, 128 or 255 if there is no router between this host and the capture point; null without any"),
    Column("min_window_scale", "UInt8", Unit.NONE, "Smallest window shift that explains what the peer had in flight", "wrong if a window shrank; null if the scale is known, or no shift is needed"),
)
"""How an endpoint behaves over the whole connection; columns are named by that endpoint."""

WAITS = (
    Column("first_departure_frame", "Int64", Unit.FRAME, "Frame of the first segment with data, SYN or FIN", "null without one"),
    Column("first_departure_is_syn", "Boolean", Unit.NONE, "True if it is a SYN", "null without one"),
    Column("level_flight_bytes", "Int64", Unit.BYTES, "Level of the flight for the most RTTs, before any loss", "to within a twentieth; two full segments or more where the peer has sent data; null below one RTT"),
    Column("level_rounds", "Int64", Unit.NONE, "Number of RTTs at that level"),
    Column("small_behind_small", "Int64", Unit.SEGMENTS, "Segments below the MSS sent while an earlier one below it was in flight, at the sender, without FIN and urgent data: Nagle's algorithm is off"),
    Column("small_delayed_run", "Int64", Unit.SEGMENTS, "Most of them in a row, none passing, that waited for the ACK of a small one before and left at once when it came"),
    Column("small_delayed_over_full", "Int64", Unit.SEGMENTS, "Segments below the MSS that waited until full ones were acknowledged and left at once when they were"),
    Column("line_payload_bytes", "Int64", Unit.BYTES, "Data of a segment that kept the line busy until the next one left", "of the two that followed each other most closely for their size, the first of them full, or as long after it as its RTT is longer than that of the SYN; null without such"),
    Column("serialization_ns", "Int64", Unit.NS, "How long it can have done so at most", "the time between the two, or what a full segment's RTT is longer than that of the SYN, whichever is less; of the sender's own host where that is slower than the line"),
)
"""What all departures of one direction show of what delayed them, and the first of them."""
