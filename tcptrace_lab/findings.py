"""What a finding is. A finding says where the time of a connection went, what proves it, and what to change.

Findings are ordered most expensive first. Their ids are fixed: they are used in the JSON, in reports and by `--fail-on`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from tcptrace_lab.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.rules import Confidence
    from tcptrace_lab.rules.rule import Case


FINDING_IDS = (
    "nagle-delayed-ack",
    "throughput-deadlock",
    "delayed-ack",
    "send-buffer-limited",
    "receiver-window-limited",
    "zero-window",
    "application-limited",
    "slow-start-limited",
    "loss",
    "timeout",
    "reordering",
    "spurious-retransmission",
    "bufferbloat",
    "network-limited",
    "anomalous-message-sizes",
    "tinygrams",
    "silly-window",
    "handshake-slow",
    "capture-incomplete",
    "capture-duplicates",
    "offload",
    "clock",
)
"""Every id that a finding can have."""


class Severity(IntEnum):
    """How much a finding matters; ordered, so that `--fail-on` can compare."""

    INFO = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3

    @classmethod
    def named(cls, name: str) -> Severity:
        """The severity called `name` (`info`, `low`, `medium`, `high`); KeyError if there is none."""
        return cls[name.upper()]

    def __str__(self) -> str:
        """The name as JSON and people write it."""
        return self.name.lower()


SEVERITIES = ((0.5, Severity.HIGH), (0.2, Severity.MEDIUM), (0.0, Severity.LOW))
"""Share of the life from which a fault is so severe."""


def severity_of(share: float) -> Severity:
    """How severe a fault is that costs this share (0 to 1) of a direction's life."""
    return next(severity for least, severity in SEVERITIES if share >= least)


def gain_ns(findings: Sequence[Finding]) -> int | None:
    """What mending all of some findings of one direction can save at most; None where none costs time."""
    costs = [finding.cost_ns for finding in findings if finding.cost_ns is not None]
    bounds = [finding.savable_ns for finding in findings if finding.savable_ns is not None]
    return min(sum(costs), *bounds) if costs and bounds else sum(costs) if costs else None


def mendable_first(findings: Sequence[Finding]) -> list[Finding]:
    """The findings as people read them: what nobody can mend in TCP (`INFO`) behind the rest, else in their order."""
    return sorted(findings, key=lambda finding: finding.severity == Severity.INFO)


class ModelledGain(NamedTuple):
    """What a remedy brings by models of the stacks that first made the connection again (`replay.gains`).

    Attributes:
        changes: what was changed, as options of `replay whatif`.
        saved_ns: of the connection's life; below 0: it took longer.
        least_ns, most_ns: over all models that fit nearly as well, and their error.
        model_error: by how much they missed the life of the connection as it was: 0.02 is 2 % longer.
    """

    changes: str
    saved_ns: int
    least_ns: int
    most_ns: int
    model_error: float

    def to_dict(self) -> dict[str, Any]:
        """Ready for the published JSON."""
        return {
            "changes": self.changes,
            "saved_s": self.saved_ns / NS_PER_S,
            "least_s": self.least_ns / NS_PER_S,
            "most_s": self.most_ns / NS_PER_S,
            "model_error": self.model_error,
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause of lost time.

    Attributes:
        id: one of FINDING_IDS.
        severity: how much it matters.
        confidence: how sure it is.
        conn: the connection; None where it concerns the capture as a whole.
        from_client: the direction, by its sender; None where it concerns both or none.
        cost_ns: time lost to it; None where it costs no time by itself.
        cost_share: that time as a share (0 to 1) of the direction's life; None likewise.
        title: one line.
        mechanism: how the time is lost, for people.
        evidence_frames: frame numbers that show it.
        limits: what the capture cannot tell about it; empty where nothing is in doubt.
        remedy: what to change, best first.
        predicted_gain: what the remedy is expected to bring; None where nobody computed it.
        source: where the rule comes from.
        causes: what the ledger calls the waits that it is about; none where it is about no waits.
        modelled: what `predicted_gain` tells, where models reckoned it; None: it is the rule's own bound, or there is none.
        savable_ns: time that all remedies of its direction together can save at most, because the path takes the rest for the data
            (`rates.on_path_ns`); None where that is not known.
        connections: how many it is about, `conn` being the first of them; more than one where what failed alike is told together.
        cases: special cases that it tells of, beside those that the connection's row shows.
        is_of_waits: it is as sure of the cause of each of its waits as it is of itself.
    """

    id: str
    severity: Severity
    confidence: Confidence
    conn: int | None
    from_client: bool | None
    cost_ns: int | None
    cost_share: float | None
    title: str
    mechanism: str
    evidence_frames: tuple[int, ...]
    limits: str
    remedy: tuple[str, ...]
    predicted_gain: str | None
    source: str
    causes: frozenset[str] = frozenset()
    savable_ns: int | None = None
    modelled: ModelledGain | None = None
    connections: int = 1
    cases: frozenset[Case] = frozenset()
    is_of_waits: bool = True

    @property
    def gain_ns(self) -> int | None:
        """Time that goes if its cause does: what it costs, as far as the path lets it go; None where it costs no time."""
        return gain_ns((self,))

    @property
    def wireshark_filter(self) -> str:
        """`frame.number in {3,5..7}`: a display filter that shows the evidence; empty without any."""
        runs: list[list[int]] = []
        for frame in sorted(set(self.evidence_frames)):
            if runs and frame == runs[-1][1] + 1:
                runs[-1][1] = frame
            else:
                runs.append([frame, frame])
        listed = ",".join(f"{first}" if first == last else f"{first}..{last}" for first, last in runs)
        return f"frame.number in {{{listed}}}" if listed else ""

    def to_dict(self) -> dict[str, Any]:
        """The finding under the keys of the published JSON (`analysis.schema.json`)."""
        return {
            "id": self.id,
            "severity": str(self.severity),
            "confidence": str(self.confidence),
            "connection": self.conn,
            "from_client": self.from_client,
            "cost_s": None if self.cost_ns is None else self.cost_ns / NS_PER_S,
            "cost_share": self.cost_share,
            "title": self.title,
            "mechanism": self.mechanism,
            "evidence": {"frames": list(self.evidence_frames)},
            "limits": self.limits,
            "remedy": list(self.remedy),
            "predicted_gain": self.predicted_gain,
            "predicted_gain_by": None if self.predicted_gain is None else "rule" if self.modelled is None else "model",
            "modelled_gain": None if self.modelled is None else self.modelled.to_dict(),
            "source": self.source,
        }
