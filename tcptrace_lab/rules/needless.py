"""What is said wherever segments were sent again although nothing was lost."""

from __future__ import annotations

from typing import Final

FINDING: Final = "spurious-retransmission"

CURE: Final = "a path that keeps segments in order and ACKs in time"

REFUTED_BY: Final = "ACKs that covered what was sent again only after it had come again"

LIMITS: Final = "Whether the segments or their ACKs were late, and where, cannot be seen from one point."

REMEDY: Final = (
    "find what overtakes or delays: several links used packet by packet, parallel queues, wireless, a host that stood still",
    "let the sender wait longer before it resends: RACK (RFC 8985), or in Linux a higher net.ipv4.tcp_reordering",
    "keep timestamps and SACK on at both ends, so that it sees its mistake and takes it back (RFC 3522, RFC 2883)",
)
