"""`Finding`: what costs time in a connection, the evidence, and what to change.

The ids of findings are stable, because the JSON and the reports contain them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.causes import Confidence
    from tcptrace_lab.causes.rule import Case


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
    "congestion-marks",
    "network-limited",
    "anomalous-message-sizes",
    "tinygrams",
    "silly-window",
    "handshake-slow",
    "path-outage",
    "capture-incomplete",
    "capture-duplicates",
    "offload",
    "clock",
)
"""Every id that a finding can have."""


class Severity(IntEnum):
    """How much a finding matters. The values are ordered, so that `--fail-on` can compare them."""

    INFO = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3

    @classmethod
    def named(cls, name: str) -> Severity:
        """Return the severity called `name` (`info`, `low`, `medium`, `high`). Raises KeyError if the name is unknown."""
        return cls[name.upper()]

    def __str__(self) -> str:
        """Return the name of the severity in lower case, as in the JSON and on screen."""
        return self.name.lower()


SEVERITIES = ((0.5, Severity.HIGH), (0.2, Severity.MEDIUM), (0.0, Severity.LOW))
"""Minimum share of a direction's active time that a fault costs → severity of the fault."""


def severity_of(share: float) -> Severity:
    """Return the severity of a fault that costs this share (0 to 1) of a direction's active time."""
    return next(severity for least, severity in SEVERITIES if share >= least)


def gain_ns(findings: Sequence[Finding]) -> int | None:
    """Return the most time in ns that fixing all these findings of one direction can save; None if no finding costs time."""
    costs = [finding.cost_ns for finding in findings if finding.cost_ns is not None]
    bounds = [finding.savable_ns for finding in findings if finding.savable_ns is not None]
    return min(sum(costs), *bounds) if costs and bounds else sum(costs) if costs else None


def fixable_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings for reading: findings that TCP settings cannot fix (`INFO`) come last. The order is otherwise unchanged."""
    return sorted(findings, key=lambda finding: finding.severity == Severity.INFO)


class ModelledGain(NamedTuple):
    """The gain of a remedy, computed by models of the TCP stacks that first reproduce the connection (`replay.gains`).

    Attributes:
        changes: what was changed, as options of `replay whatif`.
        saved_ns: time by which the remedy shortens the connection; negative if the connection becomes longer.
        min_ns, max_ns: range of `saved_ns` over all models that fit nearly as well as the best model, including their errors.
        model_error: relative error of the models for the duration of the unchanged connection: 0.02 means 2 % too long.
        script: a Python program that repeats the transfer, with and without the changes; it needs only Python.
    """

    changes: str
    saved_ns: int
    min_ns: int
    max_ns: int
    model_error: float
    script: str

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as a dictionary with the keys of the published JSON."""
        return {
            "changes": self.changes,
            "saved_s": self.saved_ns / NS_PER_S,
            "min_saved_s": self.min_ns / NS_PER_S,
            "max_saved_s": self.max_ns / NS_PER_S,
            "model_error": self.model_error,
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause of lost time.

    Attributes:
        id: one of FINDING_IDS.
        severity: how much the finding matters.
        confidence: how certain the finding is.
        conn: the connection; None if the finding is about the whole capture.
        from_client: whether the client is the sender; None if the finding is about both directions or neither.
        cost_ns: time lost; None if the finding costs no time by itself.
        cost_share: time lost as a share (0 to 1) of the direction's active time; None if the finding costs no time by itself.
        title: one line.
        mechanism: how the time is lost, in sentences.
        evidence_frames: numbers of the frames that prove the finding.
        limits: what the capture does not show about the finding; empty if nothing is in doubt.
        remedy: what to change, best first.
        predicted_gain: the expected gain of the remedy; None if it was not computed.
        source: source of the rule.
        causes: the ledger's causes of the waits that the finding covers; empty if it covers no waits.
        modelled: the gain that models computed, if `predicted_gain` states it; otherwise None.
        savable_ns: the most time that all remedies for this direction together can save; None if unknown. The path needs the remaining time
            for the data (`rates.on_path_ns`).
        connections: number of connections that the finding covers; `conn` is the first. More than one if equal failures are grouped.
        cases: special cases that the finding mentions and that the row of the connection does not show.
        lost_to: what took the time, in the words of the verdict (`causes.Rule.lost_to`); empty if the text of the rule applies.
        cure: what fixes the finding, in the words of the verdict (`causes.Advice.cure`); only with `lost_to`.
        longest_ns: length of the longest wait of the finding; None if unknown, or without waits.
        is_of_waits: whether the cause of each wait is as certain as the finding.
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
    lost_to: str = ""
    cure: str = ""
    longest_ns: int | None = None
    is_of_waits: bool = True

    @property
    def active_ns(self) -> int | None:
        """Active time (ns) of the direction, of which the cost is a share; None if the finding costs no time."""
        return round(self.cost_ns / self.cost_share) if self.cost_ns and self.cost_share else None

    @property
    def gain_ns(self) -> int | None:
        """Upper bound in ns of the time that a fix saves: the cost, without the time that the path needs; None without a cost."""
        return gain_ns((self,))

    @property
    def wireshark_filter(self) -> str:
        """Wireshark display filter for the evidence: `tcp.stream eq 0 and frame.number in {3,5..7}`; empty if there is none."""
        runs: list[list[int]] = []
        for frame in sorted(set(self.evidence_frames)):
            if runs and frame == runs[-1][1] + 1:
                runs[-1][1] = frame
            else:
                runs.append([frame, frame])
        listed = ",".join(f"{first}" if first == last else f"{first}..{last}" for first, last in runs)
        stream = "" if self.conn is None or self.connections > 1 else f"tcp.stream eq {self.conn} and "
        return f"{stream}frame.number in {{{listed}}}" if listed else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a dictionary with the keys of the published JSON (`analysis.schema.json`)."""
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
