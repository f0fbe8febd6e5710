"""The figure of a finding: a time-sequence graph around its evidence frames, with every segment, and the cause of each wait."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcptrace_lab.report.figures import plots, series
from tcptrace_lab.report.parts import lost_time
from tcptrace_lab.schema import CAUSES, SIDES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.report.data_types import Band, Zoom
    from tcptrace_lab.report.figures.finding_windows import Kept, Place, Window

_BESIDE = 0.02
"""Share of the width that is left free on each side."""

_CLOCK_DECIMALS = 9

_KEYS = {from_client: side for side, from_client in SIDES.items()}


def zooms(windows: Sequence[Window | None], resolution_ns: int) -> list[Zoom | None]:
    """The figures of windows that have collected their rows; None for a finding without rows.

    Args:
        windows: one per finding, in order; None for a finding without a place.
        resolution_ns: resolution of the capture's clock.
    """
    kept = [None if window is None else window.finish() for window in windows]
    return [
        None if window is None or one is None else _zoom(window.place, one, resolution_ns)
        for window, one in zip(windows, kept, strict=True)
    ]


def _bands(place: Place, kept: Kept) -> list[Band]:
    """The waits in the shown time range. Consecutive waits with one cause are one band."""
    from_ns, to_ns = place.first_ts_ns + kept.from_ns, place.first_ts_ns + kept.to_ns
    return [
        {"start_ns": max(start, from_ns) - place.first_ts_ns, "end_ns": min(end, to_ns) - place.first_ts_ns, "cause": cause}
        for start, end, cause in lost_time.joined(kept.waits)
    ]


def _zoom(place: Place, kept: Kept, resolution_ns: int) -> Zoom:
    bands = _bands(place, kept)
    direction = series.of_rows(kept.rows, from_client=place.from_client)
    shown = kept.rows.filter(kept.rows["t_ns"].is_between(kept.from_ns, kept.to_ns))
    frames = frozenset(place.frames)
    proving = shown[[row for row, number in enumerate(shown["frame"].to_list()) if number in frames]]
    frame = plots.Frame(kept.to_ns, resolution_ns)
    figure = plots.time_sequence(direction, frame, bands)
    rings = plots.rings(proving, frame)
    figure["data"].append(rings)
    figure["layout"]["shapes"] += [plots.shade(band) for band in bands if band["cause"] in place.causes]
    figure["layout"]["xaxis"]["range"] = _range(kept)
    ends = {place.first_frame, place.last_frame}
    named = zip(proving["frame"], rings["x"], rings["y"], strict=True)
    figure["layout"]["annotations"] = [plots.named_frame(*one) for one in named if one[0] in ends]
    seen = {band["cause"] for band in bands}
    return {
        "conn": place.conn,
        "side": _KEYS[place.from_client],
        "from_ns": kept.from_ns,
        "to_ns": kept.to_ns,
        "times": _times(kept),
        "segments": shown.height,
        "first_frame": shown.item(0, "frame"),
        "last_frame": shown.item(-1, "frame"),
        "proving": proving.height,
        "elsewhere": len(place.frames) - proving.height,
        "omitted": kept.omitted,
        "causes": [{"cause": cause, "means": CAUSES[cause]} for cause in CAUSES if cause in seen],
        "shaded": sorted(seen & place.causes),
        "figure": figure,
    }


def _times(kept: Kept) -> str:
    """The time range as `2,260.296 s to 2,260.404 s`, with enough digits to resolve a hundredth of its length."""
    width_s = max(kept.to_ns - kept.from_ns, 1) / NS_PER_S
    decimals = min(max(2 - math.floor(math.log10(width_s)), 0), _CLOCK_DECIMALS)
    return " to ".join(f"{time_ns / NS_PER_S:,.{decimals}f} s" for time_ns in (kept.from_ns, kept.to_ns))


def _range(kept: Kept) -> list[float]:
    beside_ns = max(kept.to_ns - kept.from_ns, 1000) * _BESIDE
    return [(kept.from_ns - beside_ns) / NS_PER_S, (kept.to_ns + beside_ns) / NS_PER_S]
