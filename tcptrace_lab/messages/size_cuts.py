"""Cuts messages, sorted by size, into parts where the share of stalled messages changes.

The rules of a TCP stack are deterministic, so usually all messages of a size stall, or none. A message is an exception if it stalled in a
part where most messages were normal, or was normal in a part where most stalled. If exceptions are rare, a cut costs little.

If exceptions are common, chance affects the stalls. For example, a timer happens to expire early, so that a message does not stall. Or a
receiver stops delaying ACKs for a while. In these cases, three descriptions of the messages compete, and the shortest description is used:

- **two shares**: normal and slow parts alternate; all normal parts have one share of stalls, and all slow parts have another. This fits
  stalls that one timer causes. Even a slow part with few messages can be recognized.
- **own shares**: every part has a share of its own. Each cut must shorten the description of the messages by more than the cut costs.
- **a trend**: there are no cuts. The share grows or falls with the size or its logarithm (a logistic curve).

The length of a description is measured in nats (Rissanen's two-part code). One part is the length of the messages, encoded with the
description. The other part is the length of the description itself: half the logarithm of the number of messages for each share, plus the
logarithm of the number of ways to place the cuts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

PENALTY_NATS = 2.0
"""Minimum gain in log-likelihood of a cut, in nats. Four stalled messages between normal ones gain enough for the two cuts around them."""

STRAY_SHARE = 0.01
"""If more than this share of the messages are exceptions in their part, chance affects the stalls. A cut between parts with own shares must
then gain twice the logarithm of the number of messages: four times what Schwarz' criterion requires for one more parameter."""

MAX_BLOCKS = 2_000
"""Maximum number of blocks (see `Blocks`) between which cuts are searched. The time grows with the square of the number of blocks, and is
0.1 s at this maximum."""

MIN_IN_PART = 3
"""Minimum number of messages in a part if there are two shares. One or two stalls can be chance (docs/how-it-decides.md, 2.4)."""

FIRST_SHARES = ((0.02, 0.98), (0.02, 0.6), (0.2, 0.9))
"""Pairs of a normal and a slow share from which the search for two shares starts. Each start leads to the nearest optimum; the best optimum
is used."""

MAX_ROUNDS = 30
"""Maximum number of rounds of the search for two shares. About five are needed."""

TREND_ROUNDS = 25
"""Maximum number of Newton steps to find a trend. About eight are needed."""

STEEPEST = 3.8
"""Largest slope of a trend, in logits per standard deviation of the sizes (a heuristic). At this slope, the share grows from 0.1 to 0.9
within a third of the sizes, if the sizes are evenly spread. A faster change counts as a cut."""

Counts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Groups of neighbouring messages that no cut has to divide. The messages of a block have one size, or all stalled, or none stalled.

    Attributes:
        edges: positions where blocks start, and the end of the last block.
        hits: number of stalled messages per block.
        counts: number of messages per block.
        sizes: number of different sizes in all blocks together.
    """

    edges: NDArray[np.int64]
    hits: Counts
    counts: Counts
    sizes: int

    @classmethod
    def of(cls, sizes: NDArray[np.int64], stalled: NDArray[np.bool_]) -> Blocks:
        """Return at most `MAX_BLOCKS` blocks of messages that are sorted by size."""
        starts = np.flatnonzero(np.diff(sizes, prepend=sizes[0] - 1))
        edges = np.append(starts, sizes.size)
        share = np.add.reduceat(stalled.astype(np.int64), starts) / np.diff(edges)
        pure = (share == 0) | (share == 1)
        same = np.concatenate([[False], pure[1:] & (share[1:] == share[:-1])])
        kept: NDArray[np.int64] = edges[np.append(~same, True)]
        if kept.size - 1 > MAX_BLOCKS:
            kept = kept[np.unique(np.linspace(0, kept.size - 1, MAX_BLOCKS + 1).astype(np.int64))]
        hits = np.add.reduceat(stalled.astype(np.float64), kept[:-1])
        return cls(kept, hits, np.diff(kept).astype(np.float64), starts.size)


@dataclass(frozen=True, slots=True)
class Part:
    """A range of the messages, which are sorted by size.

    Attributes:
        start, stop: positions of the first message, and of the message after the last one.
        share: share of these messages that stalled, from 0 to 1.
    """

    start: int
    stop: int
    share: float


def parts(sizes: NDArray[np.int64], stalled: NDArray[np.bool_]) -> list[Part]:
    """Cut the messages where the share of stalled messages changes.

    Args:
        sizes: bytes of each message, ascending; at least one.
        stalled: whether TCP delayed the message for long.
    """
    blocks = Blocks.of(sizes, stalled)
    clean = _own_shares(blocks, PENALTY_NATS)
    strays = sum(min(part.share, 1 - part.share) * (part.stop - part.start) for part in clean)
    if strays <= STRAY_SHARE * sizes.size:
        return clean
    own = _own_shares(blocks, 2 * math.log(sizes.size))
    own_nats = _own_nats(own, sizes.size, blocks.sizes)
    two, two_nats = _two_shares(blocks)
    trend_nats = _trend_nats(sizes, stalled)
    if trend_nats <= min(own_nats, two_nats):
        return [Part(0, sizes.size, float(stalled.mean()))]
    return two if two_nats < own_nats else own


def _own_shares(blocks: Blocks, penalty: float) -> list[Part]:
    """Cut by optimal partitioning (Jackson et al. 2005), at some of the edges of the blocks."""
    hits = np.concatenate([[0.0], np.cumsum(blocks.hits)])
    counts = np.concatenate([[0.0], np.cumsum(blocks.counts)])
    last = blocks.counts.size
    best = np.full(last + 1, -np.inf)
    best[0] = 0.0
    cut = np.zeros(last + 1, np.int64)
    for end in range(1, last + 1):
        gain = best[:end] + _log_likelihood(hits[end] - hits[:end], counts[end] - counts[:end]) - penalty
        cut[end] = int(np.argmax(gain))
        best[end] = gain[cut[end]]
    ends = [last]
    while ends[-1] > 0:
        ends.append(int(cut[ends[-1]]))
    shares = ((start, end, float((hits[end] - hits[start]) / (counts[end] - counts[start]))) for start, end in pairwise(reversed(ends)))
    return [Part(int(blocks.edges[start]), int(blocks.edges[end]), share) for start, end, share in shares]


def _log_likelihood(hits: Counts, counts: Counts) -> Counts:
    """Return the log-likelihood of `hits` stalled messages among `counts`, if the stall probability is `hits / counts`."""
    share = hits / counts
    misses = counts - hits
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Counts = np.where(hits > 0, hits * np.log(share), 0.0) + np.where(misses > 0, misses * np.log1p(-share), 0.0)
    return found


def _own_nats(own: list[Part], messages: int, sizes: int) -> float:
    """Return the length in nats of the description in which each part has its own share."""
    counts = np.array([part.stop - part.start for part in own], np.float64)
    entropy_nats = -float(_log_likelihood(counts * np.array([part.share for part in own]), counts).sum())
    return entropy_nats + _placing_nats(sizes, len(own) - 1) + len(own) * math.log(messages) / 2


def _placing_nats(sizes: int, cuts: int, least: float = 1.0) -> float:
    """Return the logarithm of the number of ways to place the cuts between the sizes, with at least `least` sizes between two cuts."""
    places = max(sizes - 1 - (least - 1) * max(cuts - 1, 0), cuts)
    return math.lgamma(places + 1) - math.lgamma(cuts + 1) - math.lgamma(places - cuts + 1)


def _two_shares(blocks: Blocks) -> tuple[list[Part], float]:
    """Return parts that are alternately normal and slow, and the length of this description in nats."""
    slow, shares, nats = min((_nearest(blocks, first) for first in FIRST_SHARES), key=lambda one: one[2])
    ends = [0, *(np.flatnonzero(slow[1:] != slow[:-1]) + 1), slow.size]
    return [Part(int(blocks.edges[start]), int(blocks.edges[end]), shares[int(slow[start])]) for start, end in pairwise(ends)], nats


def _nearest(blocks: Blocks, shares: tuple[float, float]) -> tuple[NDArray[np.bool_], tuple[float, float], float]:
    """Find the best state (normal or slow) of each block, starting from the given shares.

    The search repeats two steps. The first step finds the best states for the current shares and the current price of a cut. The second
    step computes the shares that follow from the states.

    Returns:
        Which blocks are slow; the normal and the slow share; the length of this description in nats.
    """
    states, cuts = np.zeros(0, np.bool_), 0
    misses, messages = blocks.counts - blocks.hits, float(blocks.counts.sum())
    least = max(MIN_IN_PART * blocks.sizes / messages, 1.0)
    for _ in range(MAX_ROUNDS):
        price = _placing_nats(blocks.sizes, cuts + 1, least) - _placing_nats(blocks.sizes, cuts, least)
        nats_of_shares = np.stack([-(blocks.hits * math.log(share) + misses * math.log1p(-share)) for share in shares])
        before, states = states, cheapest(nats_of_shares, blocks.counts, max(price, 0.0))
        if np.array_equal(before, states):
            break
        shares = _share(blocks, ~states), _share(blocks, states)
        cuts = int(np.count_nonzero(states[1:] != states[:-1]))
    remains = sum(
        -(blocks.hits @ chosen * math.log(share) + misses @ chosen * math.log1p(-share))
        for chosen, share in zip((~states, states), shares, strict=True)
    )
    return states, shares, float(remains) + _placing_nats(blocks.sizes, cuts, least) + math.log(messages)


def _share(blocks: Blocks, chosen: NDArray[np.bool_]) -> float:
    """Return the share of stalled messages in the chosen blocks, never 0 or 1 (the estimate of Krichevsky and Trofimov)."""
    return (float(blocks.hits[chosen].sum()) + 0.5) / (float(blocks.counts[chosen].sum()) + 1)


def cheapest(sums: Counts, counts: Counts, price: float) -> NDArray[np.bool_]:
    """Return the cheapest sequence of states: the length of the messages plus the price of all changes of state (Viterbi 1967).

    A state lasts for at least `MIN_IN_PART` messages, so the search tracks how many messages each state still lacks. The first and the last
    part can have fewer messages, because they can continue beyond the sizes seen.
    """
    kinds = [(slow, lacking) for slow in (False, True) for lacking in range(MIN_IN_PART)]
    place = {kind: number for number, kind in enumerate(kinds)}
    costs = [0.0 if lacking == 0 else math.inf for _, lacking in kinds]
    previous: list[list[int]] = []
    for own, count in zip(sums.T.tolist(), counts.astype(np.int64).tolist(), strict=True):
        cheapest_paths = [(math.inf, 0)] * len(kinds)
        for before, (slow, lacking) in enumerate(kinds):
            stays = place[slow, max(lacking - count, 0)]
            cheapest_paths[stays] = min(cheapest_paths[stays], (costs[before] + own[slow], before))
            if lacking == 0 and previous:
                leaves = place[not slow, max(MIN_IN_PART - count, 0)]
                cheapest_paths[leaves] = min(cheapest_paths[leaves], (costs[before] + own[not slow] + price, before))
        costs = [cost for cost, _ in cheapest_paths]
        previous.append([before for _, before in cheapest_paths])
    at = costs.index(min(costs))
    states = []
    for befores in reversed(previous):
        states.append(kinds[at][0])
        at = befores[at]
    return np.array(states[::-1])


def _trend_nats(sizes: NDArray[np.int64], stalled: NDArray[np.bool_]) -> float:
    """Return the length in nats of the description without cuts.

    It has one share for all sizes, or a share that follows the size or its logarithm.
    """
    count, hits = float(sizes.size), float(stalled.sum())
    flat = -float(_log_likelihood(np.array([hits]), np.array([count]))[0]) + math.log(count) / 2
    by_size = (_logistic_nats(x, stalled) for x in (sizes.astype(np.float64), np.log1p(sizes.clip(0))))
    return min(flat, *(nats + math.log(count) for nats in by_size))


def _logistic_nats(x: Counts, stalled: NDArray[np.bool_]) -> float:
    """Return the negative log-likelihood of the fitted logistic curve.

    The curve is fitted by Newton's method. A ridge penalty keeps the slope finite at a sharp threshold.
    """
    spread = float(x.std()) or 1.0
    design = np.stack([np.ones(x.size), (x - x.mean()) / spread])
    weights, hit = np.zeros(2), stalled.astype(np.float64)
    ridge = np.diag([1e-6, 1e-3])
    for _ in range(TREND_ROUNDS):
        share = 1 / (1 + np.exp(-(weights @ design).clip(-30, 30)))
        slope = design @ (hit - share) - ridge @ weights
        weights = weights + np.linalg.solve((design * (share * (1 - share))) @ design.T + ridge, slope)
        weights[1] = weights[1].clip(-STEEPEST, STEEPEST)
    score = (weights @ design).clip(-30, 30)
    return float((np.log1p(np.exp(score)) - hit * score).sum())
