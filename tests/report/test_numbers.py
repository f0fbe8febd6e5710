"""Numbers are formatted as people write them."""

from __future__ import annotations

import pytest

from tcptrace_lab.text import numbers


@pytest.mark.parametrize(
    ("value", "kind", "text", "exact"),
    [
        (None, "size", "\u2013", "unknown"),
        (0, "size", "0 B", "0 bytes"),
        (999, "size", "999 B", "999 bytes"),
        (1_460, "size", "1.46 kB", "1460 bytes"),
        (999_999, "size", "1 MB", "999999 bytes"),
        (123_456_789_012, "size", "123 GB", "123456789012 bytes"),
        (0, "duration", "0 s", "0.000000000 s"),
        (850, "duration", "850 ns", "0.000000850 s"),
        (40_123_456, "duration", "40.1 ms", "0.040123456 s"),
        (-1_500_000_000, "duration", "-1.5 s", "-1.500000000 s"),
        (599_000_000_000, "duration", "599 s", "599.000000000 s"),
        (754_000_000_000, "duration", "12 min 34 s", "754.000000000 s"),
        (7_261_000_000_000, "duration", "2 h 1 min", "7261.000000000 s"),
        (8_500_000, "rate", "8.5 Mb/s", "8500000 b/s"),
        (442_000, "rate", "442 kb/s", "442000 b/s"),
        (1_234_567, "count", "1,234,567", "1234567"),
        (999, "count", "999", ""),
        ("10.0.0.1:80", "text", "10.0.0.1:80", ""),
    ],
)
def test_values_are_said_short_and_kept_exact(value: object, kind: str, text: str, exact: str) -> None:
    assert numbers.formatted(value, kind) == (text, exact)


def test_times_keep_all_nine_digits() -> None:
    assert numbers.utc(1_700_000_000_123_456_789) == "2023-11-14 22:13:20.123456789 UTC"
    assert numbers.utc(-1) == "1969-12-31 23:59:59.999999999 UTC"


def test_a_damaged_time_is_said_instead_of_failing() -> None:
    assert numbers.utc(2**63 - 1).startswith("2262-04-11")
    assert numbers.utc(-(2**63)).startswith("1677-09-21")
