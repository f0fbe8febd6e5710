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
    Column("small_over_full_frame", "UInt64", Unit.FRAME, "Frame of the first one", "null without any"),
    Column("nagle_holds", "Int64", Unit.SEGMENTS, "Segments below the MSS sent as soon as an ACK emptied the flight, whose last segment was below the MSS", _HOLD),
    Column("nagle_holds_frame", "UInt64", Unit.FRAME, "Frame of the first one", "null without any"),
    Column("nagle_holds_over_full", "Int64", Unit.SEGMENTS, "As nagle_holds, after a flight whose last segment was full: only the BSD form delays these", _HOLD),
    Column("nagle_holds_over_full_frame", "UInt64", Unit.FRAME, "Frame of the first one", "null without any"),
    Column("nagle_holds_ambiguous", "Int64", Unit.SEGMENTS, "nagle_holds and nagle_holds_over_full after a flight that may have filled the send buffer: hardly more was ever in flight before", "flights of 2,048 bytes and more; less than a segment, or 2,048 bytes, below the largest"),
    Column("nagle_releases", "Int64", Unit.SEGMENTS, "Segments below the MSS sent at any time after such an ACK, before anything else arrived: the base rate for coincidence"),
    Column("acks_by_segments", "List(Int64)", Unit.SEGMENTS, "ACKs sent for new data by the segments that each covers: 1, 2, 3, 4, 5 to 8, more; super-segments counted as on the wire", f"{_PURE_ACKS}; null without any"),
    Column("stretch_acks", "Int64", Unit.SEGMENTS, "ACKs without data that cover more than two segments and more than twice the MSS (RFC 2525, 2.13)", "ACKs lost or merged (GRO) before the capture point also appear as such"),
    Column("ack_lag_samples", "Int64", Unit.SEGMENTS, "ACKs without data with a known time since the oldest data that they cover", "none for retransmitted data (Karn)"),
    Column("ack_lag_min_ns", "Int64", Unit.NS, "Shortest time from the oldest data that such an ACK covers to the ACK", "includes the RTT from the capture point to this host; null without samples"),
    Column("ack_lag_mean_ns", "Int64", Unit.NS, "Mean of these times", "null without samples"),
    Column("ack_lag_max_ns", "Int64", Unit.NS, "Longest of these times", "null without samples"),
    Column("prompt_acks", "Int64", Unit.SEGMENTS, "Prompt ACKs: at most 2 ms later than the fastest ACK for the newest segment that they cover; the segment triggered them"),
    Column("prompt_ack_min_bytes", "Int64", Unit.BYTES, "Fewest new bytes that a prompt ACK covers", "null without any"),
    Column("prompt_small_pairs", "Int64", Unit.SEGMENTS, "Prompt ACKs that cover two segments with a total of at most the longest segment, or 536 bytes: a second segment of any size triggers the ACK"),
    Column("delayed_acks", "Int64", Unit.SEGMENTS, "Delayed ACKs", _DELAYED),
    Column("delayed_acks_of_several", "Int64", Unit.SEGMENTS, "Delayed ACKs that cover more than one segment: a second segment did not trigger them"),
    Column("delayed_ack_max_bytes", "Int64", Unit.BYTES, "Most new bytes that a delayed ACK covers: this amount does not trigger an ACK", "null without any"),
    Column("ack_delays", "List(Int64)", Unit.SEGMENTS, "Delayed ACKs by their delay in classes of 2 ms, from 0 on: the lag minus the shortest RTT so far; the 128th class has all longer ones", "ends with the last class that is not empty; counts stop at 65,535; null without any"),
    Column("heartbeat_concentration", "Float64", Unit.NONE, "Concentration of the times of delayed ACKs at one phase of 200 ms: 1: all at one phase; about 1/√n without a periodic timer (mean resultant length)", "null without delayed ACKs"),
    Column("syn_options", "String", Unit.NONE, "Kinds of the options in this host's first SYN, in order, as tcpdump names them", "null without SYN, or if its options are truncated"),
    Column("syn_window_bytes", "Int64", Unit.BYTES, "Window in that SYN", "null as above"),
    Column("syn_ttl", "UInt8", Unit.NONE, "Time to live or hop limit of that SYN", "null as above"),
    Column("ttl", "UInt8", Unit.NONE, "Largest time to live or hop limit of this host's segments, without RSTs", "64, 128 or 255 if there is no router between this host and the capture point; null without any"),
    Column("min_window_scale", "UInt8", Unit.NONE, "Smallest window shift that explains what the peer had in flight", "wrong if a window shrank; null if the scale is known, or no shift is needed"),
)
"""How an endpoint behaves over the whole connection; columns are named by that endpoint."""

WAITS = (
    Column("first_departure_ts_ns", "Int64", Unit.NS, "Time of the first segment with data, SYN or FIN", "null without one"),
    Column("first_departure_frame", "Int64", Unit.FRAME, "Frame of that segment", "null without one"),
    Column("first_departure_is_syn", "Boolean", Unit.NONE, "True if it is a SYN", "null without one"),
    Column("ending_wait_ns", "Int64", Unit.NS, "Time from the last segment with data, SYN or FIN to the end of the connection", "null without one"),
    Column("ending_wait_since_frame", "Int64", Unit.FRAME, "Frame of that last segment", "null without one"),
    Column("ending_since_all_acked_ns", "Int64", Unit.NS, "Time from the ACK of all data to the end of the connection", "null with bytes in flight at the end"),
    Column("ending_peer_first_ns", "Int64", Unit.NS, "Time from the first data of the peer after it to the end", "null without any"),
    Column("ending_peer_last_ns", "Int64", Unit.NS, "Time from the last data of the peer after it to the end", "null without any"),
    Column("level_flight_bytes", "Int64", Unit.BYTES, "Level of the flight for the most RTTs, before any loss", "to within a twentieth; two full segments or more where the peer has sent data; null below one RTT"),
    Column("level_rounds", "Int64", Unit.NONE, "Number of RTTs at that level"),
    Column("other_level_flight_bytes", "Int64", Unit.BYTES, "Second most frequent level of the flight", "null without one"),
    Column("other_level_rounds", "Int64", Unit.NONE, "Number of RTTs at that level"),
    Column("clocked_departures", "Int64", Unit.SEGMENTS, "Segments of new data sent at once when an ACK came, with bytes in flight"),
    Column("unclocked_departures", "Int64", Unit.SEGMENTS, "Segments of new data sent some time after the last ACK, with bytes in flight"),
    Column("small_behind_small", "Int64", Unit.SEGMENTS, "Segments below the MSS sent while an earlier one below it was in flight, at the sender, without FIN and urgent data: Nagle's algorithm is off"),
    Column("small_delayed_run", "Int64", Unit.SEGMENTS, "Most of them in a row, none passing, that waited for the ACK of a small one before and left at once when it came"),
    Column("small_past_full", "Int64", Unit.SEGMENTS, "Segments below the MSS that passed full ones in flight, and were not the tail of one write with them"),
    Column("small_delayed_over_full", "Int64", Unit.SEGMENTS, "Those that waited until full ones were acknowledged and left at once when they were"),
    Column("small_delayed_continued", "Int64", Unit.SEGMENTS, "Small ones that waited behind a small one until an ACK came, and behind which more left at once", "its application gave more as soon as that ACK came"),
    Column("tick_ns", "Int64", Unit.NS, "Length of a tick of the sender's timestamp clock, by its departures", "null without timestamps, and below 50 ticks"),
    Column("line_payload_bytes", "Int64", Unit.BYTES, "Data of a segment that kept the line busy until the next one left", "of the two that followed each other most closely for their size, the first of them full, or as long after it as its RTT is longer than that of the SYN; null without such"),
    Column("serialization_ns", "Int64", Unit.NS, "How long it can have done so at most", "the time between the two, or what a full segment's RTT is longer than that of the SYN, whichever is less; of the sender's own host where that is slower than the line"),
    Column("spaced_payload_bytes", "Int64", Unit.BYTES, "Data of a segment, full or not, that another one followed as soon for its size as any", "null below two departures with data"),
    Column("spaced_ns", "Int64", Unit.NS, "How soon", "an application that writes at its own pace spaces small segments, too"),
    Column("exchange_bytes", "Int64", Unit.BYTES, "What a segment with data and the data that came with its ACK took more of an Ethernet than the SYN and its answer", "of the RTT that was longer than that of the SYN by the least for it; null without one, or without a SYN"),
    Column("exchange_cells", "Int64", Unit.NONE, "The same in cells of ATM"),
    Column("exchange_ns", "Int64", Unit.NS, "How much longer that RTT was"),
    Column("fin_ns", "Int64", Unit.NS, "How soon a FIN without data came behind data", "null near the sender"),
    Column("followed_segments", "Int64", Unit.SEGMENTS, "Segments that came behind full ones that did not end their write (no PSH)", "near the sender those that no ACK let go"),
    Column("steady_payload_bytes", "Int64", Unit.BYTES, "Data of one of these that came at the pace of most", "alike for their size to within an eighth; null without any"),
    Column("steady_ns", "Int64", Unit.NS, "How long it came behind the one before", "null as above"),
    Column("steady_segments", "Int64", Unit.SEGMENTS, "By how many more of them came at that pace than at another"),
    Column("steady_other_sizes", "Int64", Unit.SEGMENTS, "How many of those at that pace were longer or shorter by more than an eighth", "and came so much later or sooner"),
    Column("paced_payload_bytes", "Int64", Unit.BYTES, "Data of a burst of two full segments or more, a full one last, of those at the pace of most", "alike for their size to within an eighth; null without any"),
    Column("paced_ns", "Int64", Unit.NS, "How long behind its first segment the next burst began", "1 ms at least; null as above"),
    Column("paced_bursts", "Int64", Unit.NONE, "By how many more of them the next began at that pace than at another"),
    Column("top_flight_bytes", "Int64", Unit.BYTES, "Largest flight of an RTT, before any loss", "two full segments or more; null below one RTT"),
    Column("top_rounds", "Int64", Unit.NONE, "How many flights were as large, to within a twentieth, in a row or not"),
    Column("emptied_flight_bytes", "Int64", Unit.BYTES, "Flight behind whose last segment, with PSH, a full one waited most often for an ACK, and left at once then", "the window had room for it; null without one"),
    Column("emptied_times", "Int64", Unit.NONE, "How often"),
    Column("other_emptied_flight_bytes", "Int64", Unit.BYTES, "Another such flight, of the next most", "null without one"),
    Column("other_emptied_times", "Int64", Unit.NONE, "How often"),
    Column("ending_payload_bytes", "Int64", Unit.BYTES, "Data in the last segment with data, SYN or FIN", "null without one"),
    Column("ending_peer_payload_bytes", "Int64", Unit.BYTES, "Data in the last of the peer after it", "null without any"),
)
"""What delayed the departures of one direction: the first and the last, and what only all of them show."""
