"""gVisor's records, converted to events of the kernel's ledger, and the gates that follow from them. Records are written by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tcptrace_lab.lab.kernel_ledger.ledger import kernel_ledger
from tcptrace_lab.lab.networks.tcp_headers import FIN, SYN
from tcptrace_lab.lab.other_stacks.making import planned
from tcptrace_lab.lab.other_stacks.scripts import KINDS
from tcptrace_lab.lab.other_stacks.truth import events
from tcptrace_lab.text.numbers import NS_PER_MS

ISS = (1 << 32) - 1_000
"""The initial sequence number, chosen so that sequence numbers wrap during the transfer."""
MSS, WINDOW = 1_000, 10_000
END_MS = 400


def offset(number: int) -> int:
    """Return the sequence number on the wire of a stream offset."""
    return (ISS + number) % (1 << 32)


def sent(at_ms: float, first: int, size: int, flags: int = 0) -> dict[str, Any]:
    """Return the record of a sent segment."""
    return {"time_ns": at_ms * NS_PER_MS, "kind": "transmit", "seq": offset(first), "bytes": size, "flags": flags, "port": 40_000}


def acked(at_ms: float, una: int, nxt: int, **state: Any) -> list[dict[str, Any]]:
    """Return the record of an ACK, and the record of the sender's state after it processed the ACK."""
    reported = {"snd_una": offset(una), "snd_nxt": offset(nxt), "snd_wnd": WINDOW, "snd_cwnd": 10, "ssthresh": 0x7FFFFFFF, "outstanding": 0}
    reported |= {"sacked_out": 0, "mss": MSS, "rcv_nxt": 1, "srtt_us": 20_000, "rtt_us": 20_000, "rto_ms": 200, "is_recovery": False}
    received = {"time_ns": at_ms * NS_PER_MS, "kind": "received", "ack": offset(una), "port": 40_000}
    return [received, {"time_ns": at_ms * NS_PER_MS + 1, "kind": "settled", "state": reported | state}]


def program(at_ms: float, kind: str, size: int = 0, *, no_space: bool = False) -> dict[str, Any]:
    """Return the record of a system call of the application."""
    return {"time_ns": at_ms * NS_PER_MS, "kind": kind, "bytes": size, "no_space": no_space}


def opened() -> list[dict[str, Any]]:
    """Return the records of a handshake that takes 20 ms."""
    return [program(0, "connect"), sent(0, 0, 0, SYN), *acked(20, 1, 1), program(20.1, "connected")]


def wrote(at_ms: float, size: int, *segments: tuple[int, int]) -> list[dict[str, Any]]:
    """Return the records of a write call, and of segments that are sent during it."""
    inside = [sent(at_ms + 0.01 * (number + 1), *segment) for number, segment in enumerate(segments)]
    return [program(at_ms, "write", size), *inside, program(at_ms + 0.5, "written", size)]


def gates_at(records: list[dict[str, Any]], at_ms: float, *, nagle: bool = False) -> list[str]:
    """Return the gates that are closed at `at_ms`."""
    every = [*records, program(END_MS, "shutdown"), program(END_MS + 1, "closed")]
    lines = [json.dumps(one | {"time_ns": int(one["time_ns"])}) for one in every]
    table = kernel_ledger(events(lines, "192.0.2.1", "192.0.2.2", 8_000, nagle=nagle))
    (row,) = [row for row in table.iter_rows(named=True) if row["start_ns"] <= at_ms * NS_PER_MS < row["end_ns"]]
    assert (row["sender_address"], row["sender_port"], row["receiver_port"], row["is_client"]) == ("192.0.2.1", 40_000, 8_000, True)
    gates: list[str] = row["gates"]
    return gates


def test_the_handshake_and_a_program_that_has_nothing_to_send() -> None:
    records = [*opened(), *wrote(30, 500, (1, 500)), *acked(50, 501, 501), *wrote(90, 500, (501, 500))]
    assert gates_at(records, 10) == ["handshake"]
    assert gates_at(records, 70) == ["own-turn"]


@pytest.mark.parametrize(("nagle", "gate"), [(True, "nagle"), (False, "open")])
def test_with_nagle_a_partial_segment_waits_behind_anything_in_flight(nagle: bool, gate: str) -> None:  # noqa: FBT001
    """Unlike Linux, gVisor delays a small segment also while a full one is in flight."""
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


def test_a_seed_stands_for_the_same_transfers_and_each_kind_comes_in_its_turn() -> None:
    plans = [planned(1, number) for number in range(len(KINDS))]
    assert [plan.kind for plan in plans] == list(KINDS)
    assert plans == [planned(1, number) for number in range(len(KINDS))]
    assert planned(2, 0) != plans[0]
