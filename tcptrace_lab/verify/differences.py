"""What two tools say differently, and the rules that explain it.

A rule is one thing that a tool is known to do, with where that is known from, and a test that says in this capture's numbers how it
came about here, or nothing. There is no rule for the rest: what no rule explains is called unexplained.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MAX_LISTED = 100_000
"""Differences of one explanation that are kept one by one; those beyond are counted only."""

UNEXPLAINED = "unexplained"
"""Stands for the rule where there is none."""

Case = TypeVar("Case")
Case_contra = TypeVar("Case_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Rule(Generic[Case_contra]):
    """One thing that a tool does otherwise.

    Attributes:
        name: stable, for programs.
        why: what the tool does, and what we do; one line for people.
        source: where that is known from.
        items: what it can explain; names of compared items.
        test: the sentence with this capture's numbers if that is what happened, else None.
    """

    name: str
    why: str
    source: str
    items: frozenset[str]
    test: Callable[[Case_contra], str | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that two tools say differently.

    Attributes:
        tool: the other tool.
        item: what was compared.
        frame: where; None for a figure of a whole connection.
        conn: our number of the connection; None where only the other tool has one.
        from_client: the direction; None where there is none.
        ours: what we say; None for nothing.
        theirs: what the tool says; None for nothing.
        rule: name of the rule that explains it, or `UNEXPLAINED`.
        words: how it came about, in this capture's numbers.
    """

    tool: str
    item: str
    frame: int | None
    conn: int | None
    from_client: bool | None
    ours: Any
    theirs: Any
    rule: str
    words: str


@dataclass(slots=True)
class Count:
    """How often an item was compared, and what came of it."""

    compared: int = 0
    equal: int = 0
    explained: int = 0
    unexplained: int = 0


@dataclass(slots=True)
class Account:
    """All that was compared.

    Attributes:
        counts: (tool, item) → numbers, in the order in which they were first compared.
        differences: rule → those that are listed.
        found: rule → how many there are.
    """

    counts: dict[tuple[str, str], Count] = field(default_factory=dict)
    differences: dict[str, list[Difference]] = field(default_factory=dict)
    found: Counter[str] = field(default_factory=Counter)

    def compared(self, tool: str, item: str, times: int) -> None:
        """So many more comparisons of an item; differences are told by `add` and taken off."""
        count = self.counts.setdefault((tool, item), Count())
        count.compared += times
        count.equal += times

    def add(self, difference: Difference) -> None:
        """One of them was different."""
        count = self.counts[difference.tool, difference.item]
        count.equal -= 1
        if difference.rule == UNEXPLAINED:
            count.unexplained += 1
        else:
            count.explained += 1
        self.found[difference.rule] += 1
        listed = self.differences.setdefault(difference.rule, [])
        if len(listed) < MAX_LISTED:
            listed.append(difference)

    @property
    def unexplained(self) -> int:
        """Differences that no rule explains."""
        return self.found[UNEXPLAINED]


def explained(case: Case, item: str, rules: Mapping[str, Sequence[Rule[Case]]]) -> tuple[str, str]:
    """The name of the first rule for `item` that explains `case`, and its words; UNEXPLAINED and none if no rule does."""
    for rule in rules.get(item, ()):
        words = rule.test(case)
        if words is not None:
            return rule.name, words
    return UNEXPLAINED, ""


def by_item(rules: Iterable[Rule[Case]]) -> dict[str, list[Rule[Case]]]:
    """Item → its rules, in their order."""
    table: dict[str, list[Rule[Case]]] = {}
    for rule in rules:
        for item in sorted(rule.items):
            table.setdefault(item, []).append(rule)
    return table
