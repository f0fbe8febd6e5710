"""The table `segments`."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.words import CONFIDENCES, ECN_SIGNALS, EVIDENCE, KINDS, RELEASED_BY, RESENT_BY, RESET_KINDS, TFO

SEGMENTS = table(
    "segments",
    "one TCP segment as captured",
    [
        Column("frame", "UInt64", Unit.FRAME, "Number of the frame that carried the segment, as in Wireshark"),
        Column("ts_ns", "Int64", Unit.NS, "Capture time since 1970-01-01 UTC", "null where the capture format stores no time"),
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
            "Next offset that the sender of this segment expects from the other side",
            "null without the ACK flag",
        ),
        Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data in the segment, by the lengths in its headers"),
        Column("captured_payload_bytes", "Int64", Unit.BYTES, "Bytes of data that the capture holds (snaplen may cut them)"),
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
            "null without the option; offsets of the other side's stream",
        ),
        Column("tsval", "UInt32", Unit.NONE, "Timestamp value of the TCP timestamps option", "null without the option"),
        Column("tsecr", "UInt32", Unit.NONE, "Timestamp echo reply of the TCP timestamps option", "null without the option"),
        Column("ip_id", "UInt16", Unit.NONE, "IPv4 identification", "null for IPv6"),
        Column("ttl", "UInt8", Unit.NONE, "IPv4 time to live or IPv6 hop limit"),
        Column("ect", "UInt8", Unit.NONE, "ECN field of the IP header: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE"),
        Column("ce", "Boolean", Unit.NONE, "True if the path marked the packet: congestion experienced"),
        Column("kind", "Enum", Unit.NONE, "What the segment is, judged from what came before it, and revised where later segments prove it to be something else", values=KINDS),
        Column("evidence", "Enum", Unit.NONE, "What the kind is known by", values=EVIDENCE),
        Column("evidence_frame", "UInt64", Unit.FRAME, "The other frame of the proof: the ACK, the earlier transmission, the segment that jumped ahead, the D-SACK", "null where one frame is enough"),
        Column("confidence", "Enum", Unit.NONE, "How sure the kind is", values=CONFIDENCES),
        Column("resent_by", "Enum", Unit.NONE, "What made the sender send these bytes again, be it needless or not", "null unless resent", RESENT_BY),
        Column("transmission", "UInt8", Unit.NONE, "How often these bytes were sent by now: 1 at first", "counts what was captured, and at least 2 where the first was lost before the capture point; 255 is 255 or more; null without sequence numbers"),
        Column("dsack", "Boolean", Unit.NONE, "True if its first SACK block reports a duplicate (RFC 2883)"),
        Column("reset_kind", "Enum", Unit.NONE, "What a RST is to the side that it is sent to", "seen from the capture point, which may have seen more or less than that side; null unless RST", RESET_KINDS),
        Column("tfo", "Enum", Unit.NONE, "Step of TCP Fast Open (RFC 7413)", "null for most", TFO),
        Column("ecn_signal", "Enum", Unit.NONE, "What the ECN flags of the TCP header say", "null without them; refusals have none", ECN_SIGNALS),
        Column(
            "in_flight_bytes",
            "Int64",
            Unit.BYTES,
            "Sent and not yet acknowledged in this direction, just before this segment",
            "null until the other side's first ACK",
        ),
        Column(
            "usable_window_bytes",
            "Int64",
            Unit.BYTES,
            "Room left in the window this side was last offered, just before this segment; negative if it shrank",
            "null while the window scale is unknown",
        ),
        Column("since_previous_ns", "Int64", Unit.NS, "Time since the previous segment of this direction", "null for its first"),
        Column("since_last_ack_ns", "Int64", Unit.NS, "Time since the other side's last segment with an ACK", "null before the first"),
        Column("since_last_data_ns", "Int64", Unit.NS, "Time since the other side's last segment with data", "null before the first"),
        Column(
            "released_by",
            "Enum",
            Unit.NONE,
            "What let this data segment leave: an ACK that arrived, the program's write, a timer, or the burst it belongs to",
            "seen from the capture point: certain only near the sender; null without data",
            RELEASED_BY,
        ),
        Column(
            "released_by_frame",
            "UInt64",
            Unit.FRAME,
            "The frame that released it: the ACK, or the first segment of the burst",
            "null for write, timer and unknown",
        ),
        Column("acked_bytes", "Int64", Unit.BYTES, "Sequence numbers that this segment acknowledges for the first time: bytes, and 1 each for SYN and FIN", "null without the ACK flag"),
        Column("acked_unseen_bytes", "Int64", Unit.BYTES, "Bytes that this segment acknowledges for the first time although the capture never showed them: not captured, and not lost", "taken back in the connection's figures, not here, if they show up behind the ACK; null where that side was never seen"),
        Column(
            "ack_lag_ns",
            "Int64",
            Unit.NS,
            "Time since the oldest byte that this segment acknowledges for the first time was last seen",
            "null if it acknowledges nothing new",
        ),
        Column(
            "rtt_ns",
            "Int64",
            Unit.NS,
            "Round-trip sample: time since the newest segment that this one acknowledges",
            "null if any byte it acknowledges was ever resent (Karn), or nothing new is acknowledged",
        ),
        Column("layers", "Categorical", Unit.NONE, "Headers on the way to the segment, outermost first: eth/vlan/ip/gre/ip/tcp"),
        Column("vpi", "UInt16", Unit.NONE, "Virtual path of the ATM channel it came over", "null but on ATM, and where the capture does not say"),
        Column("vci", "UInt16", Unit.NONE, "Virtual channel in that path", "null but on ATM, and where the capture does not say"),
        Column("cells", "UInt16", Unit.NONE, "ATM cells that carried it", "null but on ATM; reckoned from the length where only the PDU was captured; of a packet in IP fragments, those of the last"),
        Column("held_ns", "Int64", Unit.NS, "How long its sender had not sent data, SYN or FIN before", "null for the first, and for segments that occupy no sequence space; so the next column"),
        Column("full_bytes", "Int64", Unit.BYTES, "Largest payload that may leave: MSS less options; half of the largest window where a sender of today never sent more"),
    ],
)
