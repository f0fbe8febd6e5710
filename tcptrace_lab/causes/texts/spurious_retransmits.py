"""Texts for spurious retransmits: the sender retransmitted segments that had arrived."""

from __future__ import annotations

from typing import Final

FINDING: Final = "spurious-retransmission"

CURE: Final = "a path that does not reorder segments or delay ACKs"

REFUTED_BY: Final = "ACKs of the retransmitted data that the receiver sent only after the retransmit had arrived"

LIMITS: Final = "A capture at one point does not show whether the segments or their ACKs were late, or where on the path."

REMEDY: Final = (
    "find what reorders packets or delays ACKs: per-packet load balancing, parallel queues, wireless, a stalled host, delayed ACKs",
    "let the sender wait longer before it retransmits: RACK (RFC 8985), or on Linux a higher net.ipv4.tcp_reordering",
    "enable timestamps and SACK at both ends, so that the sender can detect and undo spurious retransmits (RFC 3522, RFC 2883)",
)
