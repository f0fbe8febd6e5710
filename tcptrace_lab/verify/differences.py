"""Differences between two tools, and the rules that explain them.

A rule describes one known behaviour of a tool, with its source, and has a test. If the behaviour caused the difference, the test returns a
sentence with the numbers of this capture, otherwise None. A difference that no rule explains is `unexplained`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MAX_LISTED = 100_000
"""Maximum number of differences that are listed per rule. All further differences are only counted."""

UNEXPLAINED = "unexplained"
"""Rule name of a difference that no rule explains."""

Case = TypeVar("Case")
Case_contra = TypeVar("Case_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Rule(Generic[Case_contra]):
    """One known behaviour in which another tool differs from us.

    Attributes:
        name: stable identifier.
        why: one line about what the tool does, and what we do.
        source: where this behaviour is documented or was observed.
        items: names of the compared items that the rule can explain.
        test: returns a sentence with this capture's numbers if the behaviour caused the difference, otherwise None.
    """

    name: str
    why: str
    source: str
    items: frozenset[str]
    test: Callable[[Case_contra], str | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between us and another tool.

    Attributes:
        tool: the other tool.
        item: the compared item.
        frame: frame number; None for a figure of a whole connection.
        conn: our connection number; None if we do not have the connection.
        from_client: the direction; None if there is no direction.
        ours: our value; None if we have none.
        theirs: the tool's value; None if it has none.
        rule: name of the rule that explains the difference, or `UNEXPLAINED`.
        words: the explanation with this capture's numbers.
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
    """Numbers of comparisons of an item, by result."""

    compared: int = 0
    equal: int = 0
    explained: int = 0
    unexplained: int = 0


@dataclass(slots=True)
class Account:
    """The result of all comparisons.

    Attributes:
        counts: (tool, item) → counts, in order of the first comparison.
        differences: rule → its listed differences, up to `MAX_LISTED`.
        found: rule → number of all its differences.
    """

    counts: dict[tuple[str, str], Count] = field(default_factory=dict)
    differences: dict[str, list[Difference]] = field(default_factory=dict)
    found: Counter[str] = field(default_factory=Counter)

    def compared(self, tool: str, item: str, times: int) -> None:
        """Count `times` comparisons of an item as equal. Then `add` corrects the counts for each difference."""
        count = self.counts.setdefault((tool, item), Count())
        count.compared += times
        count.equal += times

    def add(self, difference: Difference) -> None:
        """Record a difference that `compared` has counted as equal."""
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
        """Number of differences that no rule explains."""
        return self.found[UNEXPLAINED]


def explained(case: Case, item: str, rules: Mapping[str, Sequence[Rule[Case]]]) -> tuple[str, str]:
    """Return name and sentence of the first rule that explains `case`. If none does, return `UNEXPLAINED` and an empty text."""
    for rule in rules.get(item, ()):
        words = rule.test(case)
        if words is not None:
            return rule.name, words
    return UNEXPLAINED, ""


def by_item(rules: Iterable[Rule[Case]]) -> dict[str, list[Rule[Case]]]:
    """Return the rules of each item, in order."""
    table: dict[str, list[Rule[Case]]] = {}
    for rule in rules:
        for item in sorted(rule.items):
            table.setdefault(item, []).append(rule)
    return table
