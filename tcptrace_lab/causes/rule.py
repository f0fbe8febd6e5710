"""`Rule`: the texts of a cause, its confidence, and what would disprove it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import polars as pl

    from tcptrace_lab.causes.texts.proof import Value


class Confidence(StrEnum):
    """How certain a verdict is: proved, consistent with the capture, or only possible."""

    PROVED = "proved"
    CONSISTENT = "consistent"
    POSSIBLE = "possible"


class Case(StrEnum):
    """A special case: a direction for which a cause needs other texts. `special_cases` detects the case."""

    UNANSWERED = "unanswered"
    REFUSED = "refused"
    ANSWER_RESENT = "answer-resent"
    SYN_IGNORED = "syn-ignored"
    SYN_RESENT = "syn-resent"
    SLOW_ANSWER = "slow-answer"
    SLOW_ACK = "slow-ack"
    LONG_PATH = "long-path"
    TOO_LARGE = "too-large"
    PEER_CLOSED = "peer-closed"
    STOPPED_ANSWERING = "stopped-answering"
    NEEDLESS = "needless"
    SLOW_READER = "slow-reader"


class Clause(str):
    """A `Rule.lost_to` that is a full clause, so that the verdict continues with "for 91% of 531 ms".

    A `lost_to` of any other type is the subject of a sentence: the verdict continues with "took 91% of 531 ms".
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Instead:
    """The texts that replace those of a rule and of its advice in a special case. A text that is None is not replaced."""

    finding: str | None = None
    title: str | None = None
    mechanism: str | None = None
    limits: str | None = None
    remedy: tuple[str, ...] | None = None
    cure: str | None = None
    lost_to: str | None = None
    refuted_by: str | None = None
    is_a_fault: bool | None = None


WORTH_SHARE, WORTH_NS = 0.05, 10_000_000
"""A finding needs at least this share of a direction's active time, and at least 10 ms (docs/how-it-decides.md, 2.3)."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The texts of a finding on a cause. A placeholder `{…}` in `title`, `mechanism` or `remedy` stands for a number of the capture.

    Attributes:
        finding: one of `finding.FINDING_IDS`.
        title: one line.
        mechanism: how the time is lost, in two sentences.
        limits: what a capture does not show about the cause.
        remedy: what to change, best first. The placeholder `immediate_ack.PLACE` becomes the setting of the receiver's stack.
        cure: the best remedy as a singular subject. A fault continues it with "… saves up to 25 s", anything else with "… would help".
            `{sender}` and `{receiver}` become addresses. Empty if the capture does not show which host to change.
        worth_share, worth_ns: minimum share of a direction's active time, and minimum time, for a finding.
        of_client_alone: whether only the client's direction gets a finding, because both directions lose the time together.
        is_a_fault: false if TCP has nothing to fix, because the application or the path needs the time.
        instead: other texts for special cases; the first case that applies is used.
        of_data_alone: whether only directions with data get a finding.
    """

    finding: str
    title: str
    mechanism: str
    limits: str
    remedy: tuple[str, ...]
    cure: str = ""
    worth_share: float = WORTH_SHARE
    worth_ns: int = WORTH_NS
    of_client_alone: bool = False
    is_a_fault: bool = True
    of_data_alone: bool = False
    instead: Mapping[Case, Instead] = field(default_factory=dict)


class Doubt(NamedTuple):
    """Texts for waits that a second cause explains equally well. The engine gives such waits the confidence `possible`.

    Attributes:
        consistent_if: `answered` or `numbered` (`cause_findings`), a fact about the direction that makes the second cause less likely. The
            fact matters for a finding whose waits are all in doubt: the finding is `consistent` with the fact, and `possible` without it.
            Empty: always `possible`.
        limits: what the capture does not show about the waits, as a sentence; empty if the rule has no advice.
        remedy: what to change if the second cause applies.
        of_all: function that returns whether all waits of a direction are in doubt. Its argument is a function that returns a count of the
            sender (a column of `schema.CONNECTIONS`). None: only the waits that the engine calls possible are in doubt.
        rival: the second cause as the subject of "… looks the same", for the verdict; only for a rule with `of_all` and advice.
    """

    consistent_if: str = ""
    limits: str = ""
    remedy: tuple[str, ...] = ()
    of_all: Callable[[Callable[[str], int]], bool] | None = None
    rival: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One cause of waiting.

    Attributes:
        cause: one of `schema.CAUSES`.
        lost_to: the cause as the subject of "… took 50% of 3 s", or as a `Clause` before "… for 50% of 3 s". `{sender}` and `{receiver}`
            become addresses; `{sending}` and `{receiving}` become client or server.
        colour, pattern: style of the cause in reports: `#rrggbb`, and one of Plotly's patterns or an empty string. Only our own rules have
            a style.
        confidence: confidence of one wait with this cause, if no second cause explains the wait equally well.
        proof: values that are reported for one wait, and further frames that show the values (`causes.texts.proof`).
        refuted_by: the end of the sentence "Would be disproved by: …".
        source: source of the rule.
        proved_by_repetition: whether three waits in one direction prove the cause, although one wait does not.
        doubt: texts for waits that a second cause explains equally well; None if there is no such cause.
        advice: texts of a finding; None if the cause never has a finding.
        cure: for a rule without advice: what would help, in the form of `Advice.cure`. The verdict shows it if there is no fault.
        holds: condition (an expression over `schema.WAITS`) that selects the waits of this rule, whatever cause the engine gave them. Only
            rules of other packages have a condition (docs/rules.md).
    """

    cause: str
    confidence: Confidence
    proof: tuple[Value, ...]
    refuted_by: str
    source: str
    lost_to: str = ""
    colour: str = ""
    pattern: str = ""
    proved_by_repetition: bool = False
    doubt: Doubt | None = None
    advice: Advice | None = None
    cure: str = ""
    holds: pl.Expr | None = None

    def for_cases(self, cases: Collection[Case]) -> Rule:
        """Return this rule with the texts of the first special case in `cases` that has texts of its own."""
        instead = next((words for case, words in self.advice.instead.items() if case in cases), None) if self.advice else None
        if instead is None or self.advice is None:
            return self
        other: dict[str, Any] = {each.name: value for each in fields(instead) if (value := getattr(instead, each.name)) is not None}
        own = {name: other.pop(name) for name in ("lost_to", "refuted_by") if name in other}
        return replace(self, **own, advice=replace(self.advice, **other))
