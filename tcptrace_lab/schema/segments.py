"""The table `segments`: one TCP segment per row."""

from __future__ import annotations

from tcptrace_lab.schema.categories import CONFIDENCES, ECN_SIGNALS, EVIDENCE, KINDS, RELEASED_BY, RESET_KINDS, RETRANSMIT_TRIGGERS, TFO
from tcptrace_lab.schema.column import Column, Unit, table

SEGMENTS = table(
    "segments",
    "one TCP segment as captured",
    [
        Column("frame", "UInt64", Unit.FRAME, "Number of the frame that carried the segment, as in Wireshark"),
        Column("ts_ns", "Int64", Unit.NS, "Capture time, in ns since 1970-01-01 UTC", "null if the capture format has no timestamps"),
        Column("conn", "UInt32", Unit.NONE, "Number of the connection, from 0 by first appearance (Wireshark's tcp.stream)"),
        Column("from_client", "Boolean", Unit.NONE, "True if the client of the connection sent the segment"),
        Column(
            "seq",
            "Int64",
            Unit.OFFSET,
            "Stream offset of the segment's first byte: 0 is the SYN, 1 the first byte of data",
            "relative to the first captured segment if the SYN was not captured",
        ),
        Column(
            "ack",
            "Int64",
            Unit.OFFSET,
            "Next stream offset that the sender of this segment expects from its peer",
            "null without the ACK flag",
        ),
        Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data in the segment, by the lengths in its headers"),
        Column("captured_payload_bytes", "Int64", Unit.BYTES, "Bytes of data of this segment in the capture; fewer than payload_bytes if the snaplen truncated it"),
        Column(
            "flags", "UInt16", Unit.NONE, "Sum of the TCP flags in the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128, AE 256"
        ),
        Column(
            "window_bytes", "Int64", Unit.BYTES, "Window that this segment advertises, after scaling", "null while the window scale is unknown, unless the window is 0"
        ),
        Column(
            "sack_blocks",
            "List(Int64)",
            Unit.OFFSET,
            "SACK blocks of the segment, as left, right, left, right, …",
            "null without the option; offsets are in the peer's stream",
        ),
        Column("tsval", "UInt32", Unit.NONE, "Timestamp value of the TCP timestamps option", "null without the option"),
        Column("tsecr", "UInt32", Unit.NONE, "Timestamp echo reply of the TCP timestamps option", "null without the option"),
        Column("ip_id", "UInt16", Unit.NONE, "IPv4 identification", "null for IPv6"),
        Column("ttl", "UInt8", Unit.NONE, "IPv4 time to live, or IPv6 hop limit"),
        Column("ect", "UInt8", Unit.NONE, "ECN field of the IP header: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE"),
        Column("ce", "Boolean", Unit.NONE, "True if the path marked the packet as Congestion Experienced (CE)"),
        Column("kind", "Enum", Unit.NONE, "What the segment is (new data, ACK, a kind of retransmit, …), judged from earlier segments and revised if later ones prove something else", values=KINDS),
        Column("evidence", "Enum", Unit.NONE, "Evidence for kind", values=EVIDENCE),
        Column("evidence_frame", "UInt64", Unit.FRAME, "Another frame on which the evidence is based: the ACK, the earlier transmission, the overtaking segment, or the D-SACK", "null if one frame is enough"),
        Column("confidence", "Enum", Unit.NONE, "Confidence of kind", values=CONFIDENCES),
        Column("retransmit_trigger", "Enum", Unit.NONE, "What made the sender retransmit these bytes; set for spurious retransmits too", "null unless retransmitted", RETRANSMIT_TRIGGERS),
        Column("transmission", "UInt8", Unit.NONE, "Number of times that these bytes have been sent so far, this segment included; 1 is the original", "counts captured transmissions; at least 2 if the original was lost before the capture point; 255 means 255 or more; null without sequence numbers"),
        Column("dsack", "Boolean", Unit.NONE, "True if the first SACK block reports a duplicate (D-SACK: RFC 2883)"),
        Column("reset_kind", "Enum", Unit.NONE, "What a RST means to its receiver (RFC 9293, 3.10.7; RFC 5961)", "judged by the segments at the capture point; other segments may have reached the receiver; null unless RST", RESET_KINDS),
        Column("tfo", "Enum", Unit.NONE, "Step of TCP Fast Open (RFC 7413)", "null for all other segments", TFO),
        Column("ecn_signal", "Enum", Unit.NONE, "Meaning of the ECN flags in the TCP header", "null without such flags, and for segments that refuse ECN", ECN_SIGNALS),
        Column(
            "in_flight_bytes",
            "Int64",
            Unit.BYTES,
            "Bytes in flight in this direction just before this segment (FlightSize, RFC 5681)",
            "null until the peer's first ACK",
        ),
        Column(
            "usable_window_bytes",
            "Int64",
            Unit.BYTES,
            "Bytes that the last advertised window still allowed just before this segment; negative if the window shrank",
            "null while the window scale is unknown",
        ),
        Column("since_previous_ns", "Int64", Unit.NS, "Time since the previous segment of this direction", "null for the first one"),
        Column("since_last_ack_ns", "Int64", Unit.NS, "Time since the peer's last segment with an ACK", "null before the first one"),
        Column("since_last_data_ns", "Int64", Unit.NS, "Time since the peer's last segment with data", "null before the first one"),
        Column(
            "released_by",
            "Enum",
            Unit.NONE,
            "What triggered this data segment: an ACK, a write of the application, a timer, or the burst to which it belongs",
            "as seen at the capture point: certain only near the sender; null without data",
            RELEASED_BY,
        ),
        Column(
            "released_by_frame",
            "UInt64",
            Unit.FRAME,
            "Frame that triggered this data segment: the frame of the ACK, or of the first segment of the burst",
            "null for write, timer and unknown",
        ),
        Column("acked_bytes", "Int64", Unit.BYTES, "Sequence numbers that this segment ACKs for the first time: bytes, plus 1 each for SYN and FIN", "null without the ACK flag"),
        Column("acked_unseen_bytes", "Int64", Unit.BYTES, "Bytes that this segment ACKs for the first time and that are missing from the capture: not captured, but not lost", "if these bytes are captured later, the count of the connection is corrected, but not this value; null if no segment of the peer was captured"),
        Column(
            "ack_lag_ns",
            "Int64",
            Unit.NS,
            "Time since the last transmission of the oldest byte that this segment ACKs for the first time",
            "null if it ACKs nothing new",
        ),
        Column(
            "rtt_ns",
            "Int64",
            Unit.NS,
            "RTT sample: time since the newest segment that this one ACKs",
            "null if any byte that this segment ACKs was retransmitted (Karn's algorithm), or if it ACKs nothing new",
        ),
        Column("layers", "Categorical", Unit.NONE, "Protocol headers up to TCP, outermost first, such as eth/vlan/ip/gre/ip/tcp"),
        Column("vpi", "UInt16", Unit.NONE, "ATM virtual path identifier of the segment's cells", "null without ATM, and if the capture does not have it"),
        Column("vci", "UInt16", Unit.NONE, "ATM virtual channel identifier of the segment's cells", "null without ATM, and if the capture does not have it"),
        Column("cells", "UInt16", Unit.NONE, "Number of ATM cells that carried the segment", "null except on ATM; computed from the length if only the PDU was captured; for a fragmented packet, counts only the cells of its last fragment"),
        Column("wait_ns", "Int64", Unit.NS, "Time since the sender of this segment last sent data, SYN or FIN", "null for the first such segment, and for segments without data, SYN and FIN"),
        Column("smss_bytes", "Int64", Unit.BYTES, "Payload of a full segment (SMSS: RFC 5681): the MSS minus TCP options, or half of the largest window if a current stack never sent more", "null if wait_ns is null"),
    ],
)
