"""Texts for a sender whose segments are too large for the path. `findings.path_mtu` detects such segments."""

from __future__ import annotations

LOST_TO = "retransmitting segments that are too large for the path"

MECHANISM = (
    "The sender sent the same bytes {sent} in segments of {lost_bytes}, and none of these segments was ACKed. Segments of up to "
    "{passed_bytes} were ACKed. A router that cannot forward a segment because of its size reports this to the sender by ICMP. If the "
    "ICMP message is dropped, the sender keeps retransmitting (a path-MTU black hole)."
)

LIMITS = (
    "This analysis does not read ICMP, and the capture does not show which hop has the small MTU. A path that failed during these "
    "retransmits looks the same until a smaller segment passes."
)

CURE = "letting ICMP through, or a smaller MSS,"

REMEDY = (
    "let ICMP through (IPv4: fragmentation needed, type 3 code 4; IPv6: packet too big, type 2)",
    (
        "clamp the MSS to the path MTU at the router before a tunnel (nftables: tcp option maxseg size set rt mtu), or lower the "
        "interface's MTU"
    ),
    "let the sender probe the path MTU (Linux: net.ipv4.tcp_mtu_probing=1; RFC 4821)",
)
