"""Columns of `connections`: amounts and counts of one direction."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

DIRECTION = (
    Column("segments", "Int64", Unit.SEGMENTS, "Segments sent, without duplicates made by the capture or the network"),
    Column("data_segments", "Int64", Unit.SEGMENTS, "Segments sent with data"),
    Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data sent, including retransmits"),
    Column("unique_bytes", "Int64", Unit.BYTES, "Bytes of the stream that were captured, each counted once"),
    Column("retransmitted_segments", "Int64", Unit.SEGMENTS, "Retransmitted segments: they carry bytes (or a SYN or FIN) sent before"),
    Column("retransmitted_bytes", "Int64", Unit.BYTES, "Bytes of data in retransmitted segments"),
    Column("spurious_retransmissions", "Int64", Unit.SEGMENTS, "Spurious retransmits: retransmitted segments whose original had arrived", "a lower bound: without D-SACK and timestamps many remain unknown"),
    Column("out_of_order_segments", "Int64", Unit.SEGMENTS, "Segments that arrived after later ones and are not retransmits"),
    Column("capture_duplicates", "Int64", Unit.SEGMENTS, "Duplicates of packets made by the capture; counted nowhere else"),
    Column("network_duplicates", "Int64", Unit.SEGMENTS, "Duplicates of packets made by the network, as far as they show; counted nowhere else"),
    Column("not_captured_bytes", "Int64", Unit.BYTES, "Bytes that the peer ACKed but are missing from the capture", "lost by the capture, not by the network"),
    Column("not_captured_holes", "Int64", Unit.NONE, "Gaps of such bytes"),
    Column("duplicate_acks", "Int64", Unit.SEGMENTS, "Duplicate ACKs sent (RFC 5681)"),
    Column("pure_acks", "Int64", Unit.SEGMENTS, "Segments without data, SYN, FIN or RST"),
    Column("keepalives", "Int64", Unit.SEGMENTS, "Keepalive probes sent"),
    Column("zero_window_probes", "Int64", Unit.SEGMENTS, "Zero-window probes sent"),
    Column("window_updates", "Int64", Unit.SEGMENTS, "ACKs sent only to update the window"),
    Column("zero_window_advertisements", "Int64", Unit.SEGMENTS, "Segments sent that advertise a window of 0 (RST excepted)"),
    Column("pushed_segments", "Int64", Unit.SEGMENTS, "Segments sent with PSH"),
    Column("truncated_segments", "Int64", Unit.SEGMENTS, "Segments with data truncated by snaplen"),
    Column("syn_segments", "Int64", Unit.SEGMENTS, "Segments sent with SYN"),
    Column("fin_segments", "Int64", Unit.SEGMENTS, "Segments sent with FIN"),
    Column("rst_segments", "Int64", Unit.SEGMENTS, "Segments sent with RST"),
    Column(
        "isn",
        "UInt32",
        Unit.NONE,
        "Sequence number of offset 0",
        "that of the SYN, or one below the first captured byte if no SYN was captured",
    ),
    Column(
        "mss_bytes",
        "Int64",
        Unit.BYTES,
        "MSS option of this host's SYN: the largest segment it wants to receive",
        "null without SYN or option, or if truncated",
    ),
    Column(
        "window_scale",
        "UInt8",
        Unit.NONE,
        "Shift applied to the windows this host advertises",
        "null while unknown; also 0 if the two SYNs do not agree on scaling",
    ),
    Column("sack_permitted", "Boolean", Unit.NONE, "SACK-permitted option in this host's SYN", "null without SYN, or where the capture cut its options before"),
    Column("timestamps", "Boolean", Unit.NONE, "TCP timestamps option in this host's SYN", "null without SYN, or where the capture cut its options before"),
    Column("max_window_bytes", "Int64", Unit.BYTES, "Largest window this host advertised, scaled", "null while the scale is unknown"),
    Column(
        "min_window_bytes",
        "Int64",
        Unit.BYTES,
        "Smallest window this host advertised, scaled, SYN and RST excepted",
        "null while the scale is unknown",
    ),
    Column("max_in_flight_bytes", "Int64", Unit.BYTES, "Largest number of bytes in flight", "null until the peer's first ACK"),
    Column(
        "max_segment_bytes", "Int64", Unit.BYTES, "Largest payload of one captured segment", "may exceed the MSS under offload (TSO, GRO)"
    ),
    Column("full_segment_bytes", "Int64", Unit.BYTES, "Payload of a full segment: the smaller MSS of the two SYNs, minus 12 for timestamps if both have the option", "null unless both SYNs were captured, with their MSS"),
    Column("header_bytes", "Int64", Unit.BYTES, "Headers of the largest segment, including those of the link: the Ethernet frame (tags, tunnels, IP, TCP with options) or the AAL5 PDU (LLC/SNAP, …)", "null without data, on other links, and for IP fragments"),
    Column("cells", "Int64", Unit.NONE, "ATM cells that carried the segments", "null except on ATM; for IP fragments, only the cells of the last one; without cells lost before the capture point"),
    Column("cell_payload_share", "Float64", Unit.NONE, "Share of data (including retransmits) in the bytes of these cells on the line, headers included", "null except on ATM, and if the counted cells cannot have carried the data; at most 48/53"),
    Column("best_payload_share", "Float64", Unit.NONE, "Share of data on the line if every segment is full: full_segment_bytes per bytes on the line (ATM: cells of 53 bytes with AAL5 trailer and padding; Ethernet: frame, FCS, preamble and gap)", "an upper bound from headers alone; ACKs travel in the other direction and are not counted; virtual links (loopback, veth) that look like Ethernet have no such overhead"),
    Column("rtt_samples", "Int64", Unit.SEGMENTS, "RTT samples: ACKs of this direction's data that Karn's algorithm admits"),
    Column(
        "rtt_min_ns",
        "Int64",
        Unit.NS,
        "Smallest RTT sample",
        "from the capture point to the receiver and back; null without samples",
    ),
    Column("rtt_mean_ns", "Int64", Unit.NS, "Mean of the RTT samples", "null without samples"),
    Column("rtt_max_ns", "Int64", Unit.NS, "Largest RTT sample", "null without samples"),
    Column("first_data_ts_ns", "Int64", Unit.NS, "Time of the first segment with data", "null without data"),
    Column("last_data_ts_ns", "Int64", Unit.NS, "Time of the last segment with data", "null without data"),
)
"""Figures of one direction; columns are named by its sender."""
