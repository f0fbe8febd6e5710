"""gVisor's records are converted to events of the kernel's ledger, and the gates follow from these events.

The records are written by hand.
"""

from __future__ import annotations

from typing import Any

import pytest

from tcptrace_lab.lab.networks.tcp_headers import FIN
from tcptrace_lab.lab.other_stacks import stacks
from tcptrace_lab.lab.other_stacks.gvisor_truth import GvisorSender
from tcptrace_lab.lab.other_stacks.making import planned
from tests.support.kernel import stack_records
from tests.support.kernel.stack_records import handshake, offset, program, reported, sent, wrote

MSS, WINDOW = 1_000, 10_000


def acked(at_ms: float, una: int, nxt: int, **state: Any) -> list[dict[str, Any]]:
    """Return two records: an ACK, and the sender's state after it processed the ACK."""
    usual = {"snd_nxt": offset(nxt), "snd_wnd": WINDOW, "snd_cwnd": 10, "ssthresh": 0x7FFFFFFF, "outstanding": 0, "sacked_out": 0}
    usual |= {"mss": MSS, "rcv_nxt": 1, "srtt_us": 20_000, "rtt_us": 20_000, "rto_ms": 200, "is_recovery": False}
    return reported(at_ms, una, usual | state)


def opened() -> list[dict[str, Any]]:
    return handshake(acked(20, 1, 1))


def gates_at(records: list[dict[str, Any]], at_ms: float, *, nagle: bool = False) -> list[str]:
    return stack_records.gates_at(records, at_ms, GvisorSender(nagle))


def test_the_handshake_and_a_program_that_has_nothing_to_send() -> None:
    records = [*opened(), *wrote(30, 500, (1, 500)), *acked(50, 501, 501), *wrote(90, 500, (501, 500))]
    assert gates_at(records, 10) == ["handshake"]
    assert gates_at(records, 70) == ["own-turn"]


@pytest.mark.parametrize(("nagle", "gate"), [(True, "nagle"), (False, "open")])
def test_with_nagle_a_partial_segment_waits_behind_anything_in_flight(nagle: bool, gate: str) -> None:  # noqa: FBT001
    """A small segment waits while any segment is in flight. In Linux, it waits only while another small segment is in flight."""
    records = [*opened(), *wrote(30, MSS, (1, MSS)), *wrote(32, 300), *acked(60, 1 + MSS, 1 + MSS), sent(60.1, 1 + MSS, 300)]
    assert gates_at(records, 45, nagle=nagle) == [gate]


def test_a_full_congestion_window_and_a_full_window() -> None:
    full = [*opened(), *acked(25, 1, 1, snd_cwnd=2), *wrote(30, 9 * MSS, (1, MSS), (1 + MSS, MSS))]
    assert gates_at(full, 45) == ["congestion-window"]
    small = [*opened(), *acked(25, 1, 1, snd_wnd=2 * MSS), *wrote(30, 9 * MSS, (1, MSS), (1 + MSS, MSS))]
    assert gates_at(small, 45) == ["receiver-window"]


def test_a_write_that_finds_no_space_waits_for_the_send_buffer_until_the_next_is_taken() -> None:
    records = [*opened(), *wrote(30, 2 * MSS, (1, MSS), (1 + MSS, MSS)), program(31, "written", no_space=True)]
    records += [*acked(60, 1 + 2 * MSS, 1 + 2 * MSS), *wrote(61, MSS, (1 + 2 * MSS, MSS))]
    assert gates_at(records, 45) == ["send-buffer"]
    assert gates_at(records, 80) == ["sent-all"], "neither program writes again"


def test_a_retransmission_after_the_timeout_was_the_timers_and_recovery_lasts_until_all_is_acknowledged() -> None:
    records = [*opened(), *wrote(30, 2 * MSS, (1, MSS), (1 + MSS, MSS)), sent(232, 1, MSS)]
    records += [*acked(252, 1 + MSS, 1 + 2 * MSS), *acked(272, 1 + 2 * MSS, 1 + 2 * MSS)]
    assert gates_at(records, 130)[0] == "timeout"
    assert gates_at(records, 260) == ["loss-recovery"]
    assert gates_at(records, 300) == ["sent-all"]


def test_one_after_less_was_a_probe_and_one_in_recovery_is_fast() -> None:
    probe = [*opened(), *wrote(30, 2 * MSS, (1, MSS), (1 + MSS, MSS)), sent(80, 1 + MSS, MSS), *acked(100, 1 + 2 * MSS, 1 + 2 * MSS)]
    assert gates_at(probe, 60)[0] == "tail-probe"
    fast = [*opened(), *wrote(30, 2 * MSS, (1, MSS), (1 + MSS, MSS)), *acked(60, 1, 1 + 2 * MSS, is_recovery=True, outstanding=1)]
    fast += [sent(60.1, 1, MSS), *acked(80, 1 + 2 * MSS, 1 + 2 * MSS)]
    assert gates_at(fast, 70) == ["loss-recovery"]


def test_a_probe_of_a_closed_window_and_the_fin_are_no_retransmissions() -> None:
    records = [*opened(), *wrote(30, MSS, (1, MSS)), *acked(50, 1 + MSS, 1 + MSS, snd_wnd=0), *wrote(60, MSS)]
    records += [sent(260, MSS, 1), *acked(280, 1 + MSS, 1 + MSS), sent(280.1, 1 + MSS, MSS), sent(300, 1 + 2 * MSS, 0, FIN)]
    assert gates_at(records, 200) == ["zero-window"]
    assert gates_at(records, 350) != ["timeout"]


@pytest.mark.parametrize("stack", stacks.STACKS.values(), ids=stacks.STACKS)
def test_a_seed_stands_for_the_same_transfers_and_each_kind_comes_in_its_turn(stack: stacks.Stack) -> None:
    plans = [planned(stack, 1, number) for number in range(len(stack.kinds))]
    assert [plan.kind for plan in plans] == list(stack.kinds)
    assert plans == [planned(stack, 1, number) for number in range(len(stack.kinds))]
    assert planned(stack, 2, 0) != plans[0]
