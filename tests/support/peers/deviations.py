"""Counts of header fields in which the engine and tshark 4.0 differ, for each rule of `tcptrace_lab.verify.rules`.

A test fails if a count grows or shrinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNTED_OTHERWISE: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "Zious11-wirerust__dns-remoteshell.pcap": {"connections": (13, 9)},
    "seladb-PcapPlusPlus__tcp-reassembly.pcap": {"tcp_segments": (65, 66), "connections": (1, 2)},
    "the-tcpdump-group-tcpdump__bigtcp-ipv6.pcap": {"tcp_segments": (1, 0), "connections": (1, 0)},
    "the-tcpdump-group-tcpdump__sflow_expanded.pcap": {"tcp_segments": (0, 1), "connections": (0, 1)},
}
"""For each file name and figure: (our count, tshark's count)."""

DEVIATIONS: Mapping[str, Mapping[str, int]] = {
    "Zious11-wirerust__dns-remoteshell.pcap": {"tshark-joins-same-numbers": 16},
    "seladb-PcapPlusPlus__raw_ip.pcap": {"tshark-scales-by-one-syn": 38},
    "seladb-PcapPlusPlus__tcp-malformed.pcap": {"tshark-has-no-length": 6},
    "seladb-PcapPlusPlus__tcp-reassembly.pcap": {"tshark-opens-samples": 1},
    "simsong-tcpflow__test5-lines-randomized.pcap": {"tshark-scales-by-one-syn": 1},
    "the-tcpdump-group-tcpdump__bigtcp-ipv6.pcap": {"tshark-knows-no-big-tcp": 1},
    "the-tcpdump-group-tcpdump__ipoib.pcap": {"tshark-scales-by-one-syn": 14},
    "the-tcpdump-group-tcpdump__sflow_expanded.pcap": {"tshark-opens-samples": 1},
    "the-tcpdump-group-tcpdump__timestamp_invalid_micro.pcap": {"times-out-of-range": 1},
    "the-tcpdump-group-tcpdump__timestamp_invalid_nano.pcap": {"times-out-of-range": 1},
    "zeek-zeek__cisco-fabric-path.pcap": {"tshark-has-no-length": 16},
    "zeek-zeek__fin_retransmission.pcap": {"tshark-scales-by-one-syn": 1},
    "zeek-zeek__gre-aruba.pcap": {"tshark-scales-by-one-syn": 2371},
    "zeek-zeek__ssh.client-side-half-duplex.pcap": {"tshark-scales-by-one-syn": 816},
}
"""For each file name and rule, the number of rows and columns that the rule explains."""
