"""The offset of two clocks is estimated from artificial delays. The true offset must be within the stated error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptrace_lab.pair.clocks import HULL_BUCKETS, Clock, align

if TYPE_CHECKING:
    from numpy.typing import NDArray

START_NS = 1_700_000_000_000_000_000
MS_NS, S_NS = 1_000_000, 1_000_000_000


def seen(
    packets: int, *, seconds: float, offset_ns: int = 0, drift: float = 0.0, there_ms: float = 10.0, back_ms: float = 10.0, seed: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the times at which each clock saw the packets, and whether each packet goes from the first clock to the second.

    The packets alternate between the two directions. Each delay is the minimum delay of its direction plus a random part.
    """
    random = np.random.default_rng(seed)
    there = np.arange(packets) % 2 == 0
    sent_ns = np.sort(random.integers(0, int(seconds * S_NS), packets))
    delay_ns = np.where(there, there_ms, back_ms) * MS_NS + random.exponential(0.3 * MS_NS, packets)
    arrived_ns = sent_ns + delay_ns.astype(np.int64)
    at_first, at_second = np.where(there, sent_ns, arrived_ns), np.where(there, arrived_ns, sent_ns)
    second = START_NS + at_second + offset_ns + np.rint(at_second * drift).astype(np.int64)
    return START_NS + at_first, second, there


def aligned(*arguments: int, **settings: float) -> Clock:
    clock = align(*seen(*arguments, **settings), resolution_ns=1)  # type: ignore[arg-type]
    assert clock is not None
    return clock


def truth_at(clock: Clock, offset_ns: int, drift: float) -> float:
    """Return the true offset of the second clock, at the time for which `clock` states its estimate."""
    return offset_ns + (clock.reference_ns - START_NS) * drift


@pytest.mark.parametrize("offset_ns", [0, 1, -37 * S_NS, 3 * 365 * 86_400 * S_NS])
def test_constant_offset_is_recovered_within_the_stated_error(offset_ns: int) -> None:
    clock = aligned(2_000, seconds=60, offset_ns=offset_ns)
    assert abs(clock.offset_ns - offset_ns) <= clock.symmetric_error_ns <= 100_000
    assert clock.drift == 0
    assert clock.drift_error < 1e-5
    assert abs(clock.rtt_min_ns - 20 * MS_NS) <= 100_000


@pytest.mark.parametrize("drift", [50e-6, -200e-6, 900e-6])
def test_drift_is_recovered_within_the_stated_error(drift: float) -> None:
    clock = aligned(4_000, seconds=60, offset_ns=5 * S_NS, drift=drift)
    assert abs(clock.drift - drift) <= clock.drift_error <= 10e-6
    assert abs(clock.offset_ns - truth_at(clock, 5 * S_NS, drift)) <= clock.symmetric_error_ns


def test_times_go_there_and_back_between_the_clocks() -> None:
    clock = aligned(2_000, seconds=600, offset_ns=-7 * S_NS, drift=100e-6)
    times = START_NS + np.array([0, 123_456_789, 600 * S_NS])
    assert np.abs(clock.on_first(times + clock.ahead_ns(times)) - times).max() <= 2


def test_unequal_ways_shift_the_offset_by_half_their_difference_and_the_error_says_so() -> None:
    """The delay is 5 ms in one direction and 25 ms in the other.

    The estimate assumes equal delays, so it is wrong by 10 ms.
    """
    clock = aligned(2_000, seconds=60, there_ms=5, back_ms=25)
    assert abs(clock.offset_ns - -10 * MS_NS) <= clock.symmetric_error_ns
    assert 10 * MS_NS <= clock.error_ns <= 16 * MS_NS


def test_queue_that_grows_one_way_is_no_drift() -> None:
    """The queueing delay of one direction grows by 20 ms during the capture.

    This is no clock drift, because a drift would change the delays of both directions.
    """
    first, second, there = seen(2_000, seconds=20)
    second = second + np.where(there, (first - START_NS) // 1_000, 0)
    clock = align(first, second, there, resolution_ns=1)
    assert clock is not None
    assert clock.drift_error >= abs(clock.drift)
    assert abs(clock.offset_ns) <= clock.symmetric_error_ns


def test_clock_that_is_set_during_the_capture_is_noticed() -> None:
    first, second, there = seen(2_000, seconds=20)
    stepped = align(first, second + np.where(first > START_NS + 10 * S_NS, S_NS, 0), there, resolution_ns=1)
    assert stepped is not None
    assert stepped.stepped
    assert not aligned(2_000, seconds=20).stepped


def test_short_exchange_says_that_drift_is_not_known() -> None:
    clock = aligned(6, seconds=0.05, offset_ns=S_NS)
    assert clock.drift == 0
    assert clock.drift_error >= 500e-6
    assert abs(clock.offset_ns - S_NS) <= clock.error_ns


def test_packets_of_one_way_only_align_nothing() -> None:
    first, second, there = seen(100, seconds=1)
    assert align(first[there], second[there], there[there], resolution_ns=1) is None


def test_very_many_packets_are_thinned_without_losing_the_extremes() -> None:
    clock = aligned(20 * HULL_BUCKETS, seconds=300, offset_ns=S_NS, drift=30e-6)
    assert abs(clock.drift - 30e-6) <= clock.drift_error <= 2e-6
    assert abs(clock.offset_ns - truth_at(clock, S_NS, 30e-6)) <= clock.symmetric_error_ns <= 100_000


@settings(max_examples=40)
@given(
    packets=st.integers(4, 300),
    seconds=st.floats(0.001, 1_000),
    offset_ns=st.integers(-S_NS, S_NS),
    drift=st.floats(-500e-6, 500e-6),
    there_ms=st.floats(0.001, 100),
    back_ms=st.floats(0.001, 100),
    seed=st.integers(0, 1_000),
)
def test_error_in_any_case_holds_the_truth_in_any_case(
    packets: int, seconds: float, offset_ns: int, drift: float, there_ms: float, back_ms: float, seed: int
) -> None:
    clock = aligned(packets, seconds=seconds, offset_ns=offset_ns, drift=drift, there_ms=there_ms, back_ms=back_ms, seed=seed)
    assert abs(clock.offset_ns - truth_at(clock, offset_ns, drift)) <= clock.error_ns + 2
    assert not clock.stepped
