"""Capture quality: how far a capture can be trusted.

A fault is, for example, a clock that jumped, or packets that the kernel dropped. Each fault has a factor between 0 and 1: the share of a
verdict's confidence that remains. The factors of several faults are multiplied. The factor of a fault of single connections is weighted by
the bytes of these connections. Poor quality lowers the confidence of all findings (`steps_down`).

The factors are judgements, not measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab._core import CaptureInfo

GOOD, LIMITED = 0.8, 0.5
"""Minimum factors for good and for limited capture quality."""

COARSE_NS = 1_000_000
"""A clock with ticks of 1 ms or more cannot show delays within a host or a LAN, which are below 1 ms (docs/how-it-decides.md, 2.2)."""

JITTER_NS = 10_000
"""A timestamp that runs backwards by at most 10 µs does no harm (a heuristic). A host needs up to 10 µs for one packet, and the clocks of
its processors differ by some microseconds."""

CLOCK_JUMP = "clock_jump"
"""Fault: a connection contains a silence of impossible length."""

BACKWARD = "backward_timestamps"
"""Fault: timestamps run backwards by more than `JITTER_NS`."""

FEW = 0.001
"""If at most this share of the packets or bytes is missing from a capture, nearly all verdicts equal those of a complete capture."""
MANY = 0.01
"""If more than this share of the packets is missing from a capture, most longer connections are affected."""

DEFAULT_MSS_BYTES = 1460
"""Segment size (Ethernet) for the conversion of missing bytes to segments, if no full segment size is known."""


CAUSES: Mapping[str, str] = {
    "one_direction": "only one direction was captured",
    "start_missing": "the start of the connection is missing from the capture",
    "not_captured": "a few bytes of the connection are missing from the capture",
    "much_not_captured": "many bytes of the connection are missing from the capture",
    "acks_missing": "ACKs are missing from the capture: more bytes were in flight than the receiver's window ever allowed",
    CLOCK_JUMP: "the clock jumped: the connection contains a silence of more than 24 days",
    "reordered": "the capture has segments after the ACKs that cover them",
    "duplicated": "the capture contains segments twice",
    "offload": "the network card merged segments, or had not split them yet (offload)",
}
"""Fault of a connection's capture (`schema.CAPTURE_FAULTS`) → description. The engine finds the faults and determines their factors."""


def has_jumped() -> pl.Expr:
    """Return whether a connection in `schema.CONNECTIONS` has a silence of impossible length, which makes its times meaningless."""
    return pl.col("quality_reasons").list.contains(CLOCK_JUMP)


class Reason(NamedTuple):
    """One fault of a capture: its name, its factor, and its description. The factor of a harmless fact is 1."""

    name: str
    factor: float
    words: str


@dataclass(frozen=True, slots=True)
class CaptureQuality:
    """The quality of a capture.

    Attributes:
        factor_of_capture: factor of the faults that affect the whole capture, between 0 and 1.
        factor_of_connections: factor of the faults of single connections, averaged over the connections by bytes.
        reasons: the faults, and harmless facts worth stating.
        counts: counts by name: `drops_suspected` (segments that were ACKed but are missing from the capture), `duplicates`,
            `late_segments`, `super_segments`, `one_direction`, `start_missing`, `acks_missing`, `clock_jump` (connections).
    """

    factor_of_capture: float
    factor_of_connections: float
    reasons: tuple[Reason, ...]
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def factor(self) -> float:
        """The product of `factor_of_capture` and `factor_of_connections`."""
        return self.factor_of_capture * self.factor_of_connections

    @property
    def rating(self) -> str:
        """`good`, `limited` or `poor`."""
        return "good" if self.factor >= GOOD else "limited" if self.factor >= LIMITED else "poor"

    @property
    def words(self) -> str:
        """The quality as one line of text."""
        return _line(self.rating, {reason.name: reason.words for reason in self.reasons})

    def to_dict(self, info: CaptureInfo) -> dict[str, Any]:
        """Return the object `capture.quality` of the JSON."""
        return {
            "rating": self.rating,
            "factor": round(self.factor, 3),
            "reasons": [{"name": reason.name, "factor": reason.factor, "text": reason.words} for reason in self.reasons],
            "drops_suspected": self.counts["drops_suspected"],
            "kernel_drops": info["kernel_drops"],
            "capture_duplicates": self.counts["duplicates"],
            "offload": self.counts["super_segments"] > 0,
            "late_segments": self.counts["late_segments"],
            "one_direction_connections": self.counts["one_direction"],
            "start_missing_connections": self.counts["start_missing"],
            "truncated_packets": info["truncated_packets"],
            "backward_timestamps": info["backward_timestamps"],
            "resolution_ns": info["resolution_ns"],
        }


EMPTY, IN_PART = "empty", "read_in_part"


def line(quality: Mapping[str, Any]) -> str:
    """Return the object `capture.quality` of the JSON as one line of text."""
    return _line(quality["rating"], {reason["name"]: reason["text"] for reason in quality["reasons"]})


def _line(rating: str, words: Mapping[str, str]) -> str:
    if EMPTY in words:
        return f"capture quality: {words[EMPTY]}"
    head = f"capture quality{' of the part that was read' if IN_PART in words else ''}: {rating}"
    return head + ("; " + "; ".join(words.values()) if words else "")


def steps_down(factor: float) -> int:
    """Return by how many steps a factor lowers the confidence of a finding. The steps are proved → consistent → possible."""
    return 0 if factor >= GOOD else 1 if factor >= LIMITED else 2


def judge(info: CaptureInfo, connections: pl.LazyFrame, *, complete: bool) -> CaptureQuality:
    """Judge the quality of a capture.

    Args:
        info: facts about the capture from the engine.
        connections: all rows of `schema.CONNECTIONS` of the capture.
        complete: whether all of the capture could be read.
    """
    counts = _counted(connections)
    weight, believed, mean = (counts.pop(name) for name in ("weight", "believed", "mean"))
    own = believed / weight if weight else 1.0 if mean is None else mean
    reasons = [*_of_capture(info, complete=complete), *_of_connections(counts, info["connections"]), *_of_pauses(info, connections)]
    whole = math.prod(reason.factor for reason in reasons)
    return CaptureQuality(whole, own, tuple(reasons), {name: int(count) for name, count in counts.items()})


def _counted(connections: pl.LazyFrame) -> dict[str, Any]:
    return connections.select(**_counts()).collect().row(0, named=True)


@cache
def _counts() -> Mapping[str, pl.Expr]:
    def both(name: str) -> pl.Expr:
        client, server = (pl.col(f"{side}_{name}") for side in SIDES)
        return client + server

    weight, full = both("payload_bytes"), pl.col("client_full_segment_bytes").fill_null(DEFAULT_MSS_BYTES)
    reasons = pl.col("quality_reasons").list
    return {
        "weight": weight.sum().cast(pl.Float64),
        "believed": (weight * pl.col("quality_factor")).sum(),
        "mean": pl.col("quality_factor").mean(),
        "drops_suspected": ((both("not_captured_bytes") + full - 1) // full).sum(),
        "duplicates": both("capture_duplicates").sum(),
        "late_segments": both("late_segments").sum(),
        "super_segments": both("super_segments").sum(),
        **{name: reasons.contains(name).sum() for name in ("one_direction", "start_missing", "acks_missing", CLOCK_JUMP)},
    }


def _of_capture(info: CaptureInfo, *, complete: bool) -> list[Reason]:
    found = []
    if not info["packets"]:
        found.append(Reason(EMPTY, 0.0, "no packets"))
    packets = max(info["packets"], 1)
    if info["kernel_drops"]:
        share = info["kernel_drops"] / (packets + info["kernel_drops"])
        factor = 0.9 if share <= FEW else 0.7 if share <= MANY else 0.4
        found.append(Reason("kernel_drops", factor, f"{numbers.counted(info['kernel_drops'], 'packet')} dropped during capture"))
    if info["first_ts_ns"] is None and info["packets"]:
        found.append(Reason("no_times", 0.1, "no timestamps"))
    elif info["resolution_ns"] >= COARSE_NS:
        found.append(Reason("coarse_clock", 0.7, f"timestamp resolution {numbers.duration(info['resolution_ns'])}"))
    if backward := info["backward_timestamps"]:
        harmless, back_ns = info["largest_step_back_ns"] <= JITTER_NS, info["largest_step_back_ns"]
        factor = 1.0 if harmless else 0.9 if backward <= FEW * packets else 0.7
        times = f"{numbers.counted(backward, 'timestamp')} {'runs' if backward == 1 else 'run'}"
        name = "clock_jitter" if harmless else BACKWARD
        found.append(Reason(name, factor, f"{times} backwards by at most {numbers.duration(back_ns)}"))
    if truncated := info["truncated_packets"]:
        words = f"{numbers.counted(truncated, 'packet')} truncated by snaplen{' (headers complete)' if complete else ''}"
        found.append(Reason("snaplen", 1.0, words))
    if not complete:
        found.append(Reason(IN_PART, 0.8, "the file could not be read completely"))
    return found


LONGEST_PAUSE_NS = 24 * 86_400 * 10**9
"""Longest possible silence within a connection: 24 days (RFC 7323, 5.5). A longer pause between connections suggests joined captures."""


def _of_pauses(info: CaptureInfo, connections: pl.LazyFrame) -> list[Reason]:
    """Report a pause between connections that is so long that several captures were probably joined."""
    first_ns, last_ns = info["first_ts_ns"], info["last_ts_ns"]
    if first_ns is None or last_ns is None or last_ns - first_ns <= LONGEST_PAUSE_NS:
        return []
    pauses = pl.col("first_ts_ns") - pl.col("last_ts_ns").cum_max().shift(1)
    pause_ns = connections.select("first_ts_ns", "last_ts_ns").drop_nulls().sort("first_ts_ns").select(pauses.max()).collect().item()
    if pause_ns is None or pause_ns <= LONGEST_PAUSE_NS:
        return []
    return [Reason("joined", 1.0, f"a pause of {numbers.duration(pause_ns)} between connections: probably several captures joined")]


_JUMP = "a silence of more than 24 days: the clock jumped"


def _of_connections(counts: Mapping[str, int], connections: int) -> list[Reason]:
    """Return the faults of single connections, each with the factor 1, because `factor_of_connections` already contains their effect."""
    words = (
        (
            "drops_suspected",
            "segment",
            "was ACKed but is missing from the capture (estimate)",
            "were ACKed but are missing from the capture (estimate)",
        ),
        (
            "acks_missing",
            "connection",
            f"of {connections:,} lacks ACKs: more data is in flight than the window allows",
            f"of {connections:,} lack ACKs: more data is in flight than the window allows",
        ),
        ("duplicates", "captured segment", "is a copy of another", "are copies of others"),
        ("late_segments", "segment", "was captured after its ACK", "were captured after their ACKs"),
        ("super_segments", "segment", "is longer than the MSS (offload)", "are longer than the MSS (offload)"),
        (CLOCK_JUMP, "connection", f"of {connections:,} contains {_JUMP}", f"of {connections:,} contain {_JUMP}"),
        ("one_direction", "connection", f"of {connections:,} has one direction only", f"of {connections:,} have one direction only"),
        ("start_missing", "connection", f"of {connections:,} lacks its start", f"of {connections:,} lack their start"),
    )
    return [
        Reason(name, 1.0, f"{numbers.counted(counts[name], thing)} {one if counts[name] == 1 else several}")
        for name, thing, one, several in words
        if counts[name]
    ]
