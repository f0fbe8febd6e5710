"""Defines `Rule`: the texts of a cause, its confidence, and what would disprove it. The engine decides which waits have which cause."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import polars as pl

    from tcptrace_lab.causes.texts.proof import Value


class Confidence(StrEnum):
    """The certainty of a verdict: proved, consistent with the capture, or only possible."""

    PROVED = "proved"
    CONSISTENT = "consistent"
    POSSIBLE = "possible"


class Case(StrEnum):
    """A special case in which other texts describe a cause. `special_cases` determines the case of a direction."""

    UNANSWERED = "unanswered"
    REFUSED = "refused"
    ANSWER_RESENT = "answer-resent"
    SYN_IGNORED = "syn-ignored"
    SYN_RESENT = "syn-resent"
    SLOW_ANSWER = "slow-answer"
    SLOW_ACK = "slow-ack"
    LONG_PATH = "long-path"
    TOO_LARGE = "too-large"
    STOPPED_ANSWERING = "stopped-answering"
    NEEDLESS = "needless"
    SLOW_READER = "slow-reader"


class Clause(str):
    """A `Rule.lost_to` that is a clause: the verdict continues it with "for 91% of 531 ms".

    Any other `lost_to` is a subject: the verdict continues it with "took 91% of 531 ms".
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Instead:
    """Texts that replace those of a rule and its advice in a special case; None keeps the text of the rule."""

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
"""A cause is worth a finding if it takes at least this share of a direction's active time, and at least this time: 10 ms, a stall on a LAN
(docs/how-it-decides.md, 2.3)."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Texts of a finding on a cause. Each `{…}` in `title`, `mechanism` and `remedy` is a placeholder for a number of the capture.

    Attributes:
        finding: one of `finding.FINDING_IDS`.
        title: one line.
        mechanism: how the time is lost, in two sentences.
        limits: what a capture does not show about the cause.
        remedy: what to change, best first; `immediate_ack.PLACE` in it becomes the setting of the receiver's stack.
        cure: the best remedy as the subject of "… saves up to 25 s" (for a fault) or "… would help", in the singular; `{sender}` and
            `{receiver}` become addresses. Empty if the capture does not show which host to change.
        worth_share, worth_ns: minimum share of a direction's active time, and minimum time, for a finding.
        of_client_alone: whether only the client's direction gets a finding, because both directions lose the same time.
        is_a_fault: false if the time is the application's or the path's, so that there is nothing to fix in TCP.
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
    """Texts for waits that another cause explains equally well. The engine gives such waits the confidence `possible`.

    Attributes:
        consistent_if: `answered` or `numbered` (`cause_findings`): the name of a fact about the direction that makes the other explanation
            less likely. A finding that is based only on such waits is `consistent` if the fact is true, else `possible`. Empty: always
            `possible`.
        limits: what the capture does not show about these waits, as a sentence; empty if the rule has no advice.
        remedy: what to change if the other cause applies.
        of_all: function that returns whether all waits of a direction are in doubt. Its argument is a function that returns a count of the
            sender (a column of `schema.CONNECTIONS`). If it is None, only the waits that the engine calls possible are in doubt.
        rival: the other explanation in the words of the verdict, as the subject of "… looks the same"; only for a rule with `of_all` and
            advice.
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
        lost_to: the cause as the subject of "… took 50% of 3 s" (a `Clause`: of "… for 50% of 3 s"); `{sender}` and `{receiver}` become
            addresses, `{sending}` and `{receiving}` become client or server.
        colour, pattern: style of the cause's bars and bands in reports (`#rrggbb`, and one of Plotly's patterns, empty for none); only our
            own rules have them.
        confidence: confidence of one such wait, if nothing else explains it equally well.
        proof: values reported for one such wait, and further frames that show them (`causes.texts.proof`).
        refuted_by: what would disprove it, as in "Would be disproved by: …".
        source: source of the rule.
        proved_by_repetition: whether three such waits in one direction prove the cause, while one is only consistent with it.
        doubt: texts for waits that something else explains equally well; None if nothing does.
        advice: texts of a finding; None if the cause is not worth a finding.
        cure: for a rule without advice, what would help, in the form of `Advice.cure`; used if there is no fault.
        holds: condition (an expression over `schema.WAITS`) that is true for the waits of this rule, whatever cause the engine gave them;
            only for rules of other packages (docs/rules.md).
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
        """Return this rule with the texts for these special cases."""
        instead = next((words for case, words in self.advice.instead.items() if case in cases), None) if self.advice else None
        if instead is None or self.advice is None:
            return self
        other: dict[str, Any] = {each.name: value for each in fields(instead) if (value := getattr(instead, each.name)) is not None}
        own = {name: other.pop(name) for name in ("lost_to", "refuted_by") if name in other}
        return replace(self, **own, advice=replace(self.advice, **other))
