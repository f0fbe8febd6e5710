"""Functions by which stacks round an MSS and a buffer size before using them."""

from __future__ import annotations

BSD44_CLUSTER_BYTES = 2048
"""Bytes of an mbuf cluster, 4.4BSD (MCLBYTES, sys/mbuf.h)."""


def same(size_bytes: int, _mss_bytes: int) -> int:
    """Return the size unchanged."""
    return size_bytes


def clusters(size_bytes: int, _mss_bytes: int) -> int:
    """Round an MSS larger than a cluster down to whole clusters (4.4BSD, `tcp_mss`)."""
    return size_bytes if size_bytes < BSD44_CLUSTER_BYTES else size_bytes // BSD44_CLUSTER_BYTES * BSD44_CLUSTER_BYTES


def segments_up(size_bytes: int, mss_bytes: int) -> int:
    """Round a buffer of at least one segment up to whole segments (4.4BSD, `tcp_mss`)."""
    return size_bytes if size_bytes < mss_bytes else -(-size_bytes // mss_bytes) * mss_bytes


def segments_down(size_bytes: int, mss_bytes: int) -> int:
    """Round a buffer of at least one segment down to whole segments (IRIX 6.2, observed by Law, 1998)."""
    return size_bytes if size_bytes < mss_bytes else size_bytes // mss_bytes * mss_bytes
