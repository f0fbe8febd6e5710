"""The stack models send the right bytes at the right times. Repeated runs give equal results."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tcptrace_lab.stacks import STACKS, Costs, Host, Link, Mark, Read, Repeat, Run, Setting, Step, Think, Write, simulate

KIB = 1024
MS = 1_000_000
SUNOS = STACKS["sunos4"]
TAXI = Link(100_000_000, 20_000, "atm")
"""A link with the rate of the ATM adapters in the papers, 100 Mb/s."""


def exchange(size: int, **host: object) -> Run:
    """Return a run in which one host sends a message of `size` bytes and the other host echoes it.

    Two SunOS hosts with buffers of 16 KB are connected by ATM. Their delayed-ACK timers (heartbeats) fire at multiples of 200 ms.
    """
    client = Host(SUNOS, 16 * KIB, 16 * KIB, program=(Mark("sent"), Write(size), Read(size), Mark("echoed"), Think(MS)), **host)  # type: ignore[arg-type]
    server = Host(SUNOS, 16 * KIB, 16 * KIB, program=(Read(size), Write(size), Think(300 * MS)))
    return simulate(Setting(client, server, TAXI, TAXI, 9148, no_slow_start=True), truth=True)


def test_a_message_of_two_writes_of_the_kernel_waits_for_the_heartbeat() -> None:
    """The kernel copies 8 KB in two parts of 4 KB (Liu et al.).

    It sends the first part at once. The second part waits until the delayed-ACK timer of the receiver sends an ACK.
    """
    run = exchange(8 * KIB)
    data = [p for p in run.packets if p.payload_bytes]
    assert [(p.from_client, p.seq, p.payload_bytes) for p in data[:2]] == [(True, 1, 4096), (True, 4097, 4096)]
    assert data[0].sent_ns < MS
    assert data[1].sent_ns == pytest.approx(200 * MS, abs=MS)
    (ack,) = [p for p in run.packets if not p.from_client and p.late_ack and p.ack == 4097]
    assert ack.sent_ns == 200 * MS


def test_no_delay_lets_the_second_half_go() -> None:
    assert exchange(8 * KIB, no_delay=True).packets[4].sent_ns < MS


@pytest.mark.parametrize("stack", sorted(STACKS))
def test_every_byte_arrives_in_order_and_both_sides_close(stack: str) -> None:
    size = 123_457
    client = Host(STACKS[stack], program=(Write(size, 1000),))
    server = Host(STACKS[stack], program=(Mark("start"), Read(), Mark("end")))
    run = simulate(Setting(client, server, Link(10_000_000, 50_000), Link(10_000_000, 50_000)))
    assert run.client.done
    assert run.server.done
    last = 1
    for packet in (p for p in run.packets if p.from_client and p.payload_bytes):
        assert packet.seq == last
        last += packet.payload_bytes
    assert last == size + 1
    assert max(p.ack for p in run.packets if not p.from_client) == size + 2  # SYN and FIN have one sequence number each


@pytest.mark.parametrize("stack", sorted(STACKS))
@pytest.mark.parametrize("seed", range(3))
def test_lost_packets_are_sent_again_until_all_has_come(stack: str, seed: int) -> None:
    size = 80_000
    lossy = Link(10_000_000, 2 * MS, loss=0.05, seed=seed)
    client = Host(STACKS[stack], 16 * KIB, 16 * KIB, program=(Write(size),))
    server = Host(STACKS[stack], 16 * KIB, 16 * KIB, program=(Read(),))
    run = simulate(Setting(client, server, lossy, lossy))
    assert run.client.done
    assert run.server.done
    assert any(p.arrived_ns is None for p in run.packets)
    assert max(p.ack for p in run.packets if not p.from_client) == size + 2


def test_a_run_is_the_same_every_time() -> None:
    assert [repr(p) for p in exchange(20_000).packets] == [repr(p) for p in exchange(20_000).packets]


def test_a_frame_waits_until_the_line_is_free() -> None:
    """On Ethernet, a segment of 1,460 bytes takes 1,538 bytes of the line. At 10 Mb/s, this takes 1,230.4 µs."""
    client = Host(SUNOS, 16 * KIB, 16 * KIB, program=(Write(4380),))
    run = simulate(
        Setting(client, Host(SUNOS, 16 * KIB, 16 * KIB, program=(Read(),)), Link(10_000_000), Link(10_000_000), no_slow_start=True)
    )
    data = [p for p in run.packets if p.payload_bytes == 1460]
    assert data[1].sent_ns - data[0].sent_ns == 1_230_400


def test_a_slow_reader_closes_the_window() -> None:
    client = Host(SUNOS, 32 * KIB, 16 * KIB, program=(Write(60_000),))
    server = Host(SUNOS, 16 * KIB, 16 * KIB, program=(Think(900 * MS), Read()))
    run = simulate(Setting(client, server, TAXI, TAXI, mss_bytes=1024, no_slow_start=True), truth=True)
    assert run.server.done
    assert min(p.window_bytes for p in run.packets if not p.from_client) == 0
    waited = sum(h.end_ns - h.start_ns for h in run.truth if h.from_client and h.cause in {"zero-window", "receiver-window"})
    assert waited == pytest.approx(900 * MS, rel=0.05)


def test_interrupts_make_the_program_wait() -> None:
    """The application copies 80 KB at 1 ms per KB, which takes 80 ms. Each ACK takes 1 ms of processor time in addition."""
    costs = Costs(copy_in_ns_per_kib=MS, ack_in_ns=MS)
    client = Host(SUNOS, 16 * KIB, 16 * KIB, costs=costs, program=(Mark("a"), Write(80 * KIB), Mark("b")))
    run = simulate(Setting(client, Host(SUNOS, 16 * KIB, 16 * KIB, program=(Read(),)), TAXI, TAXI, 9148, no_slow_start=True))
    came = [p for p in run.packets if not p.from_client]
    assert run.client.busy_ns == (80 + len(came)) * MS
    (copied,) = run.client.spans("a", "b")
    assert copied > 80 * MS


@pytest.mark.parametrize("size", [100, 5000, 12_000, 40_000])
def test_the_ledger_covers_each_directions_life_as_its_sender_sees_it(size: int) -> None:
    run = exchange(size)
    for way in (True, False):
        seen = [at for p in run.packets if (at := p.sent_ns if p.from_client == way else p.arrived_ns) is not None]
        holds = [h for h in run.truth if h.from_client == way]
        assert (holds[0].start_ns, holds[-1].end_ns) == (min(seen), max(seen))
        assert all(a.end_ns == b.start_ns and a.cause != b.cause for a, b in pairwise(holds))


def held(run: Run, cause: str) -> float:
    """Return the share of the lifetime of the client's direction that `cause` takes."""
    life = [h for h in run.truth if h.from_client]
    return sum(h.end_ns - h.start_ns for h in life if h.cause == cause) / (life[-1].end_ns - life[0].start_ns)


def bulk(rate_bps: int, send: int, receive: int, *, stack: str = "linux", no_delay: bool = True) -> Run:
    """Return a run that transfers 400 KB over a path with an RTT of 40 ms."""
    link = Link(rate_bps, 20 * MS)
    client = Host(STACKS[stack], send, receive, no_delay=no_delay, program=(Write(400_000, 8192),))
    server = Host(STACKS[stack], send, receive, no_delay=no_delay, program=(Read(),))
    return simulate(Setting(client, server, link, link, no_slow_start=True), truth=True)


def test_the_ledger_blames_the_buffer_that_is_smaller_than_what_the_path_holds() -> None:
    """At 100 Mb/s and an RTT of 40 ms, the path has room for 500 KB.

    A buffer of 16 KB keeps the line busy for only 1.5 ms of each RTT.
    """
    assert held(bulk(100_000_000, 16_384, 131_072), "send-buffer") > 0.85
    assert held(bulk(100_000_000, 131_072, 16_384), "receiver-window") > 0.9


def test_the_ledger_blames_the_line_that_never_stands_idle() -> None:
    """At 2 Mb/s and an RTT of 40 ms, the path has room for 10 KB. Both buffers are larger."""
    assert held(bulk(2_000_000, 65_536, 65_536), "network") > 0.9


def test_the_ledger_blames_lost_packets() -> None:
    """Recovery lasts from a retransmission to its ACK.

    Its duration is the RTT of 10 ms, plus the time in which the line sends the segments that were queued before the retransmission.
    """
    link = Link(10_000_000, 5 * MS, lost=frozenset({20, 40, 60}))
    client = Host(STACKS["linux"], program=(Write(200_000, 8192),))
    run = simulate(Setting(client, Host(STACKS["linux"], program=(Read(),)), link, Link(10_000_000, 5 * MS)), truth=True)
    resent = [p.sent_ns for p in run.packets if p.resent_for == "loss-recovery"]
    repairs = [h for h in run.truth if h.from_client and h.cause == "loss-recovery"]
    assert len(resent) == 3
    assert sum(h.end_ns - h.start_ns for h in repairs) > 1.2 * MS
    assert all(any(sent <= h.start_ns and h.end_ns <= sent + 65 * MS for sent in resent) for h in repairs)


def test_until_the_third_duplicate_ack_came_the_ledger_blames_what_held_the_sender_and_not_the_loss() -> None:
    """The segments in flight fill the window, and the first of them is lost.

    The sender learns of the loss from the third duplicate ACK. Until then, the window is the cause.
    """
    link = Link(100_000_000, 5 * MS, lost=frozenset({30}))
    client, server = (Host(STACKS["linux"], 65_536, 16 * 1460, program=program) for program in ((Write(200_000, 8192),), (Read(),)))
    run = simulate(Setting(client, server, link, Link(100_000_000, 5 * MS), no_slow_start=True), truth=True)
    (resent,) = (p for p in run.packets if p.resent_for)
    _, _, _, duplicate_ns, *_ = sorted(p.arrived_ns or 0 for p in run.packets if not p.from_client and p.ack == resent.seq)
    flight_ns = max(p.sent_ns for p in run.packets if p.from_client and p.sent_ns < resent.sent_ns)
    (waited,) = (h for h in run.truth if h.from_client and h.end_ns > flight_ns + MS and h.start_ns < resent.sent_ns)
    assert duplicate_ns - flight_ns > 5 * MS
    assert (waited.cause, waited.end_ns) == ("receiver-window", duplicate_ns)
    assert resent.sent_ns == duplicate_ns


@pytest.mark.parametrize(("stack", "send_bytes"), [("sunos4", 65_536), ("freebsd", 16 * 1460)], ids=["one segment again", "a full buffer"])
def test_until_the_repair_is_acknowledged_the_ledger_blames_the_loss(stack: str, send_bytes: int) -> None:
    """The ACK of the retransmission arrives one RTT after the retransmission.

    Until then, the sender can send nothing, because Tahoe's congestion window or the send buffer is full.
    """
    link = Link(100_000_000, 5 * MS, lost=frozenset({40}))
    client, server = (Host(STACKS[stack], send_bytes, 65_536, program=program) for program in ((Write(200_000, 8192),), (Read(),)))
    run = simulate(Setting(client, server, link, Link(100_000_000, 5 * MS)), truth=True)
    (resent,) = (p for p in run.packets if p.resent_for == "loss-recovery")
    acked_ns = min(p.arrived_ns or 0 for p in run.packets if not p.from_client and p.ack > resent.seq)
    waited = [h for h in run.truth if h.from_client and resent.sent_ns + MS < h.end_ns and h.start_ns < acked_ns - MS]
    assert {h.cause for h in waited if h.end_ns - h.start_ns > MS} == {"loss-recovery"}


def test_small_writes_that_nothing_holds_need_no_window_for_a_full_segment() -> None:
    """4.2BSD sends each write of 100 bytes at once until the send buffer of 8 KB is full.

    The receiver's window of 16 KB then has 8 KB left. This is less than a full segment of 9,148 bytes, but enough for a write.
    """
    link = Link(45_000_000, 40 * MS, "atm")
    client, server = (Host(STACKS["bsd4.2"], 8 * KIB, 16 * KIB, program=program) for program in ((Write(100_000, 100),), (Read(),)))
    run = simulate(Setting(client, server, link, link, mss_bytes=9148), truth=True)
    assert held(run, "send-buffer") > 0.5
    assert held(run, "receiver-window") == 0


def test_what_its_program_fills_waited_for_no_ack_however_late_the_last_one_was_and_the_next_is() -> None:
    """The application writes 700 bytes every 10 ms, and delayed-ACK timers (heartbeats) send the ACKs.

    When a write fills a segment, the segment leaves at once. It waits for no ACK.
    """
    link = Link(10_000_000, MS)
    client = Host(SUNOS, 16 * KIB, 16 * KIB, program=(Repeat((Write(700), Think(10 * MS)), 60),))
    run = simulate(Setting(client, Host(SUNOS, 16 * KIB, 16 * KIB, program=(Read(),)), link, link, no_slow_start=True), truth=True)
    arrived = {p.arrived_ns for p in run.packets if not p.from_client}
    late = [h for h in run.truth if h.from_client and h.cause == "nagle-delayed-ack"]
    assert held(run, "nagle") > 0.2
    assert all(h.end_ns in arrived for h in late)


def test_a_late_ack_of_a_part_that_comes_with_the_write_that_fills_a_segment_does_not_let_it_go() -> None:
    """The application writes 5,000 bytes every 50 ms, and the receiver delays its ACKs by 50 ms.

    Nagle's algorithm delays a small segment until all data in flight are acknowledged. An ACK of only a part does not release it.
    """
    link = Link(100_000_000, 40 * MS)
    solaris = STACKS["solaris2.5"]
    client = Host(solaris, 16 * KIB, 16 * KIB, program=(Repeat((Write(5000), Think(50 * MS)), 20),))
    server = Host(solaris, 52_428, 52_428, program=(Read(),))
    run = simulate(Setting(client, server, link, link, mss_bytes=4312), truth=True)
    late = [h.end_ns for h in run.truth if h.from_client and h.cause == "nagle-delayed-ack"]
    assert held(run, "nagle") > 0.1
    for left in (p for p in run.packets if p.from_client and p.decided_ns in late):
        assert left.seq <= max(p.ack for p in run.packets if not p.from_client and (p.arrived_ns or 0) <= left.decided_ns)


@pytest.mark.parametrize(("no_delay", "cause"), [(False, "nagle-delayed-ack"), (True, "delayed-ack")])
def test_the_ledger_distinguishes_a_held_segment_from_a_full_buffer(*, no_delay: bool, cause: str) -> None:
    """The send buffer is 16K in both cases.

    With a receive buffer of 36K, Nagle's algorithm delays 4 KB, which causes a deadlock. With a receive buffer of 48K, a deadlock occurs
    even without Nagle's algorithm (Comer & Lin, Liu et al.).
    """
    receive = 48 * KIB if no_delay else 36 * KIB
    client = Host(SUNOS, 16 * KIB, receive, no_delay=no_delay, program=(Write(400_000, 4096),))
    run = simulate(Setting(client, Host(SUNOS, 16 * KIB, receive, program=(Read(),)), TAXI, TAXI, 9148, no_slow_start=True), truth=True)
    assert held(run, cause) > 0.9


def test_a_late_ack_that_lets_nothing_go_is_not_what_a_full_buffer_waits_for() -> None:
    """The send buffer of 4 KB is full of segments of at most 536 bytes.

    A delayed ACK frees only one segment. This is too little: the application waits until half of the buffer is free.
    """
    link = Link(155_000_000, 40 * MS)
    client, server = (
        Host(STACKS["irix6.2"], 4 * KIB, 32 * KIB, no_delay=True, program=program) for program in ((Write(50_000, 8192),), (Read(),))
    )
    run = simulate(Setting(client, server, link, link, mss_bytes=536, no_slow_start=True), truth=True)
    arrived_late = {p.arrived_ns for p in run.packets if not p.from_client and p.late_ack}
    left = {p.decided_ns for p in run.packets if p.from_client and p.payload_bytes}
    assert arrived_late - left, "no late ACK without effect"
    assert all(h.end_ns in arrived_late & left for h in run.truth if h.from_client and h.cause == "delayed-ack")


def test_the_ledger_says_what_was_built() -> None:
    """Three times, the client sends 8 KB, receives 8 KB, and pauses for 10 ms.

    In each round, each direction waits once for a delayed-ACK timer (heartbeat).
    """
    steps = (Write(8 * KIB), Read(8 * KIB), Think(10 * MS))
    client = Host(SUNOS, 16 * KIB, 16 * KIB, program=(Repeat(steps, 3),))
    server = Host(SUNOS, 16 * KIB, 16 * KIB, program=(Repeat((Read(8 * KIB), Write(8 * KIB)), 3), Think(500 * MS)))
    run = simulate(Setting(client, server, TAXI, TAXI, 9148, no_slow_start=True), truth=True)
    spent = dict.fromkeys((h.cause for h in run.truth if h.from_client), 0)
    for hold in run.truth:
        if hold.from_client:
            spent[hold.cause] += hold.end_ns - hold.start_ns
    assert spent["application"] == pytest.approx(30 * MS, rel=0.02)
    # The delayed-ACK timers fire at multiples of 200 ms. Requests are complete at 200, 600 and 1000 ms, and answers at 400, 800 and 1200
    # ms.
    assert spent["nagle-delayed-ack"] == pytest.approx(200 * MS + 190 * MS + 190 * MS, rel=0.02)
    assert spent["peer"] == pytest.approx(3 * 200 * MS, rel=0.02)


KERNEL_WAITS = [[100, 100], [100, 100, 100], [2000, 100, 100], [300, 700, 100], [500, 600, 100], [5000, 10, 10], [976, 10, 100]]
KERNEL_GOES = [[988, 100], [1500, 100], [100, 988, 100], [100, 1500], [100, 500, 500], [988, 988, 100], [988, 100, 100], [100, 1900]]
"""Sizes of the writes before each read of an answer, measured on a 6.18 kernel over loopback with an MSS of 988.

With the writes in `KERNEL_WAITS`, each exchange after the first takes 44 ms. With those in `KERNEL_GOES`, no exchange waits, because the
ACK arrives before the next write.
"""


@pytest.mark.parametrize("writes", KERNEL_WAITS, ids=str)
def test_linux_holds_a_small_segment_behind_a_small_one(writes: list[int]) -> None:
    assert all(trip == pytest.approx(44, abs=1) for trip in answered("linux", writes)[1:])


@pytest.mark.parametrize("writes", KERNEL_GOES, ids=str)
def test_linux_lets_go_what_the_kernel_lets_go(writes: list[int]) -> None:
    assert max(answered("linux", writes)) < 1


def test_linux_acknowledges_the_first_segments_at_once() -> None:
    assert answered("linux", [100, 100])[0] < 1


@pytest.mark.parametrize(
    ("writes", "waits"),
    [([100, 100], True), ([988, 100], True), ([1500, 100], False), ([100, 988, 100], False)],
    ids=str,
)
def test_freebsd_waits_40_ms_unless_a_second_segment_comes(writes: list[int], waits: bool) -> None:  # noqa: FBT001
    """The receiver acknowledges every second full segment.

    Nagle's algorithm delays small segments (docs/how-it-decides.md, 1.1 and 1.3).
    """
    trips = answered("freebsd", writes)
    assert all(trip == pytest.approx(40, abs=1) if waits else trip < 1 for trip in trips)


@pytest.mark.parametrize("stack", sorted(set(STACKS) - {"md-dos"}))
def test_no_delay_answers_without_a_wait(stack: str) -> None:
    assert max(answered(stack, [100, 100], no_delay=True)) < 1


def answered(stack: str, writes: list[int], *, no_delay: bool = False) -> list[float]:
    """Return the durations of six exchanges over loopback, in milliseconds.

    In an exchange, the client makes these writes and reads an answer of 100 bytes.
    """
    option_bytes = STACKS[stack].option_bytes
    steps: tuple[Step, ...] = (Mark("sent"), *(Write(size) for size in writes), Read(100), Mark("answered"))
    costs = Costs(write_call_ns=10_000)
    client = Host(STACKS[stack], 65_536, 65_536, no_delay=no_delay, costs=costs, program=(Repeat(steps, 6),))
    server = Host(STACKS[stack], 65_536, 65_536, no_delay=no_delay, program=(Repeat((Read(sum(writes)), Write(100)), 6),))
    loopback = Link(0, 2_000, "bare")
    run = simulate(Setting(client, server, loopback, loopback, 988 + option_bytes))
    return [span / MS for span in run.client.spans("sent", "answered")]


@pytest.mark.parametrize("seed", range(80))
def test_whatever_is_exchanged_comes_to_its_end(seed: int) -> None:
    """The hosts have random stacks, and buffers that can be smaller than a segment. The lines are slow and lose packets.

    Every transfer still ends, and the ledgers have no gaps.
    """
    chance = Random(seed)  # noqa: S311 - the same every time
    buffers = (0, 1024, 2048, 5000, 16_384, 65_536)
    size, answer, times = chance.choice([1, 99, 1460, 5000, 30_000]), chance.choice([1, 100, 3000, 20_000]), chance.randint(1, 4)
    asks: tuple[Step, ...] = (Repeat((Write(size, chance.choice([0, 100, 1024])), Read(answer)), times),)
    answers: tuple[Step, ...] = (Repeat((Read(size, chance.choice([0, 512])), Write(answer)), times),)
    if chance.random() < 0.4:
        asks, answers = (Write(size * times, chance.choice([0, 1000])),), (Think(chance.choice([0, 500 * MS])), Read())

    def link() -> Link:
        rate, far = chance.choice([0, 64_000, 1_000_000, 100_000_000]), chance.choice([0, 10_000, 5 * MS, 100 * MS])
        return Link(rate, far, chance.choice(["ethernet", "atm", "bare"]), loss=chance.choice([0, 0, 0.01, 0.1]), seed=seed)

    def host(program: tuple[Step, ...]) -> Host:
        stack = STACKS[chance.choice(sorted(STACKS))]
        send, receive, no_delay = chance.choice(buffers), chance.choice(buffers), chance.random() < 0.3
        return Host(stack, send, receive, no_delay=no_delay, phase_ns=chance.randrange(200 * MS), program=program)

    run = simulate(Setting(host(asks), host(answers), link(), link(), chance.choice([100, 536, 1460, 9148])), truth=True)
    assert run.client.done
    assert run.server.done
    for way in (True, False):
        holds = [h for h in run.truth if h.from_client == way]
        assert all(a.end_ns == b.start_ns for a, b in pairwise(holds))


@pytest.mark.parametrize(("stack", "wait_ms"), [("bsd4.2", 200), ("sunos4", 0)])
def test_two_full_segments_let_an_ack_go_since_4_3_bsd_and_not_before(stack: str, wait_ms: int) -> None:
    """The client sends two full segments, together 2,048 bytes. These bytes are an eighth of the receive buffer.

    4.2BSD sends an ACK at once only after 35% of the buffer. Here, its delayed-ACK timer sends the ACK after up to 200 ms.
    """
    client = Host(STACKS[stack], 16 * KIB, 16 * KIB, program=(Write(2 * KIB), Think(1000 * MS)))
    server = Host(STACKS[stack], 16 * KIB, 16 * KIB, program=(Read(2 * KIB), Think(1000 * MS)))
    run = simulate(Setting(client, server, Link(10_000_000, MS), Link(10_000_000, MS), mss_bytes=1024, no_slow_start=True))
    assert next(p.sent_ns for p in run.packets if p.ack == 2 * KIB + 1) // MS == pytest.approx(wait_ms, abs=10)


@pytest.mark.parametrize(("free", "reported"), [(1023, 0), (1024, 1024)])
def test_4_2_bsd_advertises_less_than_a_quarter_of_its_buffer_as_zero_even_if_it_advertised_more(free: int, reported: int) -> None:
    client = Host(STACKS["bsd4.2"], 8 * KIB, 8 * KIB, program=(Write(4096 - free), Think(1000 * MS)))
    server = Host(STACKS["bsd4.2"], 4096, 4096, program=(Think(1000 * MS),))
    run = simulate(Setting(client, server, mss_bytes=1024, no_slow_start=True))
    assert next(p.window_bytes for p in run.packets if p.ack == 4096 - free + 1) == reported


@pytest.mark.parametrize("no_delay", [False, True])
def test_a_cork_holds_200_ms_with_nodelay_too(no_delay: bool) -> None:  # noqa: FBT001
    """TCP_CORK delays data for at most 200 ms (tcp(7)).

    The kernel uses the timer of its window probes for this. The timer takes at least 200 ms (`tcp_probe0_base`).
    """
    client = Host(STACKS["linux"], no_delay=no_delay, cork=True, program=(Write(100), Write(100), Think(1000 * MS)))
    run = simulate(Setting(client, Host(STACKS["linux"], program=(Read(),))))
    (sent,) = [p for p in run.packets if p.payload_bytes]
    assert (sent.payload_bytes, sent.sent_ns) == (200, 200 * MS)


@pytest.mark.parametrize("stack", ["bsd4.4", "solaris2.5", "freebsd", "linux"])
def test_a_second_loss_of_a_window_is_repaired_without_a_timeout_if_duplicate_acks_follow(stack: str) -> None:
    """With Reno, the ACK of the first retransmit ends the recovery.

    This ACK releases new data. The new data cause three duplicate ACKs, which reveal the second loss. NewReno retransmits the second lost
    segment at once.
    """
    client = Host(STACKS[stack], 32 * KIB, 32 * KIB, program=(Write(120_000),))
    line = Link(10_000_000, 5 * MS, lost=frozenset({2, 2 + 17}))
    server = Host(STACKS[stack], 32 * KIB, 32 * KIB, program=(Read(),))
    run = simulate(Setting(client, server, line, Link(10_000_000, 5 * MS), no_slow_start=True))
    assert [p.resent_for for p in run.packets if p.resent_for] == ["loss-recovery"] * 2
    assert run.server.done
