"""Columns of `connections`: numbers of bytes, segments and events of one direction."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

DIRECTION = (
    Column("segments", "Int64", Unit.SEGMENTS, "Segments that this host sent, without duplicates made by the capture or the network"),
    Column("data_segments", "Int64", Unit.SEGMENTS, "Segments with data that this host sent"),
    Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data that this host sent, including retransmits"),
    Column("unique_bytes", "Int64", Unit.BYTES, "Captured bytes of this host's stream, each counted once"),
    Column("retransmitted_segments", "Int64", Unit.SEGMENTS, "Segments of this host that carry bytes, a SYN or a FIN that it sent before (retransmits)"),
    Column("retransmitted_bytes", "Int64", Unit.BYTES, "Bytes of data in retransmitted segments"),
    Column("spurious_retransmissions", "Int64", Unit.SEGMENTS, "Retransmitted segments whose original had arrived (spurious retransmits)", "a lower bound: without D-SACK and timestamps many remain unknown"),
    Column("out_of_order_segments", "Int64", Unit.SEGMENTS, "Segments that arrived after later ones (reordering) and are not retransmits"),
    Column("capture_duplicates", "Int64", Unit.SEGMENTS, "Copies of this host's packets that the capture itself made; no other column counts them"),
    Column("network_duplicates", "Int64", Unit.SEGMENTS, "Copies of this host's packets that the network made; no other column counts them", "a lower bound: not every copy can be distinguished from a retransmit"),
    Column("not_captured_bytes", "Int64", Unit.BYTES, "Bytes of this host that the peer ACKed but that are missing from the capture", "lost by the capture, not by the network"),
    Column("not_captured_holes", "Int64", Unit.NONE, "Number of gaps in the captured stream that together hold not_captured_bytes"),
    Column("duplicate_acks", "Int64", Unit.SEGMENTS, "Duplicate ACKs that this host sent (RFC 5681)"),
    Column("pure_acks", "Int64", Unit.SEGMENTS, "Segments that this host sent without data, SYN, FIN or RST"),
    Column("keepalives", "Int64", Unit.SEGMENTS, "Keepalive probes that this host sent"),
    Column("zero_window_probes", "Int64", Unit.SEGMENTS, "Zero-window probes that this host sent"),
    Column("window_updates", "Int64", Unit.SEGMENTS, "ACKs that this host sent only to update its window"),
    Column("zero_window_advertisements", "Int64", Unit.SEGMENTS, "Segments that advertise a window of 0, RSTs excepted"),
    Column("pushed_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent with PSH"),
    Column("truncated_segments", "Int64", Unit.SEGMENTS, "Data segments that the snaplen truncated"),
    Column("syn_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent with SYN"),
    Column("fin_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent with FIN"),
    Column("rst_segments", "Int64", Unit.SEGMENTS, "Segments that this host sent with RST"),
    Column(
        "isn",
        "UInt32",
        Unit.NONE,
        "Initial sequence number of this host: the sequence number of stream offset 0",
        "that of the SYN, or one below the first captured byte if no SYN was captured",
    ),
    Column(
        "mss_bytes",
        "Int64",
        Unit.BYTES,
        "MSS option in this host's SYN: the largest segment that it wants to receive",
        "null without SYN or option, or if truncated",
    ),
    Column(
        "window_scale",
        "UInt8",
        Unit.NONE,
        "Window scale of this host: the number of bits by which its advertised windows are shifted",
        "null while unknown; 0 if the two SYNs do not agree on scaling",
    ),
    Column("sack_permitted", "Boolean", Unit.NONE, "True if this host's SYN has the SACK-permitted option", "null without SYN, or if its options are truncated"),
    Column("timestamps", "Boolean", Unit.NONE, "True if this host's SYN has the TCP timestamps option", "null without SYN, or if its options are truncated"),
    Column("max_window_bytes", "Int64", Unit.BYTES, "Largest window that this host advertised, after scaling", "null while the scale is unknown"),
    Column(
        "min_window_bytes",
        "Int64",
        Unit.BYTES,
        "Smallest window that this host advertised, after scaling; SYN and RST excepted",
        "null while the scale is unknown",
    ),
    Column("max_in_flight_bytes", "Int64", Unit.BYTES, "Largest number of bytes of this host in flight", "null until the peer's first ACK"),
    Column(
        "max_segment_bytes", "Int64", Unit.BYTES, "Largest payload of one captured segment", "may exceed the MSS under offload (TSO, GRO)"
    ),
    Column("full_segment_bytes", "Int64", Unit.BYTES, "Payload of a full segment: the smaller MSS of the two SYNs, minus 12 for timestamps if both have the option", "null unless both SYNs were captured, with their MSS"),
    Column("header_bytes", "Int64", Unit.BYTES, "Bytes of headers of the largest segment: all of the Ethernet frame (tags, tunnels, IP, TCP with options), or of the AAL5 PDU (LLC/SNAP, IP, TCP with options)", "null without data, on other links, and for IP fragments"),
    Column("cells", "Int64", Unit.NONE, "Number of ATM cells that carried this host's segments", "null except on ATM; for a fragmented packet, counts only the cells of its last fragment; cells lost before the capture point are not counted"),
    Column("cell_payload_share", "Float64", Unit.NONE, "Data, including retransmits, as a share of all bytes of the counted ATM cells, headers included", "null without ATM, and if the counted cells cannot have carried the data; at most 48/53"),
    Column("best_payload_share", "Float64", Unit.NONE, "Data as a share of the bytes on the link if every segment is full (ATM: cells of 53 bytes with AAL5 trailer and padding; Ethernet: frame, FCS, preamble and gap)", "an upper bound from headers alone; ACKs travel in the other direction and are not counted; virtual links (loopback, veth) that look like Ethernet have no such overhead"),
    Column("rtt_samples", "Int64", Unit.SEGMENTS, "Number of RTT samples: ACKs of this host's data that Karn's algorithm admits"),
    Column(
        "rtt_min_ns",
        "Int64",
        Unit.NS,
        "Smallest RTT sample of this host's data",
        "from the capture point to the receiver and back; null without samples",
    ),
    Column("rtt_mean_ns", "Int64", Unit.NS, "Mean RTT sample of this host's data", "null without samples"),
    Column("rtt_max_ns", "Int64", Unit.NS, "Largest RTT sample of this host's data", "null without samples"),
    Column("first_data_ts_ns", "Int64", Unit.NS, "Time of this host's first segment with data", "in ns since 1970-01-01 UTC; null without data"),
    Column("last_data_ts_ns", "Int64", Unit.NS, "Time of this host's last segment with data", "in ns since 1970-01-01 UTC; null without data"),
)
"""Columns with figures of one direction. The prefix of a column names the sender."""
