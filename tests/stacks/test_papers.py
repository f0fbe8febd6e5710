"""The stack models reproduce published measurements. `benchmarks/papers/run.py` makes longer runs."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest

from tests.support.places import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from papers import abrams_chen, comer_lin, law, liu, mosher, published

from tcptrace_lab.stacks.events import NS_PER_MS

MIB = 1 << 20

SLOW = [cell for cell, rate in published.comer_lin(no_delay=False).items() if rate < comer_lin.SLOW_MBPS]


@pytest.mark.parametrize("read_bytes", [comer_lin.CALL_BYTES, 2 * comer_lin.CALL_BYTES])
@pytest.mark.parametrize("no_delay", [False, True])
def test_each_pair_of_buffers_is_as_slow_or_as_fast_as_comer_and_lin_measured(no_delay: bool, read_bytes: int) -> None:  # noqa: FBT001
    measured = published.comer_lin(no_delay=no_delay)
    assert len(measured) == 100
    modelled = {c: comer_lin.mbps(*c, no_delay=no_delay, read_bytes=read_bytes, transfer_bytes=MIB) for c in measured}
    assert [cell for cell, rate in measured.items() if not comer_lin.agrees(rate, modelled[cell])] == []


@pytest.mark.parametrize("no_delay", [False, True])
def test_the_phase_of_the_heartbeats_locks_and_unlocks_nothing(no_delay: bool) -> None:  # noqa: FBT001
    """The model runs with two phases of the delayed-ACK timers (heartbeats).

    Model and measurement disagree in at most four of 400 runs about whether a transfer is slow.
    """
    measured = published.comer_lin(no_delay=no_delay)
    runs = [(cell, phase) for phase in comer_lin.PHASES_NS for cell in measured]
    assert len(runs) == 400
    modelled = {(cell, phase): comer_lin.mbps(*cell, no_delay=no_delay, phase_ns=phase, transfer_bytes=MIB) for cell, phase in runs}
    wrong = [cell for (cell, _), rate in modelled.items() if not comer_lin.agrees(measured[cell], rate)]
    assert set(wrong) <= comer_lin.UNFIRM
    assert len(wrong) <= 4


@pytest.mark.parametrize("cell", [cell for cell in SLOW if cell not in comer_lin.UNFIRM])
def test_a_locked_transfer_runs_at_the_measured_rate(cell: tuple[int, int]) -> None:
    rate = comer_lin.mbps(*cell, transfer_bytes=comer_lin.LONG_TRANSFER_BYTES)
    assert rate == pytest.approx(published.comer_lin(no_delay=False)[cell], rel=0.03)


@pytest.mark.parametrize("cell", [(16, 48), (16, 51)])
def test_no_delay_leaves_the_buffer_that_never_is_35_percent(cell: tuple[int, int]) -> None:
    rate = comer_lin.mbps(*cell, no_delay=True, transfer_bytes=comer_lin.LONG_TRANSFER_BYTES)
    assert rate == pytest.approx(published.comer_lin(no_delay=True)[cell], rel=0.01)


def test_without_the_35_percent_rule_fast_pairs_lock() -> None:
    measured = published.comer_lin(no_delay=False)
    stack = liu.without("percent")
    wrong = [c for c, rate in measured.items() if not comer_lin.agrees(rate, comer_lin.mbps(*c, stack=stack, transfer_bytes=MIB))]
    assert len(wrong) > 10
    assert all(measured[cell] > comer_lin.SLOW_MBPS for cell in wrong)


def test_with_a_rounded_segment_slow_pairs_do_not_lock() -> None:
    measured = published.comer_lin(no_delay=False)
    fast = [cell for cell in SLOW if not comer_lin.agrees(measured[cell], comer_lin.mbps(*cell, mss_bytes=8192, transfer_bytes=MIB))]
    assert len(fast) >= 5


@pytest.mark.parametrize(("atm", "spans"), [(True, liu.published_atm()), (False, liu.published_ethernet())], ids=["atm", "ethernet"])
def test_messages_stall_in_the_published_ranges_and_nowhere_else(atm: bool, spans: list[liu.Range]) -> None:  # noqa: FBT001
    sizes = range(1, liu.LARGEST_BYTES + 1)
    assert [size for size in sizes if liu.stalls(size, atm=atm) != liu.inside(size, spans)] == []
    assert not any(liu.stalls(size, atm=atm, no_delay=True) for size in liu.edges(spans))


@pytest.mark.parametrize(("atm", "rule"), [(True, "copy"), (True, "half"), (False, "copy"), (False, "segments")])
def test_without_one_rule_other_sizes_stall(atm: bool, rule: str) -> None:  # noqa: FBT001
    spans = liu.published_atm() if atm else liu.published_ethernet()
    stack = liu.without(rule)
    sample = range(1, liu.LARGEST_BYTES, 500)
    assert sum(liu.stalls(size, atm=atm, stack=stack) != liu.inside(size, spans) for size in sample) > len(sample) / 20


def test_an_echo_of_8_kb_waits_200_ms_on_average_by_the_phases_of_two_heartbeats() -> None:
    """Each direction waits up to 200 ms for a delayed-ACK timer (heartbeat).

    The phases of the two timers are fixed, so the answer always waits equally long. Only the wait of the request varies, evenly from 0 to
    200 ms.
    """
    means = []
    for server_ms in range(5, 200, 10):
        trips = liu.round_trips(8192, 20, every_ns=1_010 * NS_PER_MS, server_phase_ns=server_ms * NS_PER_MS)
        means.append(sum(trips) / len(trips) / NS_PER_MS)
    assert sum(means) / len(means) == pytest.approx(200, rel=0.05)
    assert sorted(means, reverse=True) == means
    within = [mean for mean, server_ms in zip(means, range(5, 200, 10), strict=True) if 10 <= server_ms <= 140]
    assert all(160 <= mean <= 300 for mean in within)


def test_an_alarm_that_is_10_ms_late_makes_a_saw_tooth() -> None:
    trips = [round(trip / NS_PER_MS) for trip in liu.round_trips(8192, 45, every_ns=1_010 * NS_PER_MS)]
    steps = [after - before for before, after in pairwise(trips)]
    assert set(steps) == {-10, 190}
    teeth = [number for number, step in enumerate(steps) if step > 0]
    assert [b - a for a, b in pairwise(teeth)] == [20]


def test_one_kilobyte_writes_lock_on_four_kilobyte_buffers() -> None:
    for phase_ms in (0, 60, 130):
        assert 0.035 < law.mbps(4096, phase_ns=phase_ms * NS_PER_MS) < 0.045
    assert law.mbps(4096, no_delay=True) > 5


def test_three_segments_of_buffer_are_where_the_lock_ends() -> None:
    """A send buffer of less than three segments (4,380 bytes) causes a deadlock.

    4.4BSD rounds a buffer of 4 KB up to three segments, so it has no deadlock.
    """
    assert law.mbps(4379) < 0.045
    assert law.mbps(4380) > 4
    assert law.mbps(3072) < 0.045
    assert law.mbps(5120) > 4
    assert law.mbps(4096, stack="bsd4.4") > 4


def test_a_program_sleeps_where_laws_traces_show_it() -> None:
    assert law.blocked_after_bytes(61_440) == 42 * 1460 == 61_320
    assert law.blocked_after_bytes(8192, stack="solaris2.5") == 6 * 1460 == 8760


@pytest.mark.parametrize("size", mosher.SIZES)
def test_ten_thousand_writes_call_the_kernel_as_often_as_gprof_counted(size: int) -> None:
    measured = {routine: by_size[size] for routine, by_size in published.mosher_calls().items()}
    calls = mosher.calls(size)
    for routine in ("ip_output", "m_copy", "sbappend", "tcp_output"):
        assert calls[routine] == pytest.approx(measured[routine], rel=0.02), routine
    assert calls["uiomove"] == pytest.approx(measured["uiomove"], rel=0.04 if size == 1025 else 0.01)
    if size == 1025:
        assert calls["sbappend"] == 10_000
    if size > 1:
        assert calls["tcp_input"] == pytest.approx(measured["tcp_input"], rel=0.05)


def test_a_pc_sends_1460_and_588_and_then_stands_idle() -> None:
    transfer = abrams_chen.between_pcs()
    assert transfer.segments == (1460, 588) * 20
    assert [ack - 1 for ack in transfer.acks[:19]] == [2048 * n for n in range(1, 20)]
    assert transfer.ms == pytest.approx(345.452, rel=0.03)
    assert transfer.idle_share == pytest.approx(0.453, rel=0.03)


def test_a_second_packet_of_receive_buffer_is_what_helps() -> None:
    """Figure 8 of the paper has the measured rates.

    The highest possible rate is 1,024 bytes per 3.469 + 0.477 / 2 ms, which is 2.209 Mb/s.
    """
    one, two, three = (abrams_chen.into_the_d310(kib * 1024).mbps for kib in (1, 2, 3))
    assert one == pytest.approx(1.677, rel=0.1)
    assert two == pytest.approx(2.06, rel=0.1)
    assert one < two <= three < 2.209
