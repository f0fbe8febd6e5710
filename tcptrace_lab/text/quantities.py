"""Parses sizes, rates and times in command-line notation: 16K, 1.5M, 10ms."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from tcptrace_lab.errors import UsageError

_SIZES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
"""Sizes of buffers and messages use powers of two, as in the studies and in `setsockopt` calls."""

_RATES: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
"""Link rates use powers of ten (IEEE 802.3, ITU-T G.707)."""

_TIMES: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "": 10**9}

_QUANTITY: Final = re.compile(r"\s*(\d{1,15}(?:\.\d{1,12})?)\s*([^\d\s.]*)\s*", re.ASCII)


def size_bytes(text: str) -> int:
    """Return a size in bytes: 16K → 16384. The units K, M, G are powers of two, and a B can follow. Raises UsageError."""
    return _quantity(text, "size", {**_SIZES, **{f"{unit}B": scale for unit, scale in _SIZES.items()}}, "16K, 1M or 1460")


def rate_bps(text: str) -> int:
    """Return a rate in bits per second: 10M → 10,000,000.

    The units K, M, G are powers of ten, and b/s or bit/s can follow. Raises UsageError.
    """
    bare = re.sub(r"(b/s|bit/s|bps)\s*$", "", text)
    return _quantity(bare, "rate", {**_RATES, "k": 10**3}, "10M or 1.5G", shown=text)


def duration_ns(text: str) -> int:
    """Return a time in ns: 1.5ms → 1,500,000. The units are ns, us, ms and s; a number without unit is in seconds. Raises UsageError."""
    return _quantity(text, "time", _TIMES, "10ms, 250us or 2s")


def _quantity(text: str, what: str, units: dict[str, int], examples: str, *, shown: str | None = None) -> int:
    shown = text if shown is None else shown
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in units:
        raise UsageError(f"not a {what}: {shown!r}", remedy=f"write it as {examples}")
    value = Decimal(match[1]) * units[match[2]]
    if value != int(value):
        raise UsageError(f"not a whole number of its smallest unit: {shown!r}", remedy=f"write it as {examples}")
    return int(value)
