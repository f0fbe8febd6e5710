"""Columns of `connections`: further figures of one direction."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

_KARN = "null without samples"

_ECHOED = "an ACK of new data that echoes the TCP timestamp of a segment that it covers (RFC 7323, 4); a delayed ACK may be included"

_FULL_SIZE = "of segments as large as any before; the samples restart when a larger one is sent"

_RESENT_RTT = "from the last transmission to an ACK that ends on it; the ACK may belong to an earlier transmission; null without samples"

_WAIT = "null without retransmits before the ACK"

MORE_STATISTICS = (
    Column("frame_bytes", "Int64", Unit.BYTES, "Bytes of the frames that carried the segments, on the link", "of a fragmented packet only the frame that completed it; as in Wireshark's conversations"),
    Column("ack_segments", "Int64", Unit.SEGMENTS, "Segments sent with the ACK flag"),
    Column("sack_segments", "Int64", Unit.SEGMENTS, "Segments sent with SACK blocks"),
    Column("dsack_segments", "Int64", Unit.SEGMENTS, "Segments sent with a D-SACK block (RFC 2883)"),
    Column("max_sack_blocks", "Int64", Unit.NONE, "Most SACK blocks in one segment"),
    Column("pushed_data_segments", "Int64", Unit.SEGMENTS, "Segments sent with data and PSH"),
    Column("urgent_segments", "Int64", Unit.SEGMENTS, "Segments sent with data and URG"),
    Column("urgent_bytes", "Int64", Unit.BYTES, "Bytes of data before the urgent pointer in these segments"),
    Column("zero_window_probe_bytes", "Int64", Unit.BYTES, "Bytes of data in zero-window probes"),
    Column("window_scale_offered", "UInt8", Unit.NONE, "Window scale option in this host's SYN, at most 14", "null without SYN or option; used only if both hosts offer one"),
    Column("min_segment_bytes", "Int64", Unit.BYTES, "Smallest payload of one captured segment with data", "null without data"),
    Column("mean_segment_bytes", "Int64", Unit.BYTES, "Mean payload of the segments with data", "null without data"),
    Column("truncated_bytes", "Int64", Unit.BYTES, "Bytes of data truncated by snaplen"),
    Column("mean_window_bytes", "Int64", Unit.BYTES, "Mean window this host advertised, scaled, SYN and RST excepted", "null while the scale is unknown"),
    Column("min_in_flight_bytes", "Int64", Unit.BYTES, "Smallest number of bytes in flight above 0, just after a segment of this host", "SYN, RST, retransmitted and late segments excepted; null if there are none"),
    Column("mean_in_flight_bytes", "Int64", Unit.BYTES, "Mean of the bytes in flight just after each segment of this host", "SYN, RST, retransmitted and late segments excepted; null until the peer's first ACK"),
    Column("time_mean_in_flight_bytes", "Int64", Unit.BYTES, "Mean of the bytes in flight over the time of the connection", "null until the peer's first ACK, and without times"),
    Column("initial_window_bytes", "Int64", Unit.BYTES, "Bytes of data sent before the first ACK of data", "null without SYN"),
    Column("initial_window_segments", "Int64", Unit.SEGMENTS, "Segments with data sent before the first ACK of data", "null without SYN"),
    Column("stream_bytes", "Int64", Unit.BYTES, "Length of the stream by the sequence numbers of SYN and FIN", "null unless both were captured"),
    Column("missing_bytes", "Int64", Unit.BYTES, "Bytes of the stream that are missing from the capture", "null unless SYN and FIN were captured; negative if there is data after the FIN"),
    Column("advancing_acks", "Int64", Unit.SEGMENTS, "ACKs sent that cover new data (captured)"),
    Column("bytes_per_ack", "Float64", Unit.BYTES, "Mean of the new bytes that such an ACK covers", "null without any"),
    Column("max_bytes_per_ack", "Int64", Unit.BYTES, "Largest number of new bytes that one of these ACKs covers", "null without any"),
    Column("segments_per_ack", "Float64", Unit.SEGMENTS, "Mean of the segments that such an ACK covers", "as captured: with offload, several segments on the wire count as one; null without any"),
    Column("max_segments_per_ack", "Int64", Unit.SEGMENTS, "Largest number of segments that one of these ACKs covers", "null without any"),
    Column("cumulatively_acked_segments", "Int64", Unit.SEGMENTS, "Segments sent that were ACKed together with a later one"),
    Column("triple_duplicate_acks", "Int64", Unit.SEGMENTS, "Number of times that a third duplicate ACK in a row arrived"),
    Column("post_loss_acks", "Int64", Unit.SEGMENTS, "ACKs received that an earlier segment triggered, not the segment on which they end, as after a loss", "give no RTT samples"),
    Column("max_retransmits", "Int64", Unit.NONE, "Largest number of retransmits of one segment before its ACK"),
    Column("max_gap_ns", "Int64", Unit.NS, "Longest time between two segments of this host", "null below two segments, and if the timestamps always run backwards"),
    Column("rtt_stdev_ns", "Int64", Unit.NS, "Standard deviation of the RTT samples (n - 1)", "null below two samples"),
    Column("rtt_handshake_samples", "Int64", Unit.NONE, "1 if the handshake gives an RTT for the SYN of this host, else 0", "0 if the SYN was retransmitted (Karn), was not answered, or its ACK covers more than the segment of the SYN"),
    Column("rtt_handshake_ns", "Int64", Unit.NS, "Time from this host's SYN to the peer's ACK of it", "null without sample"),
    Column("rtt_full_size_bytes", "Int64", Unit.BYTES, "Payload of the largest segment with an RTT sample", _KARN),
    Column("rtt_timestamp_samples", "Int64", Unit.NONE, "RTT samples by TCP timestamps, including retransmitted segments", _ECHOED),
    Column("rtt_timestamp_min_ns", "Int64", Unit.NS, "Smallest RTT by TCP timestamps", _KARN),
    Column("rtt_timestamp_mean_ns", "Int64", Unit.NS, "Mean RTT by TCP timestamps", _KARN),
    Column("rtt_timestamp_max_ns", "Int64", Unit.NS, "Largest RTT by TCP timestamps", _KARN),
    Column("rtt_timestamp_stdev_ns", "Int64", Unit.NS, "Standard deviation of the RTTs by TCP timestamps", "null below two samples"),
    Column("rtt_full_size_samples", "Int64", Unit.NONE, "RTT samples of full-sized segments", _FULL_SIZE),
    Column("rtt_full_size_min_ns", "Int64", Unit.NS, "Smallest RTT of a full-sized segment", _KARN),
    Column("rtt_full_size_mean_ns", "Int64", Unit.NS, "Mean RTT of full-sized segments", _KARN),
    Column("rtt_full_size_max_ns", "Int64", Unit.NS, "Largest RTT of a full-sized segment", _KARN),
    Column("rtt_full_size_stdev_ns", "Int64", Unit.NS, "Standard deviation of the RTTs of full-sized segments", "null below two samples"),
    Column("rtt_retransmitted_samples", "Int64", Unit.NONE, "ACKs received that end on a retransmitted segment; of which transmission is unknown"),
    Column("rtt_retransmitted_min_ns", "Int64", Unit.NS, "Shortest time to the ACK of a retransmitted segment", _RESENT_RTT),
    Column("rtt_retransmitted_mean_ns", "Int64", Unit.NS, "Mean time to the ACK of a retransmitted segment", _RESENT_RTT),
    Column("rtt_retransmitted_max_ns", "Int64", Unit.NS, "Longest time to the ACK of a retransmitted segment", _RESENT_RTT),
    Column("rtt_retransmitted_stdev_ns", "Int64", Unit.NS, "Standard deviation of the times to ACKs of retransmitted segments", "null below two samples"),
    Column("retransmit_interval_samples", "Int64", Unit.NONE, "Number of times that a segment was retransmitted before its ACK", "only if the previous transmission was captured"),
    Column("retransmit_interval_min_ns", "Int64", Unit.NS, "Shortest time from a segment's last transmission to the next", _WAIT),
    Column("retransmit_interval_mean_ns", "Int64", Unit.NS, "Mean time from a segment's last transmission to the next", _WAIT),
    Column("retransmit_interval_max_ns", "Int64", Unit.NS, "Longest time from a segment's last transmission to the next", _WAIT),
    Column("retransmit_interval_stdev_ns", "Int64", Unit.NS, "Standard deviation of the times from a segment's last transmission to the next", "null below two"),
)
"""Further figures. With `DIRECTION` they cover tcptrace's long listing, Wireshark's conversations, and three kinds of RTT."""
