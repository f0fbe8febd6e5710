"""The promises on speed and memory are compared with the measurements of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import peers
import small_captures
from measure import Measured

Results: TypeAlias = Mapping[tuple[str, str], Measured]
"""Maps a kind of capture and a tool to its measurements. Tools that did not run are left out."""

MB: Final = 1_000_000
_SMALL: Final = ((small_captures.SMALL, peers.ANALYZE), (small_captures.SMALL, small_captures.TSHARK_CONVERSATIONS))
_BATCH: Final = ((small_captures.BATCH, small_captures.BATCH_TABLES), (small_captures.BATCH, small_captures.TSHARK_LOOP))
"""The keys of our measurement and of tshark's, on the captures of the repository."""


@dataclass(frozen=True)
class Verdict:
    """One promise: its text, its result, and whether it holds. `holds` is None if the promise was not measured."""

    promise: str
    measured: str
    holds: bool | None


def judge(results: Results, report_bytes: int | None) -> list[Verdict]:
    """Return all promises that a benchmark can judge, in the order of the design.

    Args:
        results: the measurements.
        report_bytes: size of the report on the mixed capture.
    """
    return [
        _faster(results, "table >= 3 x tcptrace -lr", peers.TCPTRACE, at_least=3),
        _faster(results, "table >= 100 x tshark, same fields", peers.TSHARK, at_least=100),
        _within(results, "table within 3 x of the bare walk", times=3),
        _analyze(results),
        _memory(results),
        _small_memory(results),
        _many_connections(results),
        _start(results, "--help <= 0.2 s", peers.HELP, limit_s=0.2),
        _start(results, "analyze of 1,000 packets <= 1.5 s", peers.ANALYZE, limit_s=1.5),
        _against_tshark(results, "small analyze <= 1.5 x tshark conv", _SMALL, most=1.5),
        _against_tshark(results, "batch <= 1/3 of tshark, all cores", _BATCH, most=1 / 3),
        _report(report_bytes),
    ]


def _compared(
    results: Results, promise: str, peer: str, figure: Callable[[float, float], float], holds: Callable[[float], bool]
) -> Verdict:
    """Judge the table as Python gets it, by wall time. The text also has the results for small frames and for the engine alone.

    `figure` computes the promised figure from our seconds and the peer's seconds.
    """
    frames, other = results.get(("mixed", peers.ENGINE_FRAMES)), results.get(("mixed", peer))
    if frames is None or other is None:
        return Verdict(promise, "", None)
    judged = figure(frames.wall_median_s, other.wall_median_s)
    others = {"small": results.get(("mixed", peers.ENGINE_SMALL)), "drained": results.get(("mixed", peers.ENGINE_DRAIN))}
    beside = (f", {called} {figure(found.wall_median_s, other.wall_median_s):.1f}" for called, found in others.items() if found)
    return Verdict(promise, f"{judged:.2f}{''.join(beside)}", holds(judged))


def _faster(results: Results, promise: str, peer: str, at_least: float) -> Verdict:
    return _compared(results, promise, peer, lambda ours_s, theirs_s: theirs_s / ours_s, lambda ratio: ratio >= at_least)


def _within(results: Results, promise: str, times: float) -> Verdict:
    return _compared(results, promise, peers.WALK, lambda ours_s, theirs_s: ours_s / theirs_s, lambda ratio: ratio <= times)


def _analyze(results: Results) -> Verdict:
    promise = "analyze <= tcptrace -lr"
    ours, theirs = results.get(("mixed", peers.ANALYZE)), results.get(("mixed", peers.TCPTRACE))
    if ours is None or theirs is None:
        return Verdict(promise, "", None)
    return Verdict(promise, f"{ours.wall_median_s:.2f} s, {theirs.wall_median_s:.2f} s", ours.wall_median_s <= theirs.wall_median_s)


def _memory(results: Results) -> Verdict:
    promise = "memory <= 1.5 GB"
    ours = [found for (_, tool), found in results.items() if tool in peers.OURS]
    if not ours:
        return Verdict(promise, "", None)
    worst = max(ours, key=lambda found: found.peak_max_bytes)
    where = f"{worst.command.tool.split(',')[0]} on {worst.command.capture}"
    broken = worst.peak_max_bytes > 1500 * MB
    everything = all((kind, tool) in results for kind in peers.KINDS for tool in peers.OURS)
    holds = False if broken else (True if everything else None)  # a promise about all captures needs measurements of all
    return Verdict(promise, f"{worst.peak_max_bytes / MB:,.0f} MB ({where})", holds)


def _small_memory(results: Results) -> Verdict:
    promise = "memory <= 300 MB for 100 MB"
    ours = [results.get((called, peers.ANALYZE)) for called in peers.HUNDRED_MB.values()]
    known = [found for found in ours if found is not None]
    if not known:
        return Verdict(promise, "", None)
    worst = max(known, key=lambda found: found.peak_max_bytes)
    broken = worst.peak_max_bytes > 300 * MB
    holds = False if broken else (True if len(known) == len(ours) else None)  # a promise about all captures needs measurements of all
    return Verdict(promise, f"{worst.peak_max_bytes / MB:,.0f} MB ({worst.command.capture})", holds)


def _many_connections(results: Results) -> Verdict:
    """Compare the rates without the start of the process, because the two captures differ in size."""
    promise = "1 M connections >= 0.5 x rate of 1"
    tool = peers.ENGINE_DRAIN
    many, one, start = (results.get((kind, tool)) for kind in ("short", "single", peers.START))
    if many is None or one is None or start is None:
        return Verdict(promise, "", None)
    many_rate, one_rate = (found.command.packets / max(found.wall_median_s - start.wall_median_s, 1e-6) for found in (many, one))
    share = many_rate / one_rate
    return Verdict(promise, f"{share:.2f} ({many_rate / 1e6:.1f} of {one_rate / 1e6:.1f} M/s)", share >= 0.5)  # noqa: PLR2004


def _start(results: Results, promise: str, tool: str, limit_s: float) -> Verdict:
    found = results.get((peers.START, tool))
    if found is None:
        return Verdict(promise, "", None)
    return Verdict(promise, f"{found.wall_median_s:.2f} s", found.wall_median_s <= limit_s)


def _against_tshark(results: Results, promise: str, both: tuple[tuple[str, str], tuple[str, str]], most: float) -> Verdict:
    ours, theirs = (results.get(one) for one in both)
    if ours is None or theirs is None:
        return Verdict(promise, "", None)
    ratio = ours.wall_median_s / theirs.wall_median_s
    return Verdict(promise, f"{ratio:.2f} ({ours.wall_median_s:.2f} s, {theirs.wall_median_s:.2f} s)", ratio <= most)


def _report(report_bytes: int | None) -> Verdict:
    promise = "report of 10 M packets <= 6 MB"
    if report_bytes is None:
        return Verdict(promise, "", None)
    return Verdict(promise, f"{report_bytes / MB:.1f} MB", report_bytes <= 6 * MB)
