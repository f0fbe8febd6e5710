"""Compares an original transfer with its replays: durations, causes and findings. The comparison also answers two questions.

- Is the stall reproduced? Yes, if the stall lasts as long in the unchanged replay as in the original. The durations can differ by the share
  `REPRODUCED_WITHIN`.
- Do the changes fix the stall? Yes, if at most the share `FIXED_LEFT` of the stall's time remains.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.analysis import analyze
from tcptrace_lab.errors import CaptureInsufficient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.replay.evidence import Evidence

SCHEMA_VERSION: Final = 2
REPRODUCED_WITHIN: Final = 0.10
FIXED_LEFT: Final = 0.20
MIN_SHARE: Final = 0.05
"""A family of causes with a smaller share of the transfer's duration is not a stall."""

DIRECTIONS: Final = {"client_to_server": True, "server_to_client": False}

FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "nagle": ("nagle", "nagle-delayed-ack", "delayed-ack"),
    "window": ("receiver-window", "zero-window"),
    "send-buffer": ("send-buffer",),
    "loss": ("loss-recovery", "timeout", "congestion-window"),
    "slow-start": ("slow-start",),
    "application": ("application",),
}
"""Families of causes that have a common remedy. Each family maps to causes of the ledger."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Key figures of one transfer.

    Attributes:
        name: `original`, `replay`, or the changes as command options.
        capture: name of its capture file.
        duration_s: from the first frame to the last.
        ledger_s: direction (as in the JSON of `analyze`) → cause → seconds.
        findings: findings about the connection. Each has the keys `id`, `confidence`, `from_client`, `cost_s` and `title`.
    """

    name: str
    capture: str
    duration_s: float
    ledger_s: Mapping[str, Mapping[str, float]]
    findings: tuple[Mapping[str, Any], ...] = field(default=())

    def stalled_s(self, family: str, direction: str) -> float:
        """Return how many seconds the causes of a family take in a direction."""
        return sum(self.ledger_s[direction].get(cause, 0.0) for cause in FAMILIES[family])

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "name": self.name,
            "capture": self.capture,
            "duration_s": self.duration_s,
            "ledger_s": {each: {cause: spent for cause, spent in held.items() if spent} for each, held in self.ledger_s.items()},
            "findings": [dict(finding) for finding in self.findings],
        }


def figures(name: str, paths: Sequence[str], connection: int | None = None) -> Figures:
    """Analyze a capture, and return the key figures of one connection. `connection` is its number; None: the first connection.

    Raises:
        CaptureInsufficient: the capture has no connection, or `analyze` raises this error.
    """
    return of_document(name, ", ".join(paths), analyze(list(paths), connection=connection).to_dict())


def original_document(evidence: Evidence) -> dict[str, Any]:
    """Return the JSON document of `analyze` for the original connection."""
    return analyze(evidence.paths, connection=evidence.conn, anonymizer=evidence.anonymizer).to_dict()


def original_figures(evidence: Evidence) -> Figures:
    """Return the key figures of the original connection."""
    return of_document("original", evidence.capture, original_document(evidence))


def of_document(name: str, where: str, document: Mapping[str, Any]) -> Figures:
    """Return the key figures of the first connection in the JSON document of `analyze`.

    Raises:
        CaptureInsufficient: the capture has no connection.
    """
    if not document["connections"]:
        raise CaptureInsufficient("no TCP connection", where=where)
    own = document["connections"][0]
    findings = tuple(
        {key: finding[key] for key in ("id", "confidence", "from_client", "cost_s", "title")}
        for finding in document["findings"]
        if finding["connection"] == own["id"]
    )
    return Figures(name, where, own["duration_s"], {each: own[each]["ledger_s"] for each in DIRECTIONS}, findings)


@dataclass(frozen=True, slots=True)
class Stall:
    """The main reason why the original was slow.

    Attributes:
        family: family of causes, a key of `FAMILIES`.
        direction: the direction that waited, a key of `DIRECTIONS`.
        seconds: how long this direction waited for the causes of the family.
    """

    family: str
    direction: str
    seconds: float


def stall(original: Figures) -> Stall | None:
    """Return the family of causes that took longest in the original; None if every family took less than `MIN_SHARE`.

    The application's own time and slow start are returned only if no other family reaches `MIN_SHARE`.
    """
    held = [Stall(family, each, original.stalled_s(family, each)) for family in FAMILIES for each in DIRECTIONS]
    worth = [one for one in held if one.seconds >= MIN_SHARE * original.duration_s and one.seconds > 0]
    in_tcp = [one for one in worth if one.family not in {"application", "slow-start"}]
    return max(in_tcp or worth, key=lambda one: one.seconds, default=None)


@dataclass(frozen=True, slots=True)
class Replayed:
    """An original transfer and its replays.

    Attributes:
        original: the transfer as captured.
        replays: its replays. The unchanged replay is first, if it was requested.
        stall: the stall of the original; None if it has none.
    """

    original: Figures
    replays: tuple[Figures, ...]
    stall: Stall | None

    def reproduced(self) -> bool | None:
        """True if the unchanged replay reproduces the stall; None if the original has no stall, or there is no unchanged replay."""
        plain = next((one for one in self.replays if one.name == "replay"), None)
        if self.stall is None or plain is None:
            return None
        again_s = plain.stalled_s(self.stall.family, self.stall.direction)
        return abs(again_s - self.stall.seconds) <= REPRODUCED_WITHIN * self.stall.seconds

    def fixed(self, changed: Figures) -> bool | None:
        """Return whether the changes fix the stall; None if there is no stall."""
        if self.stall is None:
            return None
        return changed.stalled_s(self.stall.family, self.stall.direction) <= FIXED_LEFT * self.stall.seconds

    def to_dict(self) -> dict[str, Any]:
        """The JSON document."""
        original_stall = self.stall
        held = None
        if original_stall is not None:
            held = {
                "family": original_stall.family,
                "causes": list(FAMILIES[original_stall.family]),
                "direction": original_stall.direction,
                "original_stalled_s": original_stall.seconds,
                "reproduced": self.reproduced(),
                "replays": [
                    {
                        "name": one.name,
                        "stalled_s": one.stalled_s(original_stall.family, original_stall.direction),
                        "fixed": None if one.name == "replay" else self.fixed(one),
                    }
                    for one in self.replays
                ],
            }
        return {
            "schema_version": SCHEMA_VERSION,
            "original": self.original.to_dict(),
            "replays": [one.to_dict() for one in self.replays],
            "stall": held,
        }


def side_by_side(original: Figures, replays: Sequence[Figures]) -> Replayed:
    """Compare the original with its replays."""
    return Replayed(original, tuple(replays), stall(original))
