"""A sender's events become intervals, and each interval has the gates that opened last. The events are written by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tcptrace_lab.lab.kernel_ledger.intervals import intervals
from tests.support.kernel.events import MS, event, sending

if TYPE_CHECKING:
    from tcptrace_lab.lab.kernel_ledger.sockets import Event

Row = tuple[float, float, tuple[str, ...], tuple[str, ...]]


def rows(*events: Event) -> list[Row]:
    """Return the intervals between these events as rows: begin and end in milliseconds, closed gates, and the gates that opened last."""
    found = intervals(events)
    assert found[0].start_ns == events[0].time_ns
    assert found[-1].end_ns == events[-1].time_ns
    assert all(one.end_ns == other.start_ns for one, other in pairwise(found))
    return [(each.start_ns / MS, each.end_ns / MS, each.gates, each.last) for each in found]


def test_a_full_window_holds_until_the_ack_that_opens_it() -> None:
    full = sending(5_000, 8_000, snd_wnd=8_000)
    found = rows(
        event(0, "write", **sending(0, 0, snd_wnd=8_000)),
        event(0.01, "transmit", detail_bytes=1_000, **sending(13_000, 0, snd_wnd=8_000)),
        event(0.02, "written", **full),
        event(20, "received", **full),
    )
    assert found[-1] == (0.02, 20, ("receiver-window",), ("receiver-window",))


def test_the_state_before_a_segment_is_that_of_the_time_before_it() -> None:
    """At the last record before the wait, the sender is still sending.

    So the state during the wait comes from the next record.
    """
    found = rows(
        event(0, "transmit", detail_bytes=1_000, **sending(2_000, 7_000, snd_wnd=8_000)),
        event(10, "received", **sending(1_000, 8_000, snd_wnd=8_000)),
    )
    assert found == [(0, 10, ("receiver-window",), ("receiver-window",))]


def test_a_pacing_timer_that_fires_into_a_full_window_leaves_the_window() -> None:
    held = sending(3_000, 8_000, snd_wnd=8_000, pacing_status=1, paced_until_ns=4 * MS)
    assert rows(event(1, "settled", **held), event(9, "received", **held)) == [
        (1, 4, ("pacing", "receiver-window"), ("receiver-window",)),
        (4, 9, ("receiver-window",), ("receiver-window",)),
    ]


def test_a_window_that_opens_before_pacing_does_leaves_pacing_as_the_last() -> None:
    full, open_ = (sending(3_000, 8_000, snd_wnd=window, pacing_status=1, paced_until_ns=9 * MS) for window in (8_000, 20_000))
    found = rows(
        event(1, "settled", **full),
        event(4, "received", **full),
        event(4.001, "settled", **open_),
        event(9, "transmit", detail_bytes=1_000, **open_),
    )
    ends = [(1, 4, ("pacing", "receiver-window"), ("pacing",)), (4.001, 9, ("pacing",), ("pacing",))]
    assert [found[0], found[-1]] == ends


def test_gates_that_one_ack_opens_are_both_last() -> None:
    held = sending(3_000, 8_000, snd_wnd=8_000, snd_cwnd=8)
    found = rows(event(1, "settled", **held), event(9, "received", **held))
    assert found == [(1, 9, ("congestion-window", "receiver-window"), ("congestion-window", "receiver-window"))]


def test_a_departure_begins_a_new_wait() -> None:
    """The pacing gate is the last one that opens. It opens when a segment is sent, after the window has opened."""
    first, second = (sending(3_000, 8_000, pacing_status=1, paced_until_ns=until * MS) for until in (4, 8))
    tight = first | {"snd_wnd": 8_000}
    found = rows(
        event(1, "settled", **tight),
        event(3, "received", **tight),
        event(3, "settled", **first),
        event(4, "transmit", detail_bytes=1_000, **first),
        event(4, "settled", **second),
        event(8, "transmit", detail_bytes=1_000, **second),
    )
    assert [last for *_, last in found] == [("pacing",), ("pacing",), ("pacing",)]


def test_the_wait_before_a_retransmission_timer_fires_is_a_timeout() -> None:
    flight = sending(0, 5_000)
    found = rows(
        event(0, "settled", **flight),
        event(10, "received", **flight),
        event(10, "settled", **flight),
        event(215, "recovery", ca_state=0, **flight),
        event(215, "transmit", ca_state=4, retransmits=1, lost_out=5, detail_seq=0, detail_bytes=1_000, **flight),
        event(215.01, "retransmit", ca_state=4, retransmits=1, lost_out=5, detail_seq=0, detail_bytes=1_000, **flight),
        event(215.01, "settled", ca_state=4, retransmits=1, lost_out=5, **flight),
        event(240, "received", ca_state=4, retransmits=1, lost_out=5, **flight),
    )
    assert found == [
        (0, 10, ("nothing-to-send",), ("nothing-to-send",)),
        (10, 215, ("timeout", "nothing-to-send"), ("timeout",)),
        (215, 215.01, ("loss-recovery",), ("loss-recovery",)),
        (215.01, 240, ("loss-recovery",), ("loss-recovery",)),
    ]


def test_a_retransmission_outside_of_recovery_is_a_probe_of_the_tail() -> None:
    flight = sending(0, 1_000)
    found = rows(
        event(0, "transmit", detail_bytes=1_000, **sending(1_000, 0)),
        event(0, "settled", **flight),
        event(40, "transmit", detail_seq=0, detail_bytes=1_000, **flight),
        event(40.01, "retransmit", detail_seq=0, detail_bytes=1_000, **flight),
        event(40.01, "settled", **flight),
        event(60, "received", **flight),
    )
    assert found[0][2:] == (("tail-probe", "nothing-to-send"), ("tail-probe",))
    assert found[-1][2] == ("nothing-to-send",)


def test_a_fast_retransmission_is_recovery_from_the_state_of_the_kernel_on() -> None:
    flight = sending(0, 5_000)
    found = rows(
        event(0, "settled", **flight),
        event(20, "received", **flight),
        event(20, "transmit", ca_state=3, detail_seq=0, detail_bytes=1_000, **flight),
        event(20, "retransmit", ca_state=3, detail_seq=0, detail_bytes=1_000, **flight),
        event(20, "settled", ca_state=3, **flight),
        event(40, "received", ca_state=3, **flight),
    )
    assert [gates for *_, gates, _ in found] == [("nothing-to-send",), ("loss-recovery",)]


def test_a_program_that_asks_for_its_queue_until_it_writes_keeps_to_a_bound_of_its_own() -> None:
    flight, empty = sending(0, 5_000), sending(0, 0)
    found = rows(
        event(0, "asked_queue", **flight),
        event(5, "asked_queue", **flight),
        event(10, "write", **flight),
        event(10, "written", **flight),
        event(20, "asked_queue", **flight),
        event(30, "asked_queue", **empty),
    )
    assert [gates for *_, gates, _ in found] == [("own-bound",), ("own-bound",), ("nothing-to-send",), ("nothing-to-send",)]
