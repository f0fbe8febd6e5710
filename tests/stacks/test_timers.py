"""The timers of the stack models have the values in the stacks' sources. The models send data as soon as the window opens."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tcptrace_lab.stacks import STACKS, Host, Link, Read, Run, Setting, Think, Write, simulate
from tcptrace_lab.stacks.events import NS_PER_MS as MS
from tcptrace_lab.stacks.events import NS_PER_S
from tcptrace_lab.stacks.packet import SYN

KIB = 1024
LINE = Link(10_000_000, MS)
OPENS_NS = 150 * NS_PER_S


def shut(stack: str, *, phase_ns: int = 0) -> Run:
    """Return a run that transfers 30 KB in writes of 1 KB.

    The receiver has a buffer of 4 KB. Its application reads nothing for the first 150 s.
    """
    client = Host(STACKS[stack], 4 * KIB, 4 * KIB, phase_ns=phase_ns, program=(Write(30 * KIB, KIB),))
    server = Host(STACKS[stack], 4 * KIB, 4 * KIB, program=(Think(OPENS_NS), Read(30 * KIB)))
    return simulate(Setting(client, server, LINE, LINE, no_slow_start=True), truth=True)


def probes(run: Run) -> list[int]:
    """Return the times in nanoseconds at which the client sends window probes."""
    closed_ns = next(p.arrived_ns for p in run.packets if not p.from_client and p.ack > 1 and not p.window_bytes)
    return [p.sent_ns for p in run.packets if p.from_client and (closed_ns or 0) < p.sent_ns < OPENS_NS]


@pytest.mark.parametrize("stack", ["sunos4", "bsd4.4", "bsd4.2"])
def test_bsd_probes_after_5_s_three_times_then_doubles_up_to_a_minute(stack: str) -> None:
    """The timer starts at 1 s and doubles: 1, 2, 4, 8, 16, 32, 64 s.

    `tcp_setpersist` raises values below 5 s to 5 s, and it limits values to 60 s.
    """
    steps = [(after - before) / NS_PER_S for before, after in pairwise(probes(shut(stack)))]
    assert steps == [5, 5, 8, 16, 32, 60][: len(steps)]
    assert len(steps) >= 5


def test_linux_probes_after_200_ms_and_doubles() -> None:
    """Linux starts with its retransmission timeout, here 200 ms, and doubles it (`tcp_probe0_when`).

    Unlike BSD, it has no minimum of 5 s.
    """
    steps = [(after - before) / MS for before, after in pairwise(probes(shut("linux")))]
    assert steps == [200 * 2**n for n in range(1, len(steps) + 1)]
    assert len(steps) >= 8


def test_bsd_probes_with_the_next_byte_and_linux_with_none_from_before_the_last_that_was_acknowledged() -> None:
    for stack, length, back in (("sunos4", 1, 0), ("linux", 0, 1)):
        run = shut(stack)
        at = probes(run)
        asked = [p for p in run.packets if p.from_client and p.sent_ns in at]
        una = max(p.ack for p in run.packets if not p.from_client and (p.arrived_ns or 0) < at[0])
        assert {(p.seq, p.payload_bytes) for p in asked} == {(una - back, length)}
        answers = [p for p in run.packets if not p.from_client and at[0] < p.sent_ns < OPENS_NS]
        assert [(p.ack, p.window_bytes) for p in answers] == [(una, 0)] * len(asked)


@pytest.mark.parametrize("stack", sorted(STACKS))
def test_a_window_that_opens_is_used_at_once_however_many_probes_there_were(stack: str) -> None:
    """The byte of a window probe does not count as in flight.

    No timeout retransmits it, and probes do not reduce the congestion window.
    """
    run = shut(stack)
    opened_ns = next(p.arrived_ns for p in run.packets if not p.from_client and p.sent_ns >= OPENS_NS and p.window_bytes)
    assert next(p.sent_ns for p in run.packets if p.from_client and p.sent_ns >= OPENS_NS) == opened_ns
    assert not any(p.resent_for for p in run.packets)
    assert run.client.done
    assert run.server.done
    assert {h.cause for h in run.truth if h.from_client and h.start_ns <= OPENS_NS - NS_PER_S < h.end_ns} == {"zero-window"}


def test_a_byte_of_a_probe_that_a_bsd_receiver_has_room_for_is_taken_and_does_not_make_the_probes_frequent_again() -> None:
    """The receive buffer is full when the application reads 200 bytes.

    This is too little for a window update, but it makes room for the byte of a probe.
    """
    client = Host(STACKS["sunos4"], 8192, 8192, program=(Write(20_000),))
    server = Host(STACKS["sunos4"], 4096, 4096, program=(Think(2 * NS_PER_S), Read(200), Think(OPENS_NS), Read()))
    run = simulate(Setting(client, server, LINE, LINE, no_slow_start=True))
    asked = [p for p in run.packets if p.from_client and p.payload_bytes == 1 and p.sent_ns < OPENS_NS]
    assert [p.seq for p in asked] == list(range(asked[0].seq, asked[0].seq + len(asked)))
    assert [(b.sent_ns - a.sent_ns) / NS_PER_S for a, b in pairwise(asked)] == [5, 5, 8, 16, 32, 60][: len(asked) - 1]
    assert run.server.done


@pytest.mark.parametrize("phase_ms", [0, 100, 499])
def test_a_timer_of_bsd_counts_beats_and_the_first_may_come_at_once(phase_ms: int) -> None:
    """The SYN timer expires at the twelfth tick of a clock with ticks every 500 ms.

    The first tick comes after 0 to 500 ms, so the timer takes 5.5 to 6 s. Stevens measured 5.8 s (TCP/IP Illustrated 1, 18.3).
    """
    for stack in ("sunos4", "bsd4.4"):
        client = Host(STACKS[stack], phase_ns=phase_ms * MS, program=(Write(1),))
        lost = Link(10_000_000, MS, lost=frozenset({0}))
        run = simulate(Setting(client, Host(STACKS[stack], program=(Read(),)), lost, LINE))
        first, again = [p.sent_ns for p in run.packets if p.flags & SYN and p.from_client]
        assert 5.5 * NS_PER_S < again - first <= 6 * NS_PER_S
        assert (again - phase_ms * MS) % (500 * MS) == 0


@pytest.mark.parametrize(
    ("stack", "doubled"), [("sunos4", True), ("bsd4.4", True), ("solaris2.5", True), ("freebsd", False), ("linux", False)]
)
def test_what_was_sent_again_does_not_shorten_the_timer_without_timestamps(stack: str, doubled: bool) -> None:  # noqa: FBT001
    """Two segments are lost. The retransmission of the first segment arrives, and the retransmission of the second segment is lost.

    Without timestamps, the ACK of a retransmission is no RTT sample (Karn 1987; RFC 6298, 3; RFC 7323, 4). So the timer stays doubled.
    """
    client = Host(STACKS[stack], 16 * KIB, 16 * KIB, no_delay=True, program=(Write(2000), Think(20 * NS_PER_S)))
    line = Link(10_000_000, MS, lost=frozenset({2, 3, 5}))
    run = simulate(Setting(client, Host(STACKS[stack], 16 * KIB, 16 * KIB, program=(Read(),)), line, LINE, no_slow_start=True))
    data = [p for p in run.packets if p.from_client and p.payload_bytes]
    assert [p.seq for p in data] == [1, data[1].seq, 1, data[1].seq, data[1].seq]
    first, second = data[2].sent_ns - data[1].sent_ns, data[4].sent_ns - data[3].sent_ns
    assert second / first == pytest.approx(2 if doubled else 1, abs=0.5 if STACKS[stack].tick_ns else 0.05)
    assert run.server.done


@pytest.mark.parametrize(
    ("stack", "min_ms", "max_ms"), [("sunos4", 500, 1000), ("bsd4.4", 500, 1000), ("linux", 200, 210), ("freebsd", 230, 240)]
)
def test_the_timer_of_the_first_data_is_that_of_the_round_trip_and_not_that_of_the_syn(stack: str, min_ms: int, max_ms: int) -> None:
    """The handshake takes 2 ms. The timer of the first data is the minimum RTO of the stack, not the longer timer of the SYN."""
    client = Host(STACKS[stack], 16 * KIB, 16 * KIB, program=(Write(1000), Think(20 * NS_PER_S)))
    line = Link(10_000_000, MS, lost=frozenset({2}))
    run = simulate(Setting(client, Host(STACKS[stack], 16 * KIB, 16 * KIB, program=(Read(),)), line, LINE))
    sent, again = [p.decided_ns for p in run.packets if p.payload_bytes]
    assert min_ms <= (again - sent) / MS <= max_ms
