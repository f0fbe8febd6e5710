"""What a rule is: a cause, how sure it is, what refutes it, and what people are told of it. The engine says when it holds."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import polars as pl

    from tcptrace_lab.rules.proof import Value


class Confidence(StrEnum):
    """How sure a verdict is: proved, consistent with what was seen, or only possible."""

    PROVED = "proved"
    CONSISTENT = "consistent"
    POSSIBLE = "possible"


class Case(StrEnum):
    """A special case of a direction, in which a cause is told in other words (`cases` says when)."""

    UNANSWERED = "unanswered"
    REFUSED = "refused"
    ANSWER_RESENT = "answer-resent"
    SYN_RESENT = "syn-resent"
    SLOW_ANSWER = "slow-answer"
    SLOW_ACK = "slow-ack"
    LONG_PATH = "long-path"
    TOO_LARGE = "too-large"
    NEEDLESS = "needless"
    SLOW_READER = "slow-reader"


class Clause(str):
    """A `Rule.lost_to` that is a sentence of its own: it holds *for* a share of the time, where any other *took* the share."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Instead:
    """What an advice, and its rule, say otherwise in a special case; None where they say the same."""

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
"""A cause is worth a finding from this share of a direction's life and from this time on: a twentieth, and the 10 ms of a stall on a LAN
(docs/how-it-decides.md, 2.3)."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What a finding says where a cause costs time. `{…}` in `title` and `mechanism` become this capture's numbers.

    Attributes:
        finding: one of `findings.FINDING_IDS`.
        title: one line.
        mechanism: how the time is lost, in two sentences.
        limits: what a capture cannot tell about it.
        remedy: what to change, best first; `at_once.PLACE` in it becomes what the receiver's stack is told.
        cure: the best of it as the subject of "… saves up to 25 s" (of a fault) or "… would help", in the singular; `{sender}` and
            `{receiver}` become their addresses. Empty where the capture does not tell whose.
        worth_share, worth_ns: from this share of a direction's life on, and from this time, it is worth a finding.
        of_client_alone: it is told of the client's direction only, because both directions spend the same time on it.
        is_a_fault: false where the time is the program's or the path's own, so that there is nothing to mend in TCP.
        instead: what is said otherwise in special cases; the first that holds counts.
        of_data_alone: it is not told of a direction that carried no data.
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
    """What is said where the waits of a cause might as well have been another's: the engine calls them only possible.

    Attributes:
        consistent_if: `answered` or `numbered` (`advice`): a fact of the direction with which the other explanation is the less likely
            one, so that a finding on such waits alone is consistent; empty: it is possible.
        limits: what the capture cannot tell of them, in a sentence; empty where the rule has no advice.
        remedy: what to change if it was the other's.
        of_all: of a rule without advice, and so without a finding: whether all waits of a direction are in doubt, where the argument
            gives a count of its side (`schema.CONNECTIONS`).
    """

    consistent_if: str = ""
    limits: str = ""
    remedy: tuple[str, ...] = ()
    of_all: Callable[[Callable[[str], int]], bool] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One cause of waiting.

    Attributes:
        cause: one of `schema.CAUSES`.
        lost_to: what it is, as the subject of "… took 50% of 3 s" (a `Clause`: of "… for 50% of 3 s"); `{sender}` and `{receiver}` become
            their addresses, `{sending}` and `{receiving}` which of client and server they are.
        colour, pattern: of its bars and bands in reports (`#rrggbb`, and one of Plotly's patterns, empty for none); of our rules alone.
        confidence: how sure one such wait is, where nothing else explains it as well.
        proof: what is told of one such wait, and which frames show it beside its ends (`rules.proof`).
        refuted_by: what would disprove it, as in "Would be disproved by: …".
        source: where the rule comes from.
        proved_by_repetition: three such waits in one direction prove what one is only consistent with.
        doubt: what is said where something else explains the wait as well; None if nothing does.
        advice: what a finding says; None where the cause is not worth one.
        cure: of a rule without advice what would mend it, as `Advice.cure`: said where nothing is at fault.
        holds: of a rule of others alone: true for the waits that are its own, whatever the engine says of them; an expression over
            `schema.WAITS` (docs/rules.md).
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

    def told(self, cases: Collection[Case]) -> Rule:
        """The rule with the words for these cases."""
        instead = next((words for case, words in self.advice.instead.items() if case in cases), None) if self.advice else None
        if instead is None or self.advice is None:
            return self
        other: dict[str, Any] = {each.name: value for each in fields(instead) if (value := getattr(instead, each.name)) is not None}
        own = {name: other.pop(name) for name in ("lost_to", "refuted_by") if name in other}
        return replace(self, **own, advice=replace(self.advice, **other))
