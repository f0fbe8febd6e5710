"""Two thresholds of BSD stacks: bytes that trigger an immediate ACK, and queued bytes that are sent despite Nagle's algorithm."""

from __future__ import annotations

SUNOS_PERCENT, BSD44_PERCENT = 35, 50
"""Percentage of the receive buffer that triggers an immediate ACK (`tcp_output`), in SunOS 4.1 or 4.3BSD, and in 4.4BSD."""


def ack_bytes(full_bytes: int, window_bytes: int, percent: int) -> int:
    """Return how many received bytes trigger an immediate ACK: two full segments or a share of the receive buffer, whichever is less."""
    return min(2 * full_bytes, -(-window_bytes * percent // 100))


def hold_bytes(full_bytes: int, window_bytes: int) -> int:
    """Return how many queued bytes BSD sends despite Nagle's algorithm (RFC 1122, 4.2.3.4).

    This is a full segment or half of the largest window, whichever is less.
    """
    return min(full_bytes, window_bytes // 2)
