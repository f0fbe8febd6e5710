"""The rules of each stack predict which message sizes stall.

The tests compare the predictions with the ranges that Liu, Cheng, Bhargava and Zhao measured, and with ranges calculated by hand. In these
tests, K is 1,024 bytes.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptrace_lab.stacks import STACKS as MODELS
from tcptrace_lab.stacks import Host, Link, Read, Setting, Think, Write, simulate
from tcptrace_lab.stacks.events import NS_PER_S
from tcptrace_lab.stacks.ranges import (
    STACKS,
    Acks,
    Range,
    Settings,
    Stalls,
    deadlock,
    predicted_ranges,
    stalled_share,
)
from tcptrace_lab.stacks.runs import runs
from tcptrace_lab.stacks.thresholds import BSD44_PERCENT, SUNOS_PERCENT, ack_bytes

K = 1024
ATM, ETHERNET = 9148, 1460
SUNOS, BSD44, LINUX = STACKS["sunos4"], STACKS["bsd4.4"], STACKS["linux"]


def slow_ack_ranges(mss: int, send: int, receive: int, last: int = 50 * K, copy: int = 4 * K) -> list[tuple[int, int]]:
    """Return the ranges of sizes that stall if ACKs are slow, from 1 to `last` bytes.

    The paper assumes slow ACKs: each ACK arrives after the application has written the next piece.
    """
    asked = Settings(mss, send, receive, copy)
    return [(low, high) for low, high, stalled in runs(lambda size: SUNOS.stalled(asked, size, Acks.SLOW), 1, last) if stalled]


def always(found: tuple[Range, ...]) -> list[tuple[int, int]]:
    return [(one.from_bytes, one.to_bytes) for one in found if one.stalls is Stalls.ALWAYS]


def test_atm_ranges_are_those_of_the_paper_for_every_size_to_50_k() -> None:
    """With a window of 16K, the receiver sends an ACK after half of it, 8,192 bytes.

    The published slow ranges are (12n+4)K+1 to 12(n+1)K-1 bytes, for n = 0, 1, 2 and so on.
    """
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
    """The text of the paper has the range 4K+1 to 4K+M-1, where M is the MSS.

    Its formula has the ranges 4K+(2n+1)M+1 to 4K+(2n+2)M-1, for n = 0, 1, 2 and so on.
    """
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
    """While nothing is in flight, the sender sends 4,096 bytes at once.

    The next segment waits until a full segment of 9,148 bytes is queued.

    So the first size that does not wait is 13,244 bytes.
    """
    assert slow_ack_ranges(ATM, send, receive)[: len(expected)] == expected


def test_pieces_of_another_size_move_the_atm_ranges() -> None:
    assert slow_ack_ranges(ATM, 16 * K, 16 * K, copy=8 * K) != slow_ack_ranges(ATM, 16 * K, 16 * K)


def test_without_nagles_algorithm_no_size_stalls() -> None:
    for mss in (ATM, ETHERNET):
        assert predicted_ranges(SUNOS, Settings(mss, 16 * K, 16 * K, 4 * K, nodelay=True)) == ()


def test_without_nagle_a_window_that_35_percent_of_exceed_the_send_buffer_still_locks() -> None:
    """The send buffer is 16K, and the receive buffer is 48K.

    The receiver sends an ACK after 17,204 bytes, but the sender can send only 16,384.
    """
    asked = Settings(ATM, 16 * K, 48 * K, 4 * K, nodelay=True)
    assert ack_bytes(ATM, 48 * K, SUNOS_PERCENT) == 17204
    assert always(predicted_ranges(SUNOS, asked)) == [(16 * K + 1, 64 * K)]


def test_4_4bsd_sends_101_to_207_bytes_in_two_segments() -> None:
    """4.4BSD sends the first 100 bytes, which fill one mbuf, in a segment of their own. The rest waits for the ACK.

    From 208 bytes (MINCLSIZE) on, all data fit into one cluster (Heidemann 1997).
    """
    found = always(predicted_ranges(BSD44, Settings(ETHERNET, 16 * K, 16 * K, 2 * K), 1, 2 * K))
    assert found == [(101, 207)]


def test_linux_holds_a_small_segment_only_behind_a_small_one() -> None:
    """A write of 4,096 bytes ends with a small segment of 1,200 bytes, because the MSS is 1448.

    If the next segment is small too, it waits for the ACK of those 1,200 bytes. The message stalls if the delayed-ACK timer sends this ACK.
    After a full segment, a small segment does not wait. In a Linux 6.18 kernel, messages stalled from 4097, 8193 and 12289 bytes on.
    """
    found = predicted_ranges(LINUX, Settings(1448, 64 * K, 64 * K, 4 * K), 1, 20_000)
    assert [(one.from_bytes, one.to_bytes) for one in found] == [(4096 * n + 1, 4096 * n + 1447) for n in (1, 2, 3, 4)]
    assert {one.stalls for one in found} == {Stalls.BY_TIMING}
    assert not LINUX.stalled(Settings(1448, 64 * K, 64 * K, 64 * K), 60_000, Acks.SLOW)  # the message is one write
    assert predicted_ranges(LINUX, Settings(1448, 64 * K, 64 * K, 4 * K, nodelay=True)) == ()


@pytest.mark.parametrize(("writes", "stalls"), [(100, True), (988, False)])
def test_linux_model_agrees_with_what_a_kernel_did_on_loopback(writes: int, stalls: bool) -> None:  # noqa: FBT001
    """In the measurement, the MSS was 988 bytes (docs/how-it-decides.md, 1.1).

    A write of 100 bytes waited 44 ms if it followed a write of 100 bytes. It did not wait if it followed a write of 988 bytes.
    """
    asked = Settings(988, 64 * K, 64 * K, writes)
    assert {LINUX.stalled(asked, writes + 100, acks) for acks in Acks} == {stalls}


def test_buffers_that_cannot_lock_are_those_of_the_condition() -> None:
    """A deadlock is possible if the send buffer is smaller than `needed_bytes`.

    `needed_bytes` is the number of bytes after which the receiver sends an ACK, plus the number of bytes that the sender waits for. The
    send buffer is 16,384 bytes. With a receive buffer of 16K, 13,927 bytes are needed. With 24K, 17,750 bytes are needed, and Comer and Lin
    measured a slow transfer.
    """
    free, locked = (deadlock(SUNOS, Settings(ATM, 16 * K, receive, 4 * K)) for receive in (16 * K, 24 * K))
    assert free is not None
    assert locked is not None
    assert (free.needed_bytes, free.possible) == (13_927, False)
    assert (locked.needed_bytes, locked.possible) == (17_750, True)
    assert deadlock(LINUX, Settings(ATM, 16 * K, 24 * K, 4 * K)) is None


def streamed_s(stack: str, asked: Settings) -> float:
    """Return the time in seconds in which the stack model sends 100 KB over Ethernet, in writes of `copy_bytes`."""
    client = Host(MODELS[stack], asked.send_buffer_bytes, asked.receive_buffer_bytes, program=(Write(100_000, asked.copy_bytes),))
    server = Host(MODELS[stack], asked.send_buffer_bytes, asked.receive_buffer_bytes, phase_ns=33_000_000, program=(Read(),))
    line = Link(10_000_000, 5_000)
    run = simulate(Setting(client, server, line, line, asked.mss_bytes, no_slow_start=True))
    return max(p.sent_ns for p in run.packets if p.payload_bytes) / 1e9


@pytest.mark.parametrize(
    ("stack", "asked"),
    [
        ("sunos4", Settings(ETHERNET, 3000, 4096, 1024)),  # 1,024 in flight, ACK at 1,434; Nagle delays 1,024; 952 free < 1 cluster
        ("bsd4.4", Settings(ETHERNET, 4380, 4380, 2048)),  # 2,048 in flight, ACK at 2,190; Nagle delays 1,400; 932 free < 1 cluster
        ("irix6.2", Settings(ETHERNET, 4096, 4096, 1024)),  # Law: two segments; 1,024 in flight, ACK at 1,460; 872 free < 1 write
    ],
)
def test_a_buffer_that_suffices_locks_if_writes_leave_some_of_it_unused(stack: str, asked: Settings) -> None:
    """The send buffer is as large as the rule against deadlocks demands, but its free part is too small for the next write.

    The model then reaches less than a twentieth of the line's rate.
    """
    lock = deadlock(STACKS[stack], asked)
    assert lock is not None
    assert lock.send_buffer_bytes >= lock.needed_bytes
    assert lock.possible
    assert streamed_s(stack, asked) > 20 * 0.08


@pytest.mark.parametrize(
    ("stack", "asked", "doubt"),
    [
        ("sunos4", Settings(ETHERNET, 3000, 4096, 512), False),  # writes smaller than a cluster can use any free part
        ("irix6.2", Settings(ETHERNET, 4380, 4380, 1024), True),  # Law: the smallest buffer that does not lock
        ("sunos4", Settings(ETHERNET, 4096, 4096, 1024), False),  # 1,460 + 1,434 + 1,023 are less than 4,096
    ],
)
def test_a_buffer_whose_every_byte_is_used_or_that_has_more_than_enough_does_not_lock(stack: str, asked: Settings, doubt: bool) -> None:  # noqa: FBT001
    lock = deadlock(STACKS[stack], asked)
    assert lock is not None
    assert (lock.possible, lock.possible_if_unused) == (False, doubt)
    assert streamed_s(stack, asked) < 0.2


def test_sizes_are_those_in_force() -> None:
    """4.4BSD rounds the MSS down to whole clusters, and it rounds buffers up to whole segments. IRIX rounds buffers down."""
    assert BSD44.in_force(Settings(ATM, 16 * K, 16 * K, 2 * K)) == Settings(8192, 16 * K, 16 * K, 2 * K)
    assert BSD44.in_force(Settings(ETHERNET, 4096, 1000, 2 * K)) == Settings(ETHERNET, 4380, 1000, 2 * K)
    assert STACKS["irix6.2"].in_force(Settings(ETHERNET, 4096, 61_440, 2 * K)) == Settings(ETHERNET, 2920, 61_320, 2 * K)
    assert SUNOS.in_force(Settings(ATM, 5000, 7000, 4 * K)) == Settings(ATM, 5000, 7000, 4 * K)
    assert predicted_ranges(BSD44, Settings(ETHERNET, 4096, 4096, 2 * K)) == predicted_ranges(BSD44, Settings(ETHERNET, 4380, 4380, 2 * K))


@pytest.mark.parametrize("key", ["sunos4", "bsd4.4"])
@pytest.mark.parametrize("seed", range(40))
def test_rules_say_what_the_model_of_the_stack_does_if_acks_come_late(key: str, seed: int) -> None:
    """For random messages and writes, the rules agree with the simulation.

    In the simulation, transmission takes microseconds, and the applications take no time.
    """
    chance = random.Random(seed)  # noqa: S311 - the same every time
    rules, sizes = STACKS[key], (2048, 3000, 4096, 5120, 8192, 8760, 12_000, 16_384, 24_576)
    copy = chance.choice([rules.copy_bytes, 1460, 1024, 512, 100])
    asked = rules.in_force(Settings(chance.choice([536, 988, 1448, 1460, 4312, 9148]), chance.choice(sizes), chance.choice(sizes), copy))
    call = 0 if copy >= rules.copy_bytes else copy
    line = Link(1_000_000_000, 500, "bare")
    for size in (chance.randint(1, 30_000) for _ in range(10)):
        buffers = asked.send_buffer_bytes, asked.receive_buffer_bytes
        client = Host(MODELS[key], *buffers, program=(Write(size, call), Think(NS_PER_S)))
        server = Host(MODELS[key], *buffers, program=(Read(size),))
        setting = Setting(client, server, line, line, asked.mss_bytes, no_slow_start=True, until_ns=NS_PER_S // 6)
        assert rules.stalled(asked, size, Acks.SLOW) == (not simulate(setting).server.done), (asked, size)


@given(mss=st.integers(1, 65_535), receive=st.integers(1, 2**30), percent=st.sampled_from([SUNOS_PERCENT, BSD44_PERCENT]))
def test_three_full_segments_of_send_buffer_never_lock(mss: int, receive: int, percent: int) -> None:
    """Comer and Lin advise a send buffer of three full segments.

    This buffer suffices if the receiver sends an ACK after at most two full segments, and the sender waits for at most one segment.
    """
    assert ack_bytes(mss, receive, percent) + min(mss, receive // 2) <= 3 * mss


@settings(max_examples=20)
@given(
    key=st.sampled_from(sorted(STACKS)),
    mss=st.integers(200, 3000),
    send=st.integers(300, 8000),
    receive=st.integers(300, 8000),
    copy=st.integers(200, 5000),
    nodelay=st.booleans(),
)
def test_ranges_say_of_every_size_what_that_size_alone_says(key: str, mss: int, send: int, receive: int, copy: int, nodelay: bool) -> None:  # noqa: FBT001
    stack, last = STACKS[key], 5000
    asked = stack.in_force(Settings(mss, send, receive, copy, nodelay=nodelay))
    said = {size: one.stalls for one in predicted_ranges(stack, asked, 1, last) for size in range(one.from_bytes, one.to_bytes + 1)}
    for size in range(1, last + 1, 13):
        ways = {stack.stalled(asked, size, acks) for acks in stack.ack_timings}
        alone = Stalls.BY_TIMING if len(ways) == 2 else Stalls.ALWAYS if True in ways else Stalls.NEVER
        assert said.get(size, Stalls.NEVER) is alone, size


def test_the_share_of_stalled_sizes_is_what_the_paper_says() -> None:
    """The average covers whole periods of 12K sizes."""
    found = predicted_ranges(SUNOS, Settings(ATM, 16 * K, 16 * K, 4 * K), 1, 48 * K)
    assert stalled_share(found, 1, 48 * K) == pytest.approx(2 / 3, abs=0.001)


def test_settings_that_no_connection_has_are_refused() -> None:
    with pytest.raises(ValueError, match="copy_bytes"):
        Settings(1460, 16 * K, 16 * K, 0)


def test_a_message_in_too_many_pieces_is_refused() -> None:
    with pytest.raises(ValueError, match="65,536 bytes in pieces of 1 "):
        predicted_ranges(SUNOS, Settings(1, 16 * K, 16 * K, 4 * K))
