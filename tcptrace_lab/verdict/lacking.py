"""Describes what a capture lacks to show a cause, and how to make a better capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping


def what(row: Mapping[str, Any], *, from_client: bool) -> str:
    """Return what the capture lacks about one direction of the connection in `row`; empty if no lack is known."""
    reasons = row["quality_reasons"] or ()
    missing = row[f"{'client' if from_client else 'server'}_not_captured_bytes"]
    if row["clock_tick_ns"] is not None:
        return f"the capture's clock ticks only every {numbers.duration(row['clock_tick_ns'])}: capture with a finer clock"
    if "one_direction" in reasons:
        return f"the capture has only one direction of the connection: capture both{', from its start' if start(row) else ''}"
    if "much_not_captured" in reasons and missing:
        return f"{numbers.size(missing)} of this direction are missing from the capture: capture without drops"
    return ""


def start(row: Mapping[str, Any]) -> str:
    """Return advice for a capture that begins within the connection; else empty. Such a capture does not show window scale, MSS and RTT."""
    return "start the capture before the connection opens" if "start_missing" in (row["quality_reasons"] or ()) else ""
