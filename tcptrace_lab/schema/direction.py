"""Columns of `connections`: what one direction carried."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit

DIRECTION = (
    Column("segments", "Int64", Unit.SEGMENTS, "Segments sent; duplicates of the capture or the network are not among them"),
    Column("data_segments", "Int64", Unit.SEGMENTS, "Segments sent with data"),
    Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data sent, resent ones included"),
    Column("unique_bytes", "Int64", Unit.BYTES, "Bytes of the stream that were seen, each counted once"),
    Column("retransmitted_segments", "Int64", Unit.SEGMENTS, "Segments that carry bytes (or a SYN or FIN) sent before"),
    Column("retransmitted_bytes", "Int64", Unit.BYTES, "Bytes of data in them"),
    Column("spurious_retransmissions", "Int64", Unit.SEGMENTS, "Of the retransmitted segments, those proved to be needless: the first copy had arrived", "a lower bound: without D-SACK and timestamps much remains unknown"),
    Column("out_of_order_segments", "Int64", Unit.SEGMENTS, "Segments that arrived behind later ones and are not resent"),
    Column("capture_duplicates", "Int64", Unit.SEGMENTS, "Packets that the capture holds once more; they count nowhere else"),
    Column("network_duplicates", "Int64", Unit.SEGMENTS, "Packets that the network delivered once more, as far as that is seen; they count nowhere else"),
    Column("not_captured_bytes", "Int64", Unit.BYTES, "Sequence numbers that the other side acknowledged although the capture never showed them", "lost by the capture, not by the network"),
    Column("not_captured_holes", "Int64", Unit.NONE, "Runs of them"),
    Column("duplicate_acks", "Int64", Unit.SEGMENTS, "Duplicate ACKs sent (RFC 5681)"),
    Column("pure_acks", "Int64", Unit.SEGMENTS, "Segments without data, SYN, FIN or RST"),
    Column("keepalives", "Int64", Unit.SEGMENTS, "Keepalive probes sent"),
    Column("zero_window_probes", "Int64", Unit.SEGMENTS, "Probes sent into a closed window"),
    Column("window_updates", "Int64", Unit.SEGMENTS, "ACKs sent only to move the window"),
    Column("zero_window_advertisements", "Int64", Unit.SEGMENTS, "Segments sent that advertise a window of 0 (RST excepted)"),
    Column("pushed_segments", "Int64", Unit.SEGMENTS, "Segments sent with PSH"),
    Column("cut_segments", "Int64", Unit.SEGMENTS, "Segments whose data the capture cut short (snaplen)"),
    Column("syn_segments", "Int64", Unit.SEGMENTS, "Segments sent with SYN"),
    Column("fin_segments", "Int64", Unit.SEGMENTS, "Segments sent with FIN"),
    Column("rst_segments", "Int64", Unit.SEGMENTS, "Segments sent with RST"),
    Column(
        "isn",
        "UInt32",
        Unit.NONE,
        "Sequence number that has offset 0",
        "the SYN's, or one below the first byte known where no SYN was captured",
    ),
    Column(
        "mss_bytes",
        "Int64",
        Unit.BYTES,
        "MSS option of this side's SYN: the largest segment it wants to receive",
        "null without SYN or option, or where the capture cut it",
    ),
    Column(
        "window_scale",
        "UInt8",
        Unit.NONE,
        "Shift applied to the windows this side advertises",
        "null while unknown; 0 also when the two SYNs did not agree on scaling",
    ),
    Column("sack_permitted", "Boolean", Unit.NONE, "SACK-permitted option in this side's SYN", "null without SYN, or where the capture cut its options before"),
    Column("timestamps", "Boolean", Unit.NONE, "TCP timestamps option in this side's SYN", "null without SYN, or where the capture cut its options before"),
    Column("max_window_bytes", "Int64", Unit.BYTES, "Largest window this side advertised, scaled", "null while the scale is unknown"),
    Column(
        "min_window_bytes",
        "Int64",
        Unit.BYTES,
        "Smallest window this side advertised, scaled, SYN and RST excepted",
        "null while the scale is unknown",
    ),
    Column("max_in_flight_bytes", "Int64", Unit.BYTES, "Most bytes sent and not yet acknowledged", "null until the other side's first ACK"),
    Column(
        "max_segment_bytes", "Int64", Unit.BYTES, "Largest payload of one captured segment", "may exceed the MSS under offload (TSO, GRO)"
    ),
    Column("full_segment_bytes", "Int64", Unit.BYTES, "Data of a full segment: the smaller MSS of the two SYNs, less 12 for timestamps if both had the option", "null unless both SYNs were captured, with their MSS"),
    Column("header_bytes", "Int64", Unit.BYTES, "Headers of the largest segment, as far out as the line's own: of the Ethernet frame (tags, tunnels, IP, TCP with its options), or of the AAL5 PDU (LLC/SNAP, …)", "null without data, on other links, and where it came in IP fragments"),
    Column("cells", "Int64", Unit.NONE, "ATM cells that carried its segments", "null but on ATM; of packets in IP fragments, those of the last; cells that were lost before the capture point are not in it"),
    Column("cell_payload_share", "Float64", Unit.NONE, "Share of these cells' bytes on the line, headers included, that was data (resent data, too)", "null but on ATM, and where the cells counted cannot have held the data; at most 48 of 53"),
    Column("best_payload_share", "Float64", Unit.NONE, "Share of the line that is data if every segment is full: full_segment_bytes of all that a segment of this size takes (ATM: whole cells of 53 bytes, AAL5's trailer and padding in them; Ethernet: frame, FCS, preamble and gap)", "a bound by headers alone; ACKs go the other way and cost it nothing; virtual links (loopback, veth) that look like Ethernet have no such cost"),
    Column("rtt_samples", "Int64", Unit.SEGMENTS, "Round-trip samples: ACKs of this direction's data that Karn's rule admits"),
    Column(
        "rtt_min_ns",
        "Int64",
        Unit.NS,
        "Smallest round-trip sample",
        "from the capture point to the receiver and back; null without samples",
    ),
    Column("rtt_mean_ns", "Int64", Unit.NS, "Mean of the round-trip samples", "null without samples"),
    Column("rtt_max_ns", "Int64", Unit.NS, "Largest round-trip sample", "null without samples"),
    Column("first_data_ts_ns", "Int64", Unit.NS, "Time of the first segment with data", "null without data"),
    Column("last_data_ts_ns", "Int64", Unit.NS, "Time of the last segment with data", "null without data"),
)
"""The figures of one direction, named by its sender."""
