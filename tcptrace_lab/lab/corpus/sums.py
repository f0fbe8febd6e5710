"""Sums of time by the engine's and the kernel's answers: shares, and the cost of the engine's answers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tcptrace_lab.lab.corpus.judging import Judged, Key

PROVED, MOST_LIKELY, POSSIBLY, UNKNOWN = "proved", "most likely", "possibly", "unknown"
WORDS = {"proved": PROVED, "consistent": MOST_LIKELY, "possible": POSSIBLY}
"""The ledger's confidence → the word for it in a verdict's sentence."""
COSTS = {(MOST_LIKELY, True): 0.0, (MOST_LIKELY, False): 10.0, (POSSIBLY, True): 0.4, (POSSIBLY, False): 1.9}
UNKNOWN_COST = 1.0
"""The cost of a second, by the engine's confidence and whether it was right. From 90 % correct on, `most likely` is cheaper than
`unknown`."""


def said(key: Key) -> str:
    """The engine's confidence in a word; `unknown` counts as a confidence of its own."""
    return UNKNOWN if key.cause == UNKNOWN else WORDS[key.confidence]


def is_sure(confidence: str) -> bool:
    """Whether the ledger's confidence is `proved` or `consistent`."""
    return WORDS[confidence] != POSSIBLY


def is_sure_and_wrong(key: Key) -> bool:
    """Whether the engine names a cause with certainty that the kernel does not accept."""
    return not key.is_accepted and key.cause != UNKNOWN and is_sure(key.confidence)


def added(judged: Iterable[Judged]) -> dict[Key, int]:
    """Add up the nanoseconds of all transfers."""
    total: dict[Key, int] = defaultdict(int)
    for one in judged:
        for key, ns in one.sums.items():
            total[key] += ns
    return total


def where(sums: Mapping[Key, int], **wanted: str) -> dict[Key, int]:
    """The sums whose keys have these values."""
    return {key: ns for key, ns in sums.items() if all(getattr(key, name) == value for name, value in wanted.items())}


def ns_of(sums: Mapping[Key, int], test: Callable[[Key], bool] = lambda _key: True) -> int:
    """Nanoseconds of the keys that pass a test."""
    return sum(ns for key, ns in sums.items() if test(key))


def cost_of(cause: str, confidence: str, *, is_right: bool) -> float:
    """The cost of a second with this answer."""
    return UNKNOWN_COST if cause == UNKNOWN else COSTS[MOST_LIKELY if is_sure(confidence) else POSSIBLY, is_right]


def cost(sums: Mapping[Key, int]) -> float:
    """The mean cost of a second: 0 is perfect, 1 is the cost of always answering `unknown`."""
    whole = ns_of(sums)
    return sum(ns * cost_of(key.cause, key.confidence, is_right=key.is_accepted) for key, ns in sums.items()) / whole if whole else 0.0
