"""Draws the figures of a finding: the figure that shows its cause best, and a time-sequence graph around its evidence frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tcptrace_lab.report.figures import congestion, downsampling, finding_plots, plots, series, words
from tcptrace_lab.report.parts import lost_time
from tcptrace_lab.schema import CAUSES, SIDES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcptrace_lab.engine.figures import Band, Direction
    from tcptrace_lab.report.data_types import Look, Zoom
    from tcptrace_lab.report.figures.finding_windows import Kept, Place, Window

_BESIDE = 0.02
"""Share of the figure's width that is empty on each side."""

_CLOCK_DECIMALS = 9

_LINE_POINTS = 600
"""Maximum number of points of a line over the whole connection. Further down, the page has figures of the connection with more points."""

_KEYS = {from_client: side for side, from_client in SIDES.items()}


def zooms(
    ids: Sequence[str], windows: Sequence[Window | None], wholes: Mapping[tuple[int, bool], series.Whole], resolution_ns: int
) -> list[Zoom | None]:
    """Return the figures of findings whose windows have collected their rows; None for a finding without rows.

    Args:
        ids: ids of the findings.
        windows: one per finding, in order; None for a finding without a place.
        wholes: (`conn`, `from_client`) → the direction, for directions that have figures.
        resolution_ns: resolution of the capture's clock.
    """
    kept = [None if window is None else window.finish() for window in windows]
    return [
        None
        if window is None or one is None
        else _zoom(finding_id, window.place, one, wholes.get((window.place.conn, window.place.from_client)), resolution_ns)
        for finding_id, window, one in zip(ids, windows, kept, strict=True)
    ]


def _bands(place: Place, kept: Kept) -> list[Band]:
    """Return the waits in the shown time range. Consecutive waits with the same cause are one band."""
    from_ns, to_ns = place.first_ts_ns + kept.from_ns, place.first_ts_ns + kept.to_ns
    return [
        {"start_ns": max(start, from_ns) - place.first_ts_ns, "end_ns": min(end, to_ns) - place.first_ts_ns, "cause": cause}
        for start, end, cause in lost_time.joined(kept.waits)
    ]


def _zoom(finding_id: str, place: Place, kept: Kept, whole: series.Whole | None, resolution_ns: int) -> Zoom:
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
        "text": words.figure(figure),
        "look": _LOOKS[finding_id](_Shown(place, kept, direction, frame), whole) if finding_id in _LOOKS else None,
    }


class _Shown(NamedTuple):
    """The contents of a finding's figures: the place, the rows around the place, the series of these rows, and the time axis."""

    place: Place
    kept: Kept
    direction: Direction
    frame: plots.Frame


def _flight(shown: _Shown, _whole: series.Whole | None) -> Look:
    """Draw the bytes in flight and the receive window around the place."""
    place, kept, direction, frame = shown
    figure = plots.flight(direction.lines, frame)
    figure["layout"]["xaxis"]["range"] = _range(kept)
    figure["layout"]["shapes"] = [plots.shade(band) for band in _bands(place, kept) if band["cause"] in place.causes]
    return _look(
        "flight",
        "Bytes in flight against the window",
        "Data sent and not yet ACKed, and the window offered at that time. Shaded: the waits of this finding.",
        figure,
    )


def _congestion(shown: _Shown, whole: series.Whole | None) -> Look:
    """Draw the bytes in flight over the whole connection, with the congestion window and the slow-start threshold."""
    if whole is None:
        return _flight(shown, whole)
    lines = whole.direction.lines
    reduced = {name: downsampling.line(lines[name], "t_ns", "y", _LINE_POINTS) for name in ("flight", "offered")}
    estimated = congestion.estimate(whole.direction) if whole.is_at_sender else None
    figure = plots.flight(reduced, plots.Frame(whole.duration_ns, shown.frame.resolution_ns), estimated)
    note = (
        congestion.MEANING
        if whole.is_at_sender
        else "The congestion window is not estimated, because the capture was not made at the sender."
    )
    return _look("flight", "Bytes in flight over the whole connection", note, figure)


def _queue(shown: _Shown, whole: series.Whole | None) -> Look:
    """Draw the RTT against the bytes in flight."""
    direction = shown.direction if whole is None else whole.direction
    return _look(
        "rtt-flight",
        "Round-trip time against bytes in flight",
        "Each dot is an RTT sample. Without a queue, dots stay at the smallest RTT; in a queue, the RTT rises with the bytes in flight.",
        finding_plots.rtt_against_flight(direction),
    )


def _ladder(shown: _Shown, _whole: series.Whole | None) -> Look:
    """Draw the segments around the place as a ladder."""
    place, kept, _, frame = shown
    rows = finding_plots.ladder_rows(kept.rows, place.first_frame)
    figure = finding_plots.ladder(rows, _bands(place, kept), frozenset(place.frames), place.causes, frame)
    note = "One arrow per segment, in order of time, as captured. Between arrows: the waits of this finding. Rings: frames that prove it."
    return {**_look("ladder", "The exchange", note, figure), "text": words.ladder(figure)}


def _writes(shown: _Shown, _whole: series.Whole | None) -> Look:
    """Draw the writes of the application over time."""
    place, kept, _, frame = shown
    pauses = [band for band in _bands(place, kept) if band["cause"] in {*place.causes, "idle"}]
    figure = finding_plots.writes(kept.rows.filter(kept.rows["t_ns"].is_between(kept.from_ns, kept.to_ns)), pauses, frame)
    if figure["data"]:
        figure["layout"]["xaxis"]["range"] = _range(kept)
    note = "Each stem is the new data between two pauses of the application, at the time of its first segment. Shaded: its pauses."
    return _look("writes", "Writes over time", note, figure)


def _look(key: str, title: str, note: str, figure: plots.Figure) -> Look:
    return {"key": key, "title": title, "note": note, "text": words.figure(figure), "figure": figure}


_LOOKS: dict[str, Callable[[_Shown, series.Whole | None], Look]] = {
    "loss": _congestion,
    "timeout": _congestion,
    "slow-start-limited": _congestion,
    "bufferbloat": _queue,
    "receiver-window-limited": _flight,
    "zero-window": _flight,
    "send-buffer-limited": _flight,
    "nagle-delayed-ack": _ladder,
    "delayed-ack": _ladder,
    "throughput-deadlock": _ladder,
    "application-limited": _writes,
}
"""Finding id → the figure that shows its cause best. The causes of all other findings are visible in the time-sequence graph."""


def _times(kept: Kept) -> str:
    """Return the time range as `2,260.296 s to 2,260.404 s`, with enough digits to resolve a hundredth of its length."""
    width_s = max(kept.to_ns - kept.from_ns, 1) / NS_PER_S
    decimals = min(max(2 - math.floor(math.log10(width_s)), 0), _CLOCK_DECIMALS)
    return " to ".join(f"{time_ns / NS_PER_S:,.{decimals}f} s" for time_ns in (kept.from_ns, kept.to_ns))


def _range(kept: Kept) -> list[float]:
    beside_ns = max(kept.to_ns - kept.from_ns, 1000) * _BESIDE
    return [(kept.from_ns - beside_ns) / NS_PER_S, (kept.to_ns + beside_ns) / NS_PER_S]
