"""How many bytes let an ACK go at once, and how many a sender does not hold back."""

from __future__ import annotations

SUNOS_PERCENT, BSD44_PERCENT = 35, 50
"""Share of the receive buffer that lets an ACK go at once: SunOS 4.1 and 4.3BSD, 4.4BSD (`tcp_output`)."""


def ack_bytes(full_bytes: int, window_bytes: int, percent: int) -> int:
    """A: bytes that let an ACK go at once, two full segments or a share of the receive buffer."""
    return min(2 * full_bytes, -(-window_bytes * percent // 100))


def hold_bytes(full_bytes: int, window_bytes: int) -> int:
    """H: bytes that a BSD sender does not hold back, a full segment or half of the largest window (RFC 1122, 4.2.3.4)."""
    return min(full_bytes, window_bytes // 2)
