"""Columns of `connections`: more statistics of one direction."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

_KARN = "null without samples"

_ECHOED = "sample: an ACK of new data that echoes the TCP timestamp of a segment that it covers (RFC 7323, 4); includes the delay of a delayed ACK"

_FULL_SIZE = "full-sized: at least as large as every earlier segment; the samples restart when a larger segment is sent"

_RESENT_RTT = "the ACK may acknowledge an earlier transmission; null without samples"

_WAIT = "null without retransmits before the ACK"

MORE_STATISTICS = (
    Column("frame_bytes", "Int64", Unit.BYTES, "Bytes of the link-layer frames that carried this host's segments", "for a fragmented packet, counts only the frame that completed it, as in Wireshark's conversations"),
    Column("ack_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent with the ACK flag"),
    Column("sack_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent with SACK blocks"),
    Column("dsack_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent with a D-SACK block (RFC 2883)"),
    Column("max_sack_blocks", "Int64", Unit.NONE, "Largest number of SACK blocks in one segment"),
    Column("pushed_data_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent with data and PSH"),
    Column("urgent_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent with data and URG"),
    Column("urgent_bytes", "Int64", Unit.BYTES, "Bytes of data before the urgent pointer in the segments that urgent_segments counts"),
    Column("zero_window_probe_bytes", "Int64", Unit.BYTES, "Bytes of data in zero-window probes"),
    Column("ce_segments", "Int64", Unit.SEGMENTS, "Segments of this host that the path had marked as Congestion Experienced (CE, RFC 3168)", "does not include marks set behind the capture point; 0 if every segment has the value, even the SYN, which cannot be marked: in that case, the field has another use"),
    Column("cwr_segments", "Int64", Unit.SEGMENTS, "Segments in which this host says that it has reduced its congestion window (CWR, RFC 3168, 6.1.2)", "0 with accurate ECN (RFC 9768), which uses this flag as a counter"),
    Column("window_scale_offered", "UInt8", Unit.NONE, "Window scale option in this host's SYN, limited to 14", "null without SYN or option; used only if both hosts offer one"),
    Column("min_segment_bytes", "Int64", Unit.BYTES, "Smallest payload of a captured data segment of this host", "null without data"),
    Column("mean_segment_bytes", "Int64", Unit.BYTES, "Mean payload of this host's data segments", "null without data"),
    Column("truncated_bytes", "Int64", Unit.BYTES, "Bytes of data that the snaplen truncated"),
    Column("mean_window_bytes", "Int64", Unit.BYTES, "Mean window that this host advertised, after scaling; SYN and RST excepted", "null while the scale is unknown"),
    Column("min_in_flight_bytes", "Int64", Unit.BYTES, "Smallest number of bytes in flight, above 0, just after a segment of this host", "SYN, RST, retransmitted and late segments excepted; null if there are none"),
    Column("mean_in_flight_bytes", "Int64", Unit.BYTES, "Mean number of bytes in flight just after a segment of this host", "SYN, RST, retransmitted and late segments excepted; null until the peer's first ACK"),
    Column("time_mean_in_flight_bytes", "Int64", Unit.BYTES, "Mean number of bytes in flight over the duration of the connection", "null until the peer's first ACK, and without times"),
    Column("initial_window_bytes", "Int64", Unit.BYTES, "Bytes of data that this host sent before the first ACK of data was captured", "null without SYN"),
    Column("initial_window_segments", "Int64", Unit.SEGMENTS, "Data segments that this host sent before the first ACK of data was captured", "null without SYN"),
    Column("stream_bytes", "Int64", Unit.BYTES, "Length of this host's stream, from the sequence numbers of its SYN and FIN", "null unless both were captured"),
    Column("missing_bytes", "Int64", Unit.BYTES, "Bytes of this host's stream that are missing from the capture: stream_bytes minus unique_bytes", "null unless SYN and FIN were captured; negative if there is data after the FIN"),
    Column("advancing_acks", "Int64", Unit.SEGMENTS, "ACKs that this host sent and that cover new, captured data"),
    Column("bytes_per_ack", "Float64", Unit.BYTES, "Mean number of new bytes that an ACK counted in advancing_acks covers", "null without any"),
    Column("max_bytes_per_ack", "Int64", Unit.BYTES, "Largest number of new bytes that an ACK counted in advancing_acks covers", "null without any"),
    Column("segments_per_ack", "Float64", Unit.SEGMENTS, "Mean number of segments that an ACK counted in advancing_acks covers", "segments as captured: with offload, one stands for several on the wire; null without any"),
    Column("max_segments_per_ack", "Int64", Unit.SEGMENTS, "Largest number of segments that an ACK counted in advancing_acks covers", "null without any"),
    Column("cumulatively_acked_segments", "Int64", Unit.SEGMENTS, "Segments of this host that were ACKed together with a later one"),
    Column("triple_duplicate_acks", "Int64", Unit.SEGMENTS, "Number of times that this host received a third duplicate ACK in a row"),
    Column("post_loss_acks", "Int64", Unit.SEGMENTS, "ACKs that this host received and whose newest segment arrived before an earlier segment, as after a loss", "they are no RTT samples, because the earlier segment triggered them"),
    Column("max_retransmits", "Int64", Unit.NONE, "Largest number of times that one segment was retransmitted before its ACK"),
    Column("max_gap_ns", "Int64", Unit.NS, "Longest time between two consecutive segments of this host", "null below two segments, and if the timestamps always run backwards"),
    Column("rtt_stdev_ns", "Int64", Unit.NS, "Standard deviation of the RTT samples, with n - 1 in the denominator", "null below two samples"),
    Column("rtt_handshake_samples", "Int64", Unit.NONE, "1 if the handshake gives an RTT sample for this host's SYN, else 0", "0 if the SYN was retransmitted (Karn's algorithm) or not answered, or if its ACK covers more than the SYN's segment"),
    Column("rtt_handshake_ns", "Int64", Unit.NS, "Time from this host's SYN to the peer's ACK of it", "null without sample"),
    Column("rtt_full_size_bytes", "Int64", Unit.BYTES, "Payload of the largest segment that has an RTT sample", _KARN),
    Column("rtt_timestamp_samples", "Int64", Unit.NONE, "Number of RTT samples by TCP timestamps; retransmitted segments are included", _ECHOED),
    Column("rtt_timestamp_min_ns", "Int64", Unit.NS, "Smallest RTT by TCP timestamps", _KARN),
    Column("rtt_timestamp_mean_ns", "Int64", Unit.NS, "Mean RTT by TCP timestamps", _KARN),
    Column("rtt_timestamp_max_ns", "Int64", Unit.NS, "Largest RTT by TCP timestamps", _KARN),
    Column("rtt_timestamp_stdev_ns", "Int64", Unit.NS, "Standard deviation of the RTTs by TCP timestamps", "null below two samples"),
    Column("rtt_full_size_samples", "Int64", Unit.NONE, "Number of RTT samples of full-sized segments", _FULL_SIZE),
    Column("rtt_full_size_min_ns", "Int64", Unit.NS, "Smallest RTT of a full-sized segment", _KARN),
    Column("rtt_full_size_mean_ns", "Int64", Unit.NS, "Mean RTT of full-sized segments", _KARN),
    Column("rtt_full_size_max_ns", "Int64", Unit.NS, "Largest RTT of a full-sized segment", _KARN),
    Column("rtt_full_size_stdev_ns", "Int64", Unit.NS, "Standard deviation of the RTTs of full-sized segments", "null below two samples"),
    Column("rtt_retransmitted_samples", "Int64", Unit.NONE, "ACKs that this host received whose newest segment was retransmitted", "which transmission they acknowledge is unknown"),
    Column("rtt_retransmitted_min_ns", "Int64", Unit.NS, "Shortest time from the last transmission of a retransmitted segment to its ACK", _RESENT_RTT),
    Column("rtt_retransmitted_mean_ns", "Int64", Unit.NS, "Mean time from the last transmission of a retransmitted segment to its ACK", _RESENT_RTT),
    Column("rtt_retransmitted_max_ns", "Int64", Unit.NS, "Longest time from the last transmission of a retransmitted segment to its ACK", _RESENT_RTT),
    Column("rtt_retransmitted_stdev_ns", "Int64", Unit.NS, "Standard deviation of the times from the last transmission of a retransmitted segment to its ACK", "null below two samples"),
    Column("retransmit_interval_samples", "Int64", Unit.NONE, "Number of retransmits that were sent before the ACK of their segment and whose previous transmission was captured", "the four columns that follow are computed from them"),
    Column("retransmit_interval_min_ns", "Int64", Unit.NS, "Shortest time from a transmission of a segment to its next retransmit", _WAIT),
    Column("retransmit_interval_mean_ns", "Int64", Unit.NS, "Mean time from a transmission of a segment to its next retransmit", _WAIT),
    Column("retransmit_interval_max_ns", "Int64", Unit.NS, "Longest time from a transmission of a segment to its next retransmit", _WAIT),
    Column("retransmit_interval_stdev_ns", "Int64", Unit.NS, "Standard deviation of the times from a transmission of a segment to its next retransmit", "null below two samples"),
)
"""Columns with further figures of a direction. With `DIRECTION`, they cover tcptrace's listing, Wireshark's conversations, and three kinds
of RTT."""
