"""Computes the correct share and the cost of the engine's answers, from summed times."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tcptrace_lab.lab.corpus.judging import Judged, Key

PROVED, MOST_LIKELY, POSSIBLY, UNKNOWN = "proved", "most likely", "possibly", "unknown"
WORDS = {"proved": PROVED, "consistent": MOST_LIKELY, "possible": POSSIBLY}
"""Word in a verdict's text for each confidence of the ledger."""
COSTS = {(MOST_LIKELY, True): 0.0, (MOST_LIKELY, False): 10.0, (POSSIBLY, True): 0.4, (POSSIBLY, False): 1.9}
UNKNOWN_COST = 1.0
"""Costs of one second, by the engine's confidence and by whether its cause was right.

The answer `most likely` costs less than `unknown` if it is right for more than 90 % of the time for which it is given.
"""


def said(key: Key) -> str:
    """Return the engine's confidence as a word. For the cause `unknown`, this word is `unknown`."""
    return UNKNOWN if key.cause == UNKNOWN else WORDS[key.confidence]


def is_sure(confidence: str) -> bool:
    """Return whether the ledger's confidence is `proved` or `consistent`."""
    return WORDS[confidence] != POSSIBLY


def is_sure_and_wrong(key: Key) -> bool:
    """Return whether the engine is sure of a cause that the kernel does not accept."""
    return not key.is_accepted and key.cause != UNKNOWN and is_sure(key.confidence)


def added(judged: Iterable[Judged]) -> dict[Key, int]:
    """Add up the nanoseconds of all transfers."""
    total: dict[Key, int] = defaultdict(int)
    for one in judged:
        for key, ns in one.sums.items():
            total[key] += ns
    return total


def where(sums: Mapping[Key, int], **wanted: str) -> dict[Key, int]:
    """Return only the sums whose keys have the `wanted` values."""
    return {key: ns for key, ns in sums.items() if all(getattr(key, name) == value for name, value in wanted.items())}


def ns_of(sums: Mapping[Key, int], test: Callable[[Key], bool] = lambda _key: True) -> int:
    """Return the total nanoseconds of all keys that pass `test`."""
    return sum(ns for key, ns in sums.items() if test(key))


def cost_of(cause: str, confidence: str, *, is_right: bool) -> float:
    """Return the cost of one second for which the engine gave this answer."""
    return UNKNOWN_COST if cause == UNKNOWN else COSTS[MOST_LIKELY if is_sure(confidence) else POSSIBLY, is_right]


def cost(sums: Mapping[Key, int]) -> float:
    """Return the mean cost of one second. It is 0 if all answers are right and certain, and 1 if all answers are `unknown`."""
    whole = ns_of(sums)
    return sum(ns * cost_of(key.cause, key.confidence, is_right=key.is_accepted) for key, ns in sums.items()) / whole if whole else 0.0
