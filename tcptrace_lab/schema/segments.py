"""The table `segments`: one TCP segment per row."""

from __future__ import annotations

from tcptrace_lab.schema.categories import CONFIDENCES, ECN_SIGNALS, EVIDENCE, KINDS, RELEASED_BY, RESET_KINDS, RETRANSMIT_TRIGGERS, TFO
from tcptrace_lab.schema.column import Column, Unit, table

SEGMENTS = table(
    "segments",
    "one TCP segment as captured",
    [
        Column("frame", "UInt64", Unit.FRAME, "Number of the frame that carried the segment, as in Wireshark"),
        Column("ts_ns", "Int64", Unit.NS, "Capture time since 1970-01-01 UTC", "null if the capture format has no timestamps"),
        Column("conn", "UInt32", Unit.NONE, "Connection, numbered from 0 by first appearance (Wireshark's tcp.stream)"),
        Column("from_client", "Boolean", Unit.NONE, "True if the client of the connection sent it"),
        Column(
            "seq",
            "Int64",
            Unit.OFFSET,
            "Offset of the first byte; SYN = 0, first data byte = 1",
            "relative to the first segment seen where the SYN was not captured",
        ),
        Column(
            "ack",
            "Int64",
            Unit.OFFSET,
            "Next offset that the sender of this segment expects from the peer",
            "null without the ACK flag",
        ),
        Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data in the segment, by the lengths in its headers"),
        Column("captured_payload_bytes", "Int64", Unit.BYTES, "Bytes of data in the capture (snaplen may truncate them)"),
        Column(
            "flags", "UInt16", Unit.NONE, "TCP flags as in the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128, AE 256"
        ),
        Column(
            "window_bytes", "Int64", Unit.BYTES, "Window that this segment advertises, scaled", "null while the window scale is unknown, unless it is 0"
        ),
        Column(
            "sack_blocks",
            "List(Int64)",
            Unit.OFFSET,
            "SACK blocks as left, right, left, right, …",
            "null without the option; offsets of the peer's stream",
        ),
        Column("tsval", "UInt32", Unit.NONE, "Timestamp value of the TCP timestamps option", "null without the option"),
        Column("tsecr", "UInt32", Unit.NONE, "Timestamp echo reply of the TCP timestamps option", "null without the option"),
        Column("ip_id", "UInt16", Unit.NONE, "IPv4 identification", "null for IPv6"),
        Column("ttl", "UInt8", Unit.NONE, "IPv4 time to live or IPv6 hop limit"),
        Column("ect", "UInt8", Unit.NONE, "ECN field of the IP header: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE"),
        Column("ce", "Boolean", Unit.NONE, "True if the path marked the packet (CE, congestion experienced)"),
        Column("kind", "Enum", Unit.NONE, "What the segment is, as judged from earlier segments, and revised if later segments prove something else", values=KINDS),
        Column("evidence", "Enum", Unit.NONE, "Evidence for the kind", values=EVIDENCE),
        Column("evidence_frame", "UInt64", Unit.FRAME, "The other frame of the evidence: the ACK, the earlier transmission, the overtaking segment, the D-SACK", "null if one frame is enough"),
        Column("confidence", "Enum", Unit.NONE, "Confidence of the kind", values=CONFIDENCES),
        Column("retransmit_trigger", "Enum", Unit.NONE, "Why the sender retransmitted these bytes, spurious or not", "null unless retransmitted", RETRANSMIT_TRIGGERS),
        Column("transmission", "UInt8", Unit.NONE, "Number of transmissions of these bytes so far; 1: the original", "captured transmissions; at least 2 if the original was lost before the capture point; 255 means 255 or more; null without sequence numbers"),
        Column("dsack", "Boolean", Unit.NONE, "True if its first SACK block reports a duplicate (RFC 2883)"),
        Column("reset_kind", "Enum", Unit.NONE, "Meaning of a RST for its receiver", "as seen at the capture point, which may have seen more or less than that host; null unless RST", RESET_KINDS),
        Column("tfo", "Enum", Unit.NONE, "Step of TCP Fast Open (RFC 7413)", "null for most", TFO),
        Column("ecn_signal", "Enum", Unit.NONE, "Meaning of the ECN flags in the TCP header", "null without them; refusals have none", ECN_SIGNALS),
        Column(
            "in_flight_bytes",
            "Int64",
            Unit.BYTES,
            "Bytes in flight in this direction just before this segment",
            "null until the peer's first ACK",
        ),
        Column(
            "usable_window_bytes",
            "Int64",
            Unit.BYTES,
            "Room in the last offered window just before this segment; negative if the window shrank",
            "null while the window scale is unknown",
        ),
        Column("since_previous_ns", "Int64", Unit.NS, "Time since the previous segment of this direction", "null for its first"),
        Column("since_last_ack_ns", "Int64", Unit.NS, "Time since the peer's last segment with an ACK", "null before the first"),
        Column("since_last_data_ns", "Int64", Unit.NS, "Time since the peer's last segment with data", "null before the first"),
        Column(
            "released_by",
            "Enum",
            Unit.NONE,
            "What triggered this data segment: an ACK, a write of the application, a timer, or the burst it belongs to",
            "as seen at the capture point: certain only near the sender; null without data",
            RELEASED_BY,
        ),
        Column(
            "released_by_frame",
            "UInt64",
            Unit.FRAME,
            "Frame that triggered it: the ACK, or the first segment of the burst",
            "null for write, timer and unknown",
        ),
        Column("acked_bytes", "Int64", Unit.BYTES, "Sequence numbers newly ACKed by this segment: bytes, plus 1 each for SYN and FIN", "null without the ACK flag"),
        Column("acked_unseen_bytes", "Int64", Unit.BYTES, "Bytes newly ACKed by this segment that are missing from the capture: not captured, but not lost", "if they are captured after the ACK, corrected in the connection but not here; null if no segment of that host was captured"),
        Column(
            "ack_lag_ns",
            "Int64",
            Unit.NS,
            "Time since the last transmission of the oldest byte that this segment newly ACKs",
            "null if it ACKs nothing new",
        ),
        Column(
            "rtt_ns",
            "Int64",
            Unit.NS,
            "Sample of the RTT: time since the newest segment that this one ACKs",
            "null if any byte that it covers was retransmitted (Karn), or nothing new is ACKed",
        ),
        Column("layers", "Categorical", Unit.NONE, "Protocol headers before the segment, outermost first: eth/vlan/ip/gre/ip/tcp"),
        Column("vpi", "UInt16", Unit.NONE, "Virtual path of the ATM channel", "null except on ATM, and where the capture does not say"),
        Column("vci", "UInt16", Unit.NONE, "Virtual channel in that path", "null except on ATM, and where the capture does not say"),
        Column("cells", "UInt16", Unit.NONE, "ATM cells that carried it", "null except on ATM; computed from the length if only the PDU was captured; for IP fragments, only the cells of the last one"),
        Column("wait_ns", "Int64", Unit.NS, "Time since the sender last sent data, SYN or FIN", "null for the first, and for segments without sequence space; also the next column"),
        Column("smss_bytes", "Int64", Unit.BYTES, "Largest payload of a segment: MSS minus options; half of the largest window if a current stack never sent more"),
    ],
)
