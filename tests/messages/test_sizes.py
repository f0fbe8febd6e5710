"""Slow ranges of sizes are found in artificial durations of messages."""

from __future__ import annotations

import math
from itertools import combinations, groupby, pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptrace_lab.messages import size_cuts
from tcptrace_lab.messages.sizes import Look, SlowRange, by_clarity, median_interval, predictive_tail, runs_z, slow_ranges, wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray

MS = 1_000_000
K = 1024
STALL_NS = 10 * MS


def swept(step: int, last: int = 32 * K, times: int = 1) -> NDArray[np.int64]:
    return np.repeat(np.arange(1, last, step), times)


def within(sizes: NDArray[np.int64], *ranges: tuple[int, int]) -> NDArray[np.bool_]:
    found = np.zeros(sizes.size, np.bool_)
    for low, high in ranges:
        found |= (sizes >= low) & (sizes <= high)
    return found


def reported(
    sizes: NDArray[np.int64], stalled: NDArray[np.bool_], extra_ns: float = 40 * MS, per_byte_ns: float = 80
) -> tuple[SlowRange, ...]:
    """Return the slow ranges that are found in these messages.

    The duration of a message is proportional to its size, plus random jitter. Each message in `stalled` takes `extra_ns` longer.
    """
    jitter = np.random.default_rng(1).exponential(50_000, sizes.size)
    held_ns = (stalled * extra_ns).astype(np.int64)
    return slow_ranges(sizes, (sizes * per_byte_ns + jitter).astype(np.int64) + held_ns, held_ns, Look(stalled, STALL_NS))


@pytest.mark.parametrize("step", [97, 341])
def test_ranges_with_three_messages_per_kilobyte_are_found(step: int) -> None:
    """The messages have the slow ranges of TCP over ATM, with 3 or 10 messages per KB.

    A range that is found begins and ends at a size that was sent.
    """
    put_in = [(4 * K + 1, 12 * K - 1), (16 * K + 1, 24 * K - 1), (28 * K + 1, 36 * K - 1)]
    sizes = swept(step)
    found = reported(sizes, within(sizes, *put_in))
    expected = [(int(inside.min()), int(inside.max())) for inside in (sizes[within(sizes, one)] for one in put_in)]
    assert [(one.from_bytes, one.to_bytes) for one in found] == expected
    for one, (low, high) in zip(found, put_in, strict=True):
        assert one.min_from_bytes is not None
        assert one.min_from_bytes <= low
        assert one.max_to_bytes is None or one.max_to_bytes >= high
        assert one.stalled_share == 1
        assert one.median_ns - one.normal_median_ns == pytest.approx(40 * MS, rel=0.02)


def test_narrow_bands_side_by_side_are_found_with_three_messages_per_kilobyte() -> None:
    """The sizes are divided into bands of 1,460 bytes. Every second band stalls, as on Ethernet.

    Each band has four or five messages.
    """
    put_in = [(5557 + 2920 * n, 7015 + 2920 * n) for n in range(8)]
    sizes = swept(330, 30 * K)
    found = reported(sizes, within(sizes, *put_in))
    assert len(found) == 8
    for one, (low, high) in zip(found, put_in, strict=True):
        assert low <= one.from_bytes <= one.to_bytes <= high


def test_narrow_bands_are_found_where_a_tenth_of_their_messages_does_not_stall() -> None:
    """In a tenth of the messages, the delayed-ACK timer expires at once, so these messages do not stall.

    A single band of four or five messages proves nothing. All bands together are a proof, because the share of stalls is nearly equal in
    all of them.
    """
    bands = [(5557 + 2920 * n, 7015 + 2920 * n) for n in range(8)]
    sizes = swept(330, 30 * K)
    shown = right = 0
    for seed in range(20):
        stalled = within(sizes, *bands) & (np.random.default_rng(seed).random(sizes.size) < 0.9)
        found = reported(sizes, stalled)
        for low, high in bands:
            inside = [one for one in found if low <= one.to_bytes and one.from_bytes <= high]
            shown += int(stalled[within(sizes, (low, high))].sum()) >= 3
            right += len(inside) == 1 and low <= inside[0].from_bytes <= inside[0].to_bytes <= high
    assert shown > 140
    assert right >= 0.9 * shown


def test_bigger_is_slower_is_no_range() -> None:
    sizes = swept(100)
    times = (sizes * 20_000).astype(np.int64)
    assert slow_ranges(sizes, times, np.zeros_like(times), Look(np.zeros(sizes.size, np.bool_), STALL_NS)) == ()


@pytest.mark.parametrize("seed", range(5))
def test_stalls_that_grow_likelier_with_size_are_no_range(seed: int) -> None:
    """Packet loss causes the stalls. Every byte has the same probability of loss, so larger messages stall more often."""
    sizes = swept(100)
    stalled = np.random.default_rng(seed).random(sizes.size) < sizes / sizes.max() * 0.95
    assert reported(sizes, stalled, 200 * MS) == ()


@pytest.mark.parametrize("most", [0.5, 0.7, 1.0])
def test_hardly_a_trend_over_few_sizes_is_taken_for_a_range(most: float) -> None:
    """The share of messages that stall grows evenly with size, from 0 to `most`. There are three messages per KB."""
    sizes = np.arange(150, 30_000, 330)
    chance = most * (sizes - sizes[0]) / (sizes[-1] - sizes[0])
    taken = [reported(sizes, np.random.default_rng(seed).random(sizes.size) < chance, 100 * MS) != () for seed in range(100)]
    assert sum(taken) <= 2


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(5))
def test_stalls_at_any_size_are_no_range(share: float, seed: int) -> None:
    sizes = swept(100)
    assert reported(sizes, np.random.default_rng(seed).random(sizes.size) < share) == ()


def test_few_messages_show_nothing() -> None:
    sizes = np.array([100, 200, 300, 5000, 5100, 5200, 9000, 9100, 9200], np.int64)
    assert reported(sizes, within(sizes, (5000, 5200))) == ()


def test_two_stalled_messages_of_one_size_are_no_range() -> None:
    sizes = np.sort(np.append(swept(500), [5000, 5000]))
    assert reported(sizes, within(sizes, (5000, 5000))) == ()


def test_a_threshold_above_which_all_stall_is_a_range_without_an_upper_end() -> None:
    sizes = swept(200)
    (one,) = reported(sizes, within(sizes, (16 * K + 1, 64 * K)))
    assert (one.to_bytes, one.max_to_bytes) == (sizes.max(), None)
    assert one.min_from_bytes is not None
    assert one.min_from_bytes <= 16 * K + 1 <= one.from_bytes


def test_a_range_up_to_the_largest_size_is_found_beside_others_though_one_of_its_first_messages_does_not_stall() -> None:
    """Some messages do not stall, because the delayed-ACK timer expires at once for them.

    If stalls continue up to the largest size, they are possibly a trend. Here, they count as a range, because the other ranges have both
    ends.
    """
    bands = [(4000, 8000), (12_000, 16_000), (20_000, 24_000), (28_000, 30_000)]
    sizes = np.arange(150, 30_000, 330)
    stalled = within(sizes, *bands) & ~within(sizes, (6000, 6200), (28_500, 28_600))
    found = reported(sizes, stalled)
    assert [(one.from_bytes, one.to_bytes) for one in found] == [(4110, 7740), (12_030, 15_990), (20_280, 23_910), (28_200, 29_850)]
    assert found[-1].max_to_bytes is None
    assert reported(sizes, stalled & (sizes > 28_000)) == ()


def test_five_normal_sizes_are_enough_beside_many_that_all_stall() -> None:
    """The stack copies messages in pieces of 2 KB. All messages larger than one piece stall."""
    sizes = np.arange(480, 30_000, 330)
    (one,) = reported(sizes, within(sizes, (2049, 30_000)))
    assert (one.min_from_bytes, one.from_bytes, one.to_bytes, one.max_to_bytes) == (1801, 2130, 29_850, None)
    assert one.median_ns - one.normal_median_ns == pytest.approx(40 * MS, rel=0.02)


def test_sizes_far_apart_do_not_show_where_a_range_begins() -> None:
    """Messages have some hundred bytes or nearly 100 kB, and the large ones stall.

    Between these sizes, the share of stalls possibly grows gradually.
    """
    sizes = np.append(np.arange(100, 300, 20), np.arange(98_000, 99_000, 50))
    assert reported(sizes, within(sizes, (98_000, 99_000))) == ()


def test_three_normal_messages_of_twenty_may_stand_at_one_end_by_chance() -> None:
    """Only the three smallest messages do not stall.

    In a group of twenty messages, three random messages are the three smallest or the three largest in 2 of 1,140 cases. This is too often
    for a conclusion. In a group of forty, this happens in only 2 of 9,880 cases.
    """
    few, more = np.arange(1000, 3000, 100), np.arange(1000, 5000, 100)
    assert reported(few, few > 1200) == ()
    assert [(one.from_bytes, one.to_bytes) for one in reported(more, more > 1200)] == [(1300, 4900)]


def test_sizes_that_stall_less_than_half_as_often_belong_to_no_range_beside_them() -> None:
    """From 4,000 to 12,000 bytes, all messages stall. Above 12,000 bytes, one message in three stalls."""
    sizes = np.arange(150, 30_000, 110)
    stalled = within(sizes, (4000, 12_000))
    stalled |= (sizes > 12_000) & (np.arange(sizes.size) % 3 == 2)
    assert [(one.from_bytes, one.to_bytes) for one in reported(sizes, stalled)] == [(4000, 11_920)]


def test_where_everything_stalls_nothing_is_slow_beside_its_neighbours() -> None:
    sizes = swept(200)
    assert reported(sizes, np.ones(sizes.size, np.bool_)) == ()


def test_a_range_of_which_most_but_not_all_stall_is_found_with_its_share() -> None:
    sizes = swept(50)
    stalled = within(sizes, (8000, 16000)) & (np.random.default_rng(7).random(sizes.size) < 0.8)
    (one,) = reported(sizes, stalled)
    low, high = one.stalled_share_interval
    assert low < 0.8 < high
    assert [one.from_bytes, one.to_bytes] == pytest.approx([8000, 16000], abs=300)


def test_stalls_that_cost_nothing_are_no_range() -> None:
    sizes = swept(200)
    assert reported(sizes, within(sizes, (8000, 12000)), extra_ns=2 * MS) == ()


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 70_000), st.integers(-(10**9), 10**12), st.booleans()), max_size=300))
def test_any_messages_give_ranges_that_do_not_overlap(messages: list[tuple[int, int, bool]]) -> None:
    sizes: NDArray[np.int64] = np.array([one[0] for one in messages], np.int64)
    times: NDArray[np.int64] = np.array([one[1] for one in messages], np.int64)
    stalled: NDArray[np.bool_] = np.array([one[2] for one in messages], np.bool_)
    found = slow_ranges(sizes, times, times // 2, Look(stalled, STALL_NS))
    for one in found:
        assert one.from_bytes <= one.to_bytes
        assert 0 <= one.stalled_share_interval[0] <= one.stalled_share <= one.stalled_share_interval[1] <= 1
    for one, after in pairwise(found):
        assert one.to_bytes < after.from_bytes


def test_many_sizes_take_bounded_time() -> None:
    """The messages have every size from 1 byte to 64 KB. Random stalls give the largest number of blocks."""
    sizes = np.arange(1, 64 * K)
    assert reported(sizes, np.random.default_rng(3).random(sizes.size) < 0.5) == ()


def test_intervals_are_those_of_the_textbook() -> None:
    """Wilson's interval for 8 successes in 10 trials is 0.490 to 0.943 (Newcombe 1998, method 3).

    The interval of the median of the numbers 1 to 100 begins at 40 or 41, and it ends at 60 or 61.
    """
    assert list(wilson(8, 10)) == pytest.approx([0.4902, 0.9433], abs=1e-3)
    low, high = median_interval(np.arange(1.0, 101.0))
    assert low in {40, 41}
    assert high in {60, 61}


def test_runs_are_counted_as_wald_and_wolfowitz_do() -> None:
    """There are 25 messages in order of size. The 11 smallest stall, which gives 2 runs.

    The expected number of runs is 13.32, with a standard deviation of 2.41.
    """
    together = np.array([True] * 11 + [False] * 14)
    assert runs_z(together) == pytest.approx((2 - 13.32) / 2.413, abs=0.01)


@pytest.mark.parametrize(("ones", "zeros"), [(3, 7), (5, 5), (1, 9)])
def test_runs_of_few_messages_are_counted_one_arrangement_by_one(ones: int, zeros: int) -> None:
    """The expected probability is the share of all arrangements that have as many runs or fewer."""
    count = ones + zeros
    ways = [np.isin(np.arange(count), places) for places in combinations(range(count), ones)]
    runs = [int((way[1:] != way[:-1]).sum()) + 1 for way in ways]
    for way, own in zip(ways, runs, strict=True):
        share = sum(other <= own for other in runs) / len(runs)
        assert math.erfc(-runs_z(way) / math.sqrt(2)) / 2 == pytest.approx(min(share, 0.5))


def test_the_look_comes_first_in_which_stalls_stand_together_by_size() -> None:
    """Short waits that occur only in the slow range are the clearest sign of it.

    Short waits that occur at any size are jitter.
    """
    sizes = np.arange(150, 30_000, 330)
    chance = np.random.default_rng(4).random(sizes.size)
    in_range = within(sizes, (4097, 12_000))
    long = Look(in_range & (chance < 0.7), STALL_NS)
    for short, first_ns in ((in_range, MS), (long.stalled | (chance > 0.8), STALL_NS), (long.stalled, STALL_NS)):
        assert by_clarity(sizes, long, Look(short, MS))[0].min_ns == first_ns


def test_chance_is_reckoned_from_samples() -> None:
    """No message in 10 has stalled.

    The probability that all of the next 3 stall is then the third moment of Beta(1/2, 21/2) (Jeffreys' prior).

    The probabilities of all outcomes add up to 1.
    """
    assert predictive_tail(3, 3, 0, 10) == pytest.approx(0.5 * 1.5 * 2.5 / (11 * 12 * 13))
    assert predictive_tail(0, 7, 2, 30) == pytest.approx(1)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5), st.integers(1, 4)), min_size=1, max_size=9),
    st.floats(0, 4),
)
def test_the_cheapest_states_are_those_that_trying_all_of_them_finds(blocks: list[tuple[float, float, int]], price: float) -> None:
    """The messages are divided into parts. Each part except the first and the last must have at least three messages."""

    def cost(states: tuple[bool, ...]) -> float:
        runs = [[place for place, _ in run] for _, run in groupby(enumerate(states), key=lambda one: one[1])]
        if any(sum(blocks[place][2] for place in run) < size_cuts.MIN_IN_PART for run in runs[1:-1]):
            return math.inf
        return sum(block[state] for block, state in zip(blocks, states, strict=True)) + price * (len(runs) - 1)

    costs = np.array([[block[state] for block in blocks] for state in (0, 1)])
    counts = np.array([float(block[2]) for block in blocks])
    found = tuple(bool(state) for state in size_cuts.cheapest(costs, counts, price))
    assert cost(found) == pytest.approx(min(cost(states) for states in product((False, True), repeat=len(blocks))))
