"""Where the engine and tshark 4.0 do not say the same of a capture, by how much, and who is right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison import Differs

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Deviation:
    """What differs in one capture.

    Attributes:
        reason: why, and who is right.
        counts: figure → (ours, tshark's).
        columns: column → how many rows differ, and the first frame.
    """

    reason: str
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    columns: Mapping[str, Differs] = field(default_factory=dict)


ONE_SYN = (
    "Only one SYN was captured up to there. tshark scales windows by it without knowing whether the other side agreed to scaling; "
    "ours are unknown until both were seen (RFC 7323, 2.2)."
)
SFLOW = "The TCP header is a sample inside an sFlow datagram, a report about a packet elsewhere, which tshark takes for a segment."
TIME_CARRIED = (
    "The field for the part below a second holds 2^31. The engine carries it over into the seconds and names the problem; "
    "tshark takes it for a signed number."
)


DEVIATIONS: Mapping[str, Deviation] = {
    "Zious11-wirerust__dns-remoteshell.pcap": Deviation(
        "Two refused SYNs are each sent again twice, with the same ISN, after the RST: each time a new connection for the engine, one "
        "connection for tshark.",
        counts={"connections": (13, 9)},
        columns={"conn": Differs(89, 43)},
    ),
    "seladb-PcapPlusPlus__raw_ip.pcap": Deviation(ONE_SYN, columns={"window_known": Differs(38, 54)}),
    "seladb-PcapPlusPlus__tcp-malformed.pcap": Deviation(
        "The TCP header claims 28 bytes where the IP length leaves 24. tshark stops before it knows the length and shows raw numbers; the "
        "fixed header is whole, so the engine keeps the segment, without payload.",
        columns={"seq": Differs(2, 1), "ack": Differs(2, 1), "payload_bytes": Differs(2, 1)},
    ),
    "seladb-PcapPlusPlus__tcp-reassembly.pcap": Deviation(
        SFLOW, counts={"tcp_segments": (65, 66), "connections": (1, 2)}, columns={"frame_only_theirs": Differs(1, 66)}
    ),
    "simsong-tcpflow__test5-lines-randomized.pcap": Deviation(ONE_SYN, columns={"window_known": Differs(1, 11)}),
    "the-tcpdump-group-tcpdump__bigtcp-ipv6.pcap": Deviation(
        "BIG TCP: the IPv6 payload length is 0 and no hop-by-hop header tells the true one. The frame's length does; tshark 4.0 gives up.",
        counts={"tcp_segments": (1, 0), "connections": (1, 0)},
        columns={"frame_only_ours": Differs(1, 1)},
    ),
    "the-tcpdump-group-tcpdump__ipoib.pcap": Deviation(ONE_SYN, columns={"window_known": Differs(14, 10)}),
    "the-tcpdump-group-tcpdump__sflow_expanded.pcap": Deviation(
        SFLOW, counts={"tcp_segments": (0, 1), "connections": (0, 1)}, columns={"frame_only_theirs": Differs(1, 1)}
    ),
    "the-tcpdump-group-tcpdump__timestamp_invalid_micro.pcap": Deviation(TIME_CARRIED, columns={"ts_ns": Differs(1, 3)}),
    "the-tcpdump-group-tcpdump__timestamp_invalid_nano.pcap": Deviation(TIME_CARRIED, columns={"ts_ns": Differs(1, 3)}),
    "zeek-zeek__cisco-fabric-path.pcap": Deviation(
        "tshark takes the last four bytes of the frame inside FabricPath for its checksum, although they belong to the TCP header, and "
        "then finds the header too short to give a length.",
        columns={"payload_bytes": Differs(16, 34)},
    ),
    "zeek-zeek__fin_retransmission.pcap": Deviation(ONE_SYN, columns={"window_known": Differs(1, 2)}),
    "zeek-zeek__gre-aruba.pcap": Deviation(ONE_SYN, columns={"window_known": Differs(2371, 6)}),
    "zeek-zeek__ssh.client-side-half-duplex.pcap": Deviation(ONE_SYN, columns={"window_known": Differs(816, 2)}),
}
"""File name → what differs there."""
