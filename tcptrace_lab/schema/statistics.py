"""Columns of `connections`: more figures of one direction."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

_KARN = "null without samples"

_ECHOED = "an ACK of new data that echoes the TCP timestamp of a segment it acknowledges (RFC 7323, 4); that segment may have waited for a delayed ACK"

_FULL_SIZE = "of segments as large as any before; the samples begin anew when a larger one comes"

_RESENT_RTT = "from the last transmission to an ACK that ends on it; the ACK may be that of an earlier one; null without samples"

_WAIT = "null if nothing was resent before it was acknowledged"

MORE_STATISTICS = (
    Column("frame_bytes", "Int64", Unit.BYTES, "Bytes of the frames that carried the segments, on the link", "of a fragmented packet only the frame that completed it; as Wireshark's conversations"),
    Column("ack_segments", "Int64", Unit.SEGMENTS, "Segments sent with the ACK flag"),
    Column("sack_segments", "Int64", Unit.SEGMENTS, "Segments sent with SACK blocks"),
    Column("dsack_segments", "Int64", Unit.SEGMENTS, "Segments sent whose first SACK block reports bytes that came twice (RFC 2883)"),
    Column("max_sack_blocks", "Int64", Unit.NONE, "Most SACK blocks in one segment"),
    Column("pushed_data_segments", "Int64", Unit.SEGMENTS, "Segments sent with data and PSH"),
    Column("urgent_segments", "Int64", Unit.SEGMENTS, "Segments sent with data and URG"),
    Column("urgent_bytes", "Int64", Unit.BYTES, "Bytes of data in them before the urgent pointer"),
    Column("zero_window_probe_bytes", "Int64", Unit.BYTES, "Bytes of data in zero-window probes"),
    Column("window_scale_offered", "UInt8", Unit.NONE, "Window scale option in this side's SYN, at most 14", "null without SYN or option; in force only if both sides offer one"),
    Column("min_segment_bytes", "Int64", Unit.BYTES, "Smallest payload of one captured segment with data", "null without data"),
    Column("mean_segment_bytes", "Int64", Unit.BYTES, "Mean payload of the segments with data", "null without data"),
    Column("cut_bytes", "Int64", Unit.BYTES, "Bytes of data that the capture does not hold (snaplen)"),
    Column("mean_window_bytes", "Int64", Unit.BYTES, "Mean window this side advertised, scaled, SYN and RST excepted", "null while the scale is unknown"),
    Column("min_in_flight_bytes", "Int64", Unit.BYTES, "Fewest bytes in flight, but not 0, just behind a segment of this side", "SYN, RST, resent and late segments excepted; null if there are none"),
    Column("mean_in_flight_bytes", "Int64", Unit.BYTES, "Mean of the bytes in flight just behind each segment of this side", "SYN, RST, resent and late segments excepted; null until the other side's first ACK"),
    Column("time_mean_in_flight_bytes", "Int64", Unit.BYTES, "Mean of the bytes in flight over the time of the connection", "null until the other side's first ACK, and without times"),
    Column("initial_window_bytes", "Int64", Unit.BYTES, "Bytes of data sent before the first ACK of data", "null without SYN"),
    Column("initial_window_segments", "Int64", Unit.SEGMENTS, "Segments with data sent before the first ACK of data", "null without SYN"),
    Column("stream_bytes", "Int64", Unit.BYTES, "Length of the stream by the numbers of SYN and FIN", "null unless both were captured"),
    Column("missing_bytes", "Int64", Unit.BYTES, "Bytes of the stream that were never seen", "null unless SYN and FIN were captured; negative if there is data behind the FIN"),
    Column("advancing_acks", "Int64", Unit.SEGMENTS, "Segments sent that acknowledge captured data for the first time"),
    Column("bytes_per_ack", "Float64", Unit.BYTES, "Mean of the bytes of data that they acknowledge", "null without them"),
    Column("max_bytes_per_ack", "Int64", Unit.BYTES, "Most bytes of data that one of them acknowledges", "null without them"),
    Column("segments_per_ack", "Float64", Unit.SEGMENTS, "Mean of the segments that they acknowledge", "captured ones: under offload several of the wire are one; null without them"),
    Column("max_segments_per_ack", "Int64", Unit.SEGMENTS, "Most segments that one of them acknowledges", "null without them"),
    Column("cumulatively_acked_segments", "Int64", Unit.SEGMENTS, "Segments sent that were acknowledged together with a later one"),
    Column("triple_duplicate_acks", "Int64", Unit.SEGMENTS, "Times that a third duplicate ACK in a row arrived"),
    Column("post_loss_acks", "Int64", Unit.SEGMENTS, "ACKs received that end on a segment behind which an earlier one was seen, as after a loss", "no round-trip samples: the earlier one let them go"),
    Column("max_resends", "Int64", Unit.NONE, "Most times that one segment was resent before it was acknowledged"),
    Column("max_idle_ns", "Int64", Unit.NS, "Longest time between two segments of this side", "null below two segments, and where the clock went back at each"),
    Column("rtt_stdev_ns", "Int64", Unit.NS, "Standard deviation of the round-trip samples (n - 1)", "null below two samples"),
    Column("rtt_handshake_samples", "Int64", Unit.NONE, "1 if the handshake gives a round trip of this side's SYN, 0 if not", "not if the SYN was resent (Karn), was not answered, or its ACK acknowledges more than the SYN's segment"),
    Column("rtt_handshake_ns", "Int64", Unit.NS, "Time from this side's SYN to the other side's ACK of it", "null without sample"),
    Column("rtt_full_size_bytes", "Int64", Unit.BYTES, "Payload of the largest segment with a round-trip sample", _KARN),
    Column("rtt_timestamp_samples", "Int64", Unit.NONE, "Round-trip samples by TCP timestamps, of resent segments too", _ECHOED),
    Column("rtt_timestamp_min_ns", "Int64", Unit.NS, "Smallest round trip by TCP timestamps", _KARN),
    Column("rtt_timestamp_mean_ns", "Int64", Unit.NS, "Mean round trip by TCP timestamps", _KARN),
    Column("rtt_timestamp_max_ns", "Int64", Unit.NS, "Largest round trip by TCP timestamps", _KARN),
    Column("rtt_timestamp_stdev_ns", "Int64", Unit.NS, "Standard deviation of the round trips by TCP timestamps", "null below two samples"),
    Column("rtt_full_size_samples", "Int64", Unit.NONE, "Round-trip samples of full-sized segments", _FULL_SIZE),
    Column("rtt_full_size_min_ns", "Int64", Unit.NS, "Smallest round trip of a full-sized segment", _KARN),
    Column("rtt_full_size_mean_ns", "Int64", Unit.NS, "Mean round trip of full-sized segments", _KARN),
    Column("rtt_full_size_max_ns", "Int64", Unit.NS, "Largest round trip of a full-sized segment", _KARN),
    Column("rtt_full_size_stdev_ns", "Int64", Unit.NS, "Standard deviation of the round trips of full-sized segments", "null below two samples"),
    Column("rtt_resent_samples", "Int64", Unit.NONE, "ACKs received that end on a resent segment: of which transmission is unknown"),
    Column("rtt_resent_min_ns", "Int64", Unit.NS, "Shortest time to the ACK of a resent segment", _RESENT_RTT),
    Column("rtt_resent_mean_ns", "Int64", Unit.NS, "Mean time to the ACK of a resent segment", _RESENT_RTT),
    Column("rtt_resent_max_ns", "Int64", Unit.NS, "Longest time to the ACK of a resent segment", _RESENT_RTT),
    Column("rtt_resent_stdev_ns", "Int64", Unit.NS, "Standard deviation of the times to ACKs of resent segments", "null below two samples"),
    Column("resend_wait_samples", "Int64", Unit.NONE, "Times that a segment was resent before it was acknowledged", "its last transmission was captured, too"),
    Column("resend_wait_min_ns", "Int64", Unit.NS, "Shortest time from a segment's last transmission to the next", _WAIT),
    Column("resend_wait_mean_ns", "Int64", Unit.NS, "Mean time from a segment's last transmission to the next", _WAIT),
    Column("resend_wait_max_ns", "Int64", Unit.NS, "Longest time from a segment's last transmission to the next", _WAIT),
    Column("resend_wait_stdev_ns", "Int64", Unit.NS, "Standard deviation of the times from a segment's last transmission to the next", "null below two"),
)
"""More of them: with those above all that tcptrace's long listing has, Wireshark's conversations, and round trips three ways."""
