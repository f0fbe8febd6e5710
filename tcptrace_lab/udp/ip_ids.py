"""IPv4 identifications (IP ID) of one sender's datagrams → how many are missing and how many came late, where this can be decided.

The IP ID need only be unique while fragments are reassembled (RFC 6864), so hosts choose it differently: a counter per flow (a connected
socket of Linux), one counter for all that they send, random values, or 0. The steps between the IP IDs of a direction decide; each step is
taken in the shorter direction around the 65,536 values:

- nearly all steps are small and forward → a counter: a datagram behind a later one was reordered;
- a repeated value is a copy, and not a step;
- nearly all steps are 1 → a counter of this flow alone: a value that is left out is a missing datagram.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tcptrace_lab.udp.keyed_arrays import Dense, Sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALL_STEP = 1_000
"""Largest step of a counter. Nmap's OS detection treats larger steps as random (Nmap Network Scanning, TCP/IP fingerprinting, test TI)."""

COUNTER_SHARE = 0.95
"""If at least this share of the steps is between 1 and `SMALL_STEP`, the IP ID is a counter. A heuristic of ours: 1.5 % of random steps
are."""

OWN_COUNTER_SHARE = 0.90
"""If at least this share of the steps is 1, the counter belongs to this flow alone. A heuristic of ours: with more gaps, other flows may
use the values."""

MIN_STEPS = 10
"""Minimum number of steps before shares are judged. A heuristic of ours: the smallest number of which one in ten may differ."""

REPLAY_NUMBERS = 64
"""A datagram whose IP ID is among the last 64 values and was seen before is a copy: captured twice, or duplicated by the network. It is
neither late nor counted. (RFC 4303, 3.4.3, detects replayed packets like this, with 64 values.)"""

NONE = -1
"""No IP ID."""

_HALF, _RING = 1 << 15, 1 << 16
_GROUP_STRIDE = 1 << 34
"""More than the steps of one batch can add up to: a batch has fewer than 2^18 rows, and a step is at most 2^15."""

_BEFORE_ALL = -(1 << 62)


class IpIds:
    """Tracks the IP IDs of many directions, each identified by its `key`. Memory grows only with the keys."""

    def __init__(self) -> None:
        """Start without datagrams."""
        self._last = Dense(NONE, np.int32)
        self._seen = Dense(0, np.uint64)
        self._place, self._lowest, self._highest = (Dense(0) for _ in range(3))
        self._steps, self._ones, self._forward, self._late, self._repeated = (Sums() for _ in range(5))

    def add(self, key: NDArray[np.int64], ip_id: NDArray[np.int32]) -> None:
        """Add some datagrams.

        Args:
            key: direction of each datagram, sorted; within a direction in capture order. Fewer than 2^18.
            ip_id: IP ID of each datagram, or `NONE`.
        """
        known = ip_id != NONE
        key, ip_id = key[known], ip_id[known]
        if not key.size:
            return
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        keys = key[starts]
        group = np.repeat(np.arange(starts.size), np.diff(starts, append=key.size))
        position = self._positions(ip_id, starts, group, keys)
        reached = np.where(
            self._last.at(keys) == NONE, -_GROUP_STRIDE // 2, np.minimum(self._highest.at(keys) - self._place.at(keys), _GROUP_STRIDE // 2)
        )
        highest_before = _highest_before(position, group, starts, reached)
        first = ~self._copies(position, highest_before, group, keys, reached)
        self._note(position, starts, keys, reached)
        if first.any():
            self._count(key[first], ip_id[first], position[first], highest_before[first])

    def _positions(
        self, ip_id: NDArray[np.int32], starts: NDArray[np.int64], group: NDArray[np.int64], keys: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return how far the value of each datagram is from the position of its direction before this batch."""
        before = np.roll(ip_id, 1)
        before[starts] = self._last.at(keys)
        step = np.where(before != NONE, (ip_id - before + _HALF) % _RING - _HALF, 0).astype(np.int64)
        position = np.cumsum(step)
        position -= (position - step)[starts][group]
        return position

    def _copies(
        self,
        position: NDArray[np.int64],
        highest_before: NDArray[np.int64],
        group: NDArray[np.int64],
        keys: NDArray[np.int64],
        reached: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Whether each value was seen before, among the last `REPLAY_NUMBERS` up to the highest (the window of RFC 4303, 3.4.3)."""
        near = (position <= highest_before) & (highest_before - position < REPLAY_NUMBERS)
        if not near.any():
            return near
        again = np.ones_like(near)
        again[np.unique(group * _GROUP_STRIDE + position, return_index=True)[1]] = False
        below = reached[group] - position
        inside = (below >= 0) & (below < REPLAY_NUMBERS)
        bit = np.left_shift(np.uint64(1), np.where(inside, below, 0).astype(np.uint64))
        seen: NDArray[np.bool_] = near & (again | (inside & ((self._seen.at(keys)[group] & bit) != 0)))
        return seen

    def _note(self, position: NDArray[np.int64], starts: NDArray[np.int64], keys: NDArray[np.int64], reached: NDArray[np.int64]) -> None:
        """Record which of the last values were seen, and the lowest and highest of all."""
        stood = self._place.at(keys)
        highest = np.maximum(reached, np.maximum.reduceat(position, starts))
        below = np.repeat(highest, np.diff(starts, append=position.size)) - position
        bits = np.where(
            below < REPLAY_NUMBERS, np.left_shift(np.uint64(1), np.minimum(below, REPLAY_NUMBERS - 1).astype(np.uint64)), np.uint64(0)
        )
        moved = np.minimum(highest - reached, REPLAY_NUMBERS)
        kept = np.left_shift(self._seen.at(keys), np.minimum(moved, REPLAY_NUMBERS - 1).astype(np.uint64))
        self._seen.set(keys, np.where(moved < REPLAY_NUMBERS, kept, np.uint64(0)) | np.bitwise_or.reduceat(bits, starts))
        self._lowest.set(keys, np.minimum(self._lowest.at(keys), stood + np.minimum.reduceat(position, starts)))
        self._highest.set(keys, np.maximum(self._highest.at(keys), stood + np.maximum.reduceat(position, starts)))

    def _count(
        self, key: NDArray[np.int64], ip_id: NDArray[np.int32], position: NDArray[np.int64], highest_before: NDArray[np.int64]
    ) -> None:
        """Count the steps between datagrams, none of which is a copy."""
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        keys = key[starts]
        stepped = np.ones(key.size, dtype=np.bool_)
        stepped[starts] = self._last.at(keys) != NONE
        step = np.diff(position, prepend=0)
        step[starts] = position[starts]  # from the direction's last value
        self._late.add(keys, np.add.reduceat(stepped & (position < highest_before), starts, dtype=np.int64))
        for counts, counted in (
            (self._steps, stepped),
            (self._ones, stepped & (step == 1)),
            (self._forward, stepped & (step >= 1) & (step <= SMALL_STEP)),
            (self._repeated, stepped & (step == 0)),
        ):
            counts.add(keys, np.add.reduceat(counted, starts, dtype=np.int64))
        ends = np.append(starts[1:], key.size) - 1
        self._place.set(keys, self._place.at(keys) + position[ends])
        self._last.set(keys, ip_id[ends])

    def keep(self, kept: NDArray[np.int64]) -> None:
        """Forget all but some keys; see `Dense.keep`."""
        sums = (self._steps, self._ones, self._forward, self._late, self._repeated)
        for dense in (self._last, self._seen, self._place, self._lowest, self._highest, *sums):
            dense.keep(kept)

    def verdicts(self, keys: NDArray[np.int64]) -> pl.DataFrame:
        """Return `missing_datagrams reordered_datagrams` for some keys; null where unknown."""
        counts: dict[str, Dense] = {
            "steps": self._steps,
            "ones": self._ones,
            "forward": self._forward,
            "late": self._late,
            "repeated": self._repeated,
            "lowest": self._lowest,
            "highest": self._highest,
        }
        seen = pl.LazyFrame({name: dense.at(keys).astype(np.int64) for name, dense in counts.items()})
        steps = pl.col("steps")
        counter = (steps >= MIN_STEPS) & (pl.col("forward") >= steps * COUNTER_SHARE)
        own = counter & (pl.col("ones") >= steps * OWN_COUNTER_SHARE)
        numbers = pl.col("highest") - pl.col("lowest") + 1
        missing = numbers - (steps + 1 - pl.col("repeated"))
        verdicts = {"missing_datagrams": pl.when(own).then(missing.clip(0)), "reordered_datagrams": pl.when(counter).then("late")}
        return seen.select(expression.alias(name) for name, expression in verdicts.items()).collect()


def _highest_before(
    position: NDArray[np.int64], group: NDArray[np.int64], starts: NDArray[np.int64], reached: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the highest value of each row's direction before the row. `reached` is the highest value before this batch."""
    lift = group * _GROUP_STRIDE
    lifted = np.maximum.accumulate(position + lift) - lift  # moves a direction's rows above those of the direction before
    before = np.roll(lifted, 1)
    before[starts] = _BEFORE_ALL
    return np.maximum(before, reached[group])
