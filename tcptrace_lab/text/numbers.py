"""Numbers formatted for people: ms, kB, Mb/s. Each value has a short form and an exact form.

All prefixes are decimal: 1 kB is 1,000 bytes, so 1 MB/s is 8 Mb/s. An unknown value is shown as a dash, never as 0.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN = "\u2013"
"""A dash, for unknown values."""

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
_LONG_UNITS = (
    (172_800, 86_400, "d", 3_600, "h"),
    (3_600, 3_600, "h", 60, "min"),
    (0, 60, "min", 1, "s"),
)
"""Units of long durations. A row has the minimum duration in seconds, and two units, each with its length in seconds and its name."""
_LONG_SECONDS = 600
"""Minimum duration that is shown in two units: ten minutes."""

_PREFIXES = ("", "k", "M", "G", "T")
_THOUSAND = 1000
_SIGNIFICANT = 3
_WHOLE_PERCENT = 0.0995
"""Minimum share that is shown as a whole percentage."""


def _short(value: float) -> str:
    """Return three significant digits without exponent and trailing zeros: 1.46, 12.3, 123, 0.5."""
    if value == 0:
        return "0"
    decimals = max(_SIGNIFICANT - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _prefixed(value: float, unit: str) -> str:
    """Return `value` with the decimal prefix that leaves one to three digits before the point."""
    step = 0
    while step < len(_PREFIXES) - 1 and abs(float(f"{value:.{_SIGNIFICANT}g}")) >= _THOUSAND:
        value /= _THOUSAND
        step += 1
    return f"{_short(value)} {_PREFIXES[step]}{unit}"


def count(value: int | None) -> str:
    """Return a count as text: 1234567 → 1,234,567."""
    return UNKNOWN if value is None else f"{value:,}"


def size(value_bytes: int | None) -> str:
    """Return a size as text: 1460 → 1.46 kB."""
    return UNKNOWN if value_bytes is None else _prefixed(value_bytes, "B")


def rate(value_bps: float | None) -> str:
    """Return bits per second as text: 8_500_000 → 8.5 Mb/s."""
    return UNKNOWN if value_bps is None else _prefixed(value_bps, "b/s")


def share(value: float | None) -> str:
    """Return a share in percent: 0.661 → 66%. Small shares keep one decimal: 0.012 → 1.2%."""
    if value is None:
        return UNKNOWN
    return f"{value:.0%}" if value >= _WHOLE_PERCENT else f"{value:.1%}"


def duration(value_ns: int | None) -> str:
    """Return a duration in ns as text: 40_123_456 → 40.1 ms."""
    if value_ns is None:
        return UNKNOWN
    if value_ns == 0:
        return "0 s"
    magnitude_ns = abs(value_ns)
    for unit, unit_ns in (("s", NS_PER_S), ("ms", NS_PER_MS), ("µs", 1_000)):
        if magnitude_ns >= unit_ns:
            if unit == "s" and magnitude_ns >= _LONG_SECONDS * NS_PER_S:
                return _long_duration(value_ns)
            return f"{_short(value_ns / unit_ns)} {unit}"
    return f"{value_ns} ns"


def duration_s(value_s: float) -> str:
    """Return a duration in seconds as text: 0.25 → 250 ms."""
    return duration(round(value_s * NS_PER_S))


def _long_duration(value_ns: int) -> str:
    """Return a duration in two units: 1 h 20 min. The second unit is left out if it is zero."""
    seconds = round(abs(value_ns) / NS_PER_S)
    _, scale, first, small, second = next(units for units in _LONG_UNITS if seconds >= units[0])
    rest = seconds % scale // small
    return f"{'-' if value_ns < 0 else ''}{seconds // scale:,} {first}{f' {rest} {second}' if rest else ''}"


def exact_seconds(value_ns: int | None) -> str:
    """Return nanoseconds as seconds with all nine decimals, without rounding: 1_500_000_000 → 1.500000000."""
    if value_ns is None:
        return UNKNOWN
    seconds, fraction = divmod(abs(value_ns), NS_PER_S)
    return f"{'-' if value_ns < 0 else ''}{seconds}.{fraction:09d}"


def utc(value_ns: int | None) -> str:
    """Return nanoseconds since 1970 as text: 2024-01-31 12:00:00.123456789 UTC."""
    if value_ns is None:
        return UNKNOWN
    seconds, fraction = divmod(value_ns, NS_PER_S)
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError:  # the timestamp is damaged, or lies beyond the year 9999
        return f"{exact_seconds(value_ns)} s after 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{fraction:09d} UTC"


def formatted(value: Any, kind: str) -> tuple[str, str]:  # noqa: ANN401  (`kind` determines the type)
    """Return the short form of a value, and its exact form for a tooltip. The exact form is empty if the short form is exact.

    The exact form starts with the number without thousands separators, so that a table can be sorted by it.
    """
    if value is None:
        return UNKNOWN, "unknown"
    short, exact = _FORMATS[kind](value) if kind in _FORMATS else (str(value), "")
    return short, "" if exact == short else exact


_FORMATS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "size": lambda value: (size(value), f"{value} bytes"),
    "bytes": lambda value: (f"{value:,} B", f"{value} bytes"),
    "duration": lambda value: (duration(value), f"{exact_seconds(value)} s"),
    "offset": lambda value: (duration(value), f"{exact_seconds(value)} s after the first packet"),
    "rate": lambda value: (rate(value), f"{value:.0f} b/s"),
    "count": lambda value: (count(value), f"{value}"),
    "ratio": lambda value: (_short(value), f"{value}"),
    "utc": lambda value: (utc(value), f"{exact_seconds(value)} s since 1970"),
}
"""Kind of value → function that returns its short and exact form. A value of any other kind is text."""


def counted(count: int, thing: str) -> str:
    """Return a count with its noun: `1 packet`, `1,200 packets`."""
    return f"{count:,} {thing}{'' if abs(count) == 1 else 's'}"


def times(count: int) -> str:
    """Return a count in words: `once`, `twice`, `3 times`, `1,200 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")
