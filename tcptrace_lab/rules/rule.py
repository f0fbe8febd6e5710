"""What a rule is: a cause, when it holds, how sure that is, what refutes it, and what people are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from tcptrace_lab.findings import Confidence

CAUSES = (
    "handshake",
    "application",
    "peer",
    "nagle",
    "nagle-delayed-ack",
    "delayed-ack",
    "send-buffer",
    "receiver-window",
    "zero-window",
    "slow-start",
    "congestion-window",
    "pacing",
    "loss-recovery",
    "timeout",
    "network",
    "close",
    "unknown",
)
"""Every answer to "why is the next byte of this direction not leaving now?"."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a finding says where a cause costs time. `{…}` in `title` and `mechanism` are filled with this capture's numbers.

    Attributes:
        finding: one of `findings.FINDING_IDS`.
        title: one line.
        mechanism: how the time is lost, in two sentences.
        limits: what a capture cannot tell about it.
        remedy: what to change, best first.
        is_a_fault: false where the time is the program's or the path's own, so that there is nothing to mend in TCP.
    """

    finding: str
    title: str
    mechanism: str
    limits: str
    remedy: tuple[str, ...]
    is_a_fault: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    """One cause of waiting.

    Attributes:
        cause: one of CAUSES.
        holds: true for the departures (rows of `schema.SEGMENTS` beside their direction's facts, see `facts`) that waited for it.
        confidence: how sure one such wait is.
        refuted_by: what would have shown that it was something else.
        source: where the rule comes from.
        owns_until_window_opened: the wait is its own only until the window opened; what comes after is the program's.
        advice: what a finding says; None where the cause is not worth one.
    """

    cause: str
    holds: pl.Expr
    confidence: Confidence
    refuted_by: str
    source: str
    owns_until_window_opened: bool = False
    advice: Advice | None = None
