"""Tests of the gates: the conditions that Linux checks before it sends (net/ipv4/tcp_output.c). The socket states are written by hand."""

from __future__ import annotations

import pytest

from tcptrace_lab.lab.kernel_ledger.gates import closed
from tests.support.kernel.events import MS, event, sending

FIN_WAIT1, SYN_SENT, CLOSE_WAIT = 4, 2, 8
NODELAY, CORK, PUSH = 1, 2, 4
LAST, FIN = 1, 2


def gates(at_ms: float = 1.0, **fields: int) -> tuple[str, ...]:
    return closed(event(0, "settled", **fields), round(at_ms * MS))


@pytest.mark.parametrize(
    ("room", "held"),
    [(999, ("receiver-window",)), (1_000, ("open",))],
)
def test_the_window_must_hold_a_whole_segment(room: int, held: tuple[str, ...]) -> None:
    assert gates(**sending(1_000, 8_000, snd_wnd=8_000 + room)) == held


def test_of_a_longer_buffer_the_window_must_hold_its_first_segment() -> None:
    assert gates(**sending(5_000, 8_000, snd_wnd=8_999)) == ("receiver-window",)


def test_a_window_of_zero_has_a_name_of_its_own() -> None:
    assert gates(**sending(1_000, 0, snd_wnd=0)) == ("zero-window",)


def test_sequence_numbers_wrap() -> None:
    wrapped = {"snd_una": 0xFFFFF000, "snd_nxt": 0xFFFFF000 + 4_000 - (1 << 32), "write_seq": 5_000 - 0x1000 - 96}
    assert gates(**sending(1_000, 0) | wrapped | {"snd_wnd": 4_999, "packets_out": 4}) == ("receiver-window",)


@pytest.mark.parametrize(
    ("counts", "held"),
    [
        ({}, ("congestion-window",)),
        ({"sacked_out": 1}, ("open",)),
        ({"lost_out": 1, "retrans_out": 1}, ("congestion-window",)),
    ],
)
def test_the_congestion_window_counts_segments_in_flight(counts: dict[str, int], held: tuple[str, ...]) -> None:
    assert gates(**sending(1_000, 10_000, snd_cwnd=10, **counts)) == held


@pytest.mark.parametrize(
    ("fields", "held"),
    [
        ({}, ("nagle",)),
        ({"snd_sml": 0}, ("open",)),  # all small segments are acknowledged (Minshall)
        ({"nonagle": NODELAY}, ("open",)),
        ({"nonagle": PUSH}, ("open",)),
        ({"nonagle": CORK}, ("cork",)),
        ({"unsent_marks": LAST | FIN}, ("open",)),
        ({"unsent_marks": 0}, ("open",)),  # the send queue has more data after this segment
        ({"unsent_skb_bytes": 1_000, "write_seq": 1_300}, ("open",)),
    ],
)
def test_nagle_holds_a_partial_segment_behind_an_unacknowledged_small_one(fields: dict[str, int], held: tuple[str, ...]) -> None:
    assert gates(**sending(100, 300, snd_sml=300) | fields) == held


def test_a_program_without_space_for_what_would_fill_the_segment_is_held_by_its_buffer_too() -> None:
    assert gates(**sending(100, 300, snd_sml=300, no_space=1)) == ("nagle", "send-buffer")


def test_less_than_a_third_of_the_window_is_deferred_and_named_by_the_smaller_window() -> None:
    assert gates(**sending(20_000, 9_000, snd_wnd=12_000)) == ("deferral-window",)
    assert gates(**sending(20_000, 9_000, snd_cwnd=12)) == ("deferral-congestion-window",)
    assert gates(**sending(20_000, 8_000, snd_wnd=12_000)) == ("open",)
    assert gates(**sending(1_000, 9_000, snd_wnd=12_000)) == ("open",)  # Linux never defers a single segment


def test_pacing_holds_until_the_next_departure_is_due() -> None:
    paced = sending(1_000, 1_000, pacing_status=1, paced_until_ns=5 * MS)
    assert gates(at_ms=4, **paced) == ("pacing",)
    assert gates(at_ms=5, **paced) == ("open",)
    assert gates(at_ms=4, **paced | {"pacing_status": 2}) == ("open",)  # the queueing discipline paces


def test_all_closed_gates_are_named_in_the_order_of_the_kernels_tests() -> None:
    fields = sending(100, 1_000, snd_sml=1_000, snd_wnd=1_000, snd_cwnd=1, throttled=1, pacing_status=1, paced_until_ns=5 * MS)
    assert gates(**fields) == ("pacing", "congestion-window", "receiver-window", "nagle", "small-queue")


def test_recovery_is_named_before_what_else_holds() -> None:
    assert gates(**sending(1_000, 10_000, snd_cwnd=10, ca_state=3)) == ("loss-recovery", "congestion-window")
    assert gates(**sending(0, 10_000, ca_state=4)) == ("loss-recovery",)


def test_with_nothing_unsent_a_program_that_found_no_space_is_held_by_the_send_buffer() -> None:
    assert gates(**sending(0, 10_000, no_space=1)) == ("send-buffer",)
    assert gates(**sending(0, 10_000)) == ("nothing-to-send",)


def test_opening_and_closing_are_no_waits_of_the_transfer() -> None:
    assert gates(state=SYN_SENT, **sending(1, 0)) == ("handshake",)
    assert gates(state=FIN_WAIT1, **sending(0, 1)) == ("closing",)
    assert gates(state=FIN_WAIT1, write_seq=1, unsent_marks=LAST | FIN) == ("closing",)  # the FIN alone is unsent
    assert gates(state=CLOSE_WAIT, **sending(0, 0)) == ("closing",)
    assert gates(state=FIN_WAIT1, **sending(1_000, 8_000, snd_wnd=8_000)) == ("receiver-window",)
