"""Words for segments that are too large for the path (`path_mtu` says when they are)."""

from __future__ import annotations

LOST_TO = "segments too large for the path, sent again and again"

MECHANISM = (
    "The same bytes were sent {sent} in segments of {lost_bytes}, and none of them was acknowledged; segments of up to {passed_bytes} "
    "were. A router that cannot forward a segment says so by ICMP; where that is dropped, the sender goes on (a path-MTU black hole)."
)

LIMITS = (
    "ICMP is not looked at, and where the path narrows cannot be seen. "
    "A path that broke just then looks alike until a smaller segment passes."
)

CURE = "ICMP let through, or a smaller MSS,"

REMEDY = (
    "let ICMP through (IPv4: fragmentation needed, type 3 code 4; IPv6: packet too big, type 2)",
    "clamp the MSS to the path at the router before a tunnel (nftables: tcp option maxseg size set rt mtu), or lower the interface's MTU",
    "let the sender probe (Linux: net.ipv4.tcp_mtu_probing=1; RFC 4821)",
)
