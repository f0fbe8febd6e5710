"""Which sizes stall, by the stacks' rules: against the ranges that Liu, Cheng, Bhargava and Zhao published and measured, size by size.

K is 1,024 bytes. Their formulas are written out here; ranges that they did not publish are calculated by hand beside the test.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptrace_lab.stacks.ranges import (
    BSD44_PERCENT,
    STACKS,
    SUNOS_PERCENT,
    Acks,
    Range,
    Settings,
    Stalls,
    ack_bytes,
    deadlock,
    predicted_ranges,
    stalled_share,
)
from tcptrace_lab.stacks.runs import runs

K = 1024
ATM, ETHERNET = 9148, 1460
SUNOS, BSD44, LINUX = STACKS["sunos4"], STACKS["bsd4.4"], STACKS["linux"]


def slow_ack_ranges(mss: int, send: int, receive: int, last: int = 50 * K, copy: int = 4 * K) -> list[tuple[int, int]]:
    """Ranges that stall if every ACK comes after the next piece was written: what the paper reckons with."""
    asked = Settings(mss, send, receive, copy)
    return [(low, high) for low, high, stalled in runs(lambda size: SUNOS.stalled(asked, size, Acks.SLOW), 1, last) if stalled]


def always(found: tuple[Range, ...]) -> list[tuple[int, int]]:
    return [(one.from_bytes, one.to_bytes) for one in found if one.stalls is Stalls.ALWAYS]


def test_atm_ranges_are_those_of_the_paper_for_every_size_to_50_k() -> None:
    """(12n+4)K+1 to 12(n+1)K-1; the release threshold is half the window, 8,192, hence 4K + 8K."""
    published = [((12 * n + 4) * K + 1, min(12 * (n + 1) * K - 1, 50 * K)) for n in range(4)]
    assert slow_ack_ranges(ATM, 16 * K, 16 * K) == published
    assert always(predicted_ranges(SUNOS, Settings(ATM, 16 * K, 16 * K, 4 * K), 1, 50 * K)) == published


@pytest.mark.parametrize("size", [4 * K + 1, 12 * K - 1, 16 * K + 1, 24 * K - 1, 28 * K + 1])
def test_sizes_that_the_paper_measured_slow_stall(size: int) -> None:
    assert SUNOS.stalled(Settings(ATM, 16 * K, 16 * K, 4 * K), size, Acks.SLOW)


@pytest.mark.parametrize("size", [1 * K, 4 * K, 12 * K, 16 * K, 24 * K, 28 * K, 100 * K])
def test_sizes_that_the_paper_measured_fast_do_not(size: int) -> None:
    assert not SUNOS.stalled(Settings(ATM, 16 * K, 16 * K, 4 * K), size, Acks.SLOW)


def test_ethernet_ranges_are_the_sentence_and_the_formula_of_the_paper() -> None:
    """4K+1 to 4K+M-1 by the sentence; 4K+(2n+1)M+1 to 4K+(2n+2)M-1, n from 0, by the formula."""
    sentence = (4 * K + 1, 4 * K + ETHERNET - 1)
    formula = [(4 * K + (2 * n + 1) * ETHERNET + 1, 4 * K + (2 * n + 2) * ETHERNET - 1) for n in range(16)]
    published = [(low, min(high, 50 * K)) for low, high in (sentence, *formula) if low <= 50 * K]
    assert slow_ack_ranges(ETHERNET, 16 * K, 16 * K) == published


@pytest.mark.parametrize(
    ("send", "receive", "expected"),
    [
        (32 * K, 32 * K, [(4097, 13243), (22393, 31539)]),
        (16 * K, 24 * K, [(4097, 13243), (16385, 25531), (29629, 37819)]),
        (52 * K, 52 * K, [(4097, 13243), (13245, 22391), (31541, 40687)]),
    ],
)
def test_other_buffers_move_the_atm_ranges(send: int, receive: int, expected: list[tuple[int, int]]) -> None:
    """4K leaves idle; then M must gather: 4096 + 9148 = 13,244 is the first size that does not wait."""
    assert slow_ack_ranges(ATM, send, receive)[: len(expected)] == expected


def test_pieces_of_another_size_move_the_atm_ranges() -> None:
    assert slow_ack_ranges(ATM, 16 * K, 16 * K, copy=8 * K) != slow_ack_ranges(ATM, 16 * K, 16 * K)


def test_without_nagles_algorithm_no_size_stalls() -> None:
    for mss in (ATM, ETHERNET):
        assert predicted_ranges(SUNOS, Settings(mss, 16 * K, 16 * K, 4 * K, nodelay=True)) == ()


def test_without_nagle_a_window_that_35_percent_of_exceed_the_send_buffer_still_locks() -> None:
    """S = 16K, R = 48K: the receiver waits for 17,204 bytes and the sender cannot have more than 16,384 unacknowledged."""
    asked = Settings(ATM, 16 * K, 48 * K, 4 * K, nodelay=True)
    assert ack_bytes(ATM, 48 * K, SUNOS_PERCENT) == 17204
    assert always(predicted_ranges(SUNOS, asked)) == [(16 * K + 1, 64 * K)]


def test_4_4bsd_sends_101_to_207_bytes_in_two_segments() -> None:
    """An mbuf of 100 bytes leaves, and the rest waits for its ACK; from 208 (MINCLSIZE) on a cluster takes all. Heidemann 1997."""
    found = always(predicted_ranges(BSD44, Settings(ETHERNET, 16 * K, 16 * K, 2 * K), 1, 2 * K))
    assert found == [(101, 207)]


def test_linux_holds_a_small_segment_only_behind_a_small_one() -> None:
    """Writes of 4,096 at M = 1448 end in 1,200. One small segment more waits for their ACK, if that is the timer's.

    It is, unless one ACK covers the whole write. A full segment more lets it go. A 6.18 kernel did so from 4097, 8193, 12289 on.
    """
    found = predicted_ranges(LINUX, Settings(1448, 64 * K, 64 * K, 4 * K), 1, 20_000)
    assert [(one.from_bytes, one.to_bytes) for one in found] == [(4096 * n + 1, 4096 * n + 1447) for n in (1, 2, 3, 4)]
    assert {one.stalls for one in found} == {Stalls.BY_TIMING}
    assert not LINUX.stalled(Settings(1448, 64 * K, 64 * K, 64 * K), 60_000, Acks.SLOW)  # one write
    assert predicted_ranges(LINUX, Settings(1448, 64 * K, 64 * K, 4 * K, nodelay=True)) == ()


@pytest.mark.parametrize(("writes", "stalls"), [(100, True), (988, False)])
def test_linux_model_agrees_with_what_a_kernel_did_on_loopback(writes: int, stalls: bool) -> None:  # noqa: FBT001
    """Measured with M = 988: two writes of 100 took 44 ms, 988 and 100 none (rule book, A1)."""
    asked = Settings(988, 64 * K, 64 * K, writes)
    assert {LINUX.stalled(asked, writes + 100, acks) for acks in Acks} == {stalls}


def test_buffers_that_cannot_lock_are_those_of_the_condition() -> None:
    """A3: S < H + A. 16K/16K: 8192 + 5735 = 13,927; 16K/24K: 9148 + 8602 = 17,750 > 16,384: Comer and Lin's slow cell."""
    free, locked = (deadlock(SUNOS, Settings(ATM, 16 * K, receive, 4 * K)) for receive in (16 * K, 24 * K))
    assert free is not None
    assert locked is not None
    assert (free.needed_bytes, free.possible) == (13_927, False)
    assert (locked.needed_bytes, locked.possible) == (17_750, True)
    assert deadlock(LINUX, Settings(ATM, 16 * K, 24 * K, 4 * K)) is None


@given(mss=st.integers(1, 65_535), receive=st.integers(1, 2**30), percent=st.sampled_from([SUNOS_PERCENT, BSD44_PERCENT]))
def test_three_full_segments_of_send_buffer_never_lock(mss: int, receive: int, percent: int) -> None:
    """Comer and Lin's advice, for A <= 2M and H <= M."""
    assert ack_bytes(mss, receive, percent) + min(mss, receive // 2) <= 3 * mss


@settings(max_examples=20, deadline=None)
@given(
    key=st.sampled_from(sorted(STACKS)),
    mss=st.integers(200, 3000),
    send=st.integers(300, 8000),
    receive=st.integers(300, 8000),
    copy=st.integers(200, 5000),
    nodelay=st.booleans(),
)
def test_ranges_say_of_every_size_what_that_size_alone_says(key: str, mss: int, send: int, receive: int, copy: int, nodelay: bool) -> None:  # noqa: FBT001
    stack, asked, last = STACKS[key], Settings(mss, send, receive, copy, nodelay=nodelay), 5000
    said = {size: one.stalls for one in predicted_ranges(stack, asked, 1, last) for size in range(one.from_bytes, one.to_bytes + 1)}
    for size in range(1, last + 1, 13):
        ways = {stack.stalled(asked, size, acks) for acks in stack.ways}
        alone = Stalls.BY_TIMING if len(ways) == 2 else Stalls.ALWAYS if True in ways else Stalls.NEVER
        assert said.get(size, Stalls.NEVER) is alone, size


def test_the_share_of_stalled_sizes_is_what_the_paper_says() -> None:
    """Two thirds on ATM, counted over whole periods of 12K."""
    found = predicted_ranges(SUNOS, Settings(ATM, 16 * K, 16 * K, 4 * K), 1, 48 * K)
    assert stalled_share(found, 1, 48 * K) == pytest.approx(2 / 3, abs=0.001)


def test_settings_that_no_connection_has_are_refused() -> None:
    with pytest.raises(ValueError, match="copy_bytes"):
        Settings(1460, 16 * K, 16 * K, 0)


def test_a_message_in_too_many_pieces_is_refused() -> None:
    with pytest.raises(ValueError, match="65,536 bytes in pieces of 1 "):
        predicted_ranges(SUNOS, Settings(1, 16 * K, 16 * K, 4 * K))
