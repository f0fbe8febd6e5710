"""The verdict as a value, and the parts of an analysis that it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tcptrace_lab.causes import Confidence
    from tcptrace_lab.findings.finding import Finding


class Analysed(Protocol):
    """The parts of an `Analysis` that a verdict needs."""

    @property
    def capture(self) -> Mapping[str, Any]:
        """The object `capture` of the JSON."""

    @property
    def connections(self) -> pl.LazyFrame:
        """Rows of `schema.CONNECTIONS`."""

    @property
    def accounts(self) -> pl.LazyFrame:
        """Rows of `schema.ACCOUNTS`."""

    @property
    def flows(self) -> pl.LazyFrame:
        """Rows of `schema.FLOWS`."""

    @property
    def findings(self) -> Sequence[Any]:
        """Findings, most expensive first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a capture.

    Attributes:
        sentence: one sentence, with a full stop.
        conn, from_client: the direction that the sentence describes; None if it describes none.
        cost_ns: cost of the fault in the direction; None without a fault.
        life_ns: duration of the direction; None if the sentence describes none.
        active_ns: the part of `life_ns` in which the direction was not idle; None if the sentence describes none.
        findings: the findings on which the sentence is based.
        causes: the causes that took most of the time according to the sentence: one cause, or several of one family; empty if the sentence
            names no cause.
        confidence: confidence that `causes` took most of the time; None if the sentence names no cause.
        why: the reason for the choice of the direction, in a few words; empty if the sentence describes none.
        row, account: rows of `schema.CONNECTIONS` and `schema.ACCOUNTS` of the connection `conn`; empty without a connection.
        rivals: causes that explain the time equally well, if the sentence names no cause; can be empty.
    """

    sentence: str
    conn: int | None = None
    from_client: bool | None = None
    cost_ns: int | None = None
    life_ns: int | None = None
    active_ns: int | None = None
    findings: tuple[Finding, ...] = ()
    causes: frozenset[str] = frozenset()
    confidence: Confidence | None = None
    why: str = ""
    row: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    account: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    rivals: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict with the keys of the published JSON."""
        return {
            "sentence": self.sentence,
            "connection": self.conn,
            "from_client": self.from_client,
            "chosen_because": self.why or None,
            "cost_s": None if self.cost_ns is None else self.cost_ns / numbers.NS_PER_S,
            "life_s": None if self.life_ns is None else self.life_ns / numbers.NS_PER_S,
            "active_s": None if self.active_ns is None else self.active_ns / numbers.NS_PER_S,
            "rivals": list(self.rivals),
            "findings": [finding.id for finding in self.findings],
        }
