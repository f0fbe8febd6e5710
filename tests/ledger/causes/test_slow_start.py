"""Slow start or receiver window: the window is the cause if Linux leaves part of it unused.

Linux waits for the next ACK if less than a third of the window is free (`tcp_tso_should_defer`, net/ipv4/tcp_output.c). It counts this time
as `rwnd_limited`. The captures are hand-written. Each begins with a flight of ten segments (RFC 6928) and has a counterpart with another
cause.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support import ledgers

if TYPE_CHECKING:
    from pathlib import Path

MSS = 1_460


def lasted(tmp_path: Path, lines: list[str]) -> dict[str, float]:
    """Return the milliseconds of each cause (`ledgers.lasted`) in an exchange of these lines."""
    return ledgers.lasted(tmp_path, "\n".join(lines))


def data(at_ms: float, first: int, count: int) -> list[str]:
    """Return `count` full segments of the client, 1 µs apart. The first one is segment number `first`, counted from 0."""
    return [f"{at_ms + n / 1000:.3f}ms C > S . {1 + MSS * (first + n)}:{1 + MSS * (first + n + 1)} ack 1" for n in range(count)]


def ack(at_ms: float, segments: int, window: int) -> list[str]:
    """Return the server's ACK of the first `segments` segments. The offered window has room for `window` more segments."""
    return [f"{at_ms:.3f}ms S > C . ack {1 + MSS * segments} win {MSS * window}"]


def at_sender(last_window: int) -> list[str]:
    """Return an exchange in which 14 segments fill the window.

    Then an ACK of three segments makes room for three more. But the client sends nothing until the next ACK, 19.6 ms later.
    """
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK>",
        f"20ms S > C S. 0:0(0) ack 1 win {14 * MSS} <mss {MSS}, sackOK>",
        "20ms C > S . ack 1 win 64240",
        *data(40, 0, 10),
    ]
    for n in range(4):
        lines += ack(60 + n / 10, n + 1, 14) + data(60.01 + n / 10, 10 + 2 * n, 2)
    lines += ack(60.4, 7, last_window)
    return lines + ack(80, 11, last_window) + data(80.01, 18, 7) + ack(100, 25, last_window)


def test_a_window_that_opens_a_little_after_the_flight_filled_it_holds_what_waits_for_more(tmp_path: Path) -> None:
    """Three segments are less than a third of the window of 14.

    The congestion window has room for at least 14 segments, because 14 were in flight.
    """
    reported = lasted(tmp_path, at_sender(14))
    assert reported["receiver-window"] == pytest.approx(80.01 - 60.31, abs=0.1)
    assert reported["slow-start"] == pytest.approx(60.01 - 40, abs=0.1)


def test_a_window_that_opens_beyond_the_flight_leaves_it_to_slow_start(tmp_path: Path) -> None:
    reported = lasted(tmp_path, at_sender(24))
    assert reported["slow-start"] == pytest.approx(60.01 - 40 + 80.01 - 60.41, abs=0.2)


def at_receiver(flights: list[int], window: int, round_trip_ms: float = 10) -> list[str]:
    """Return flights with these numbers of segments, one flight per RTT. Each segment is acknowledged at once."""
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK>",
        f"0.001ms S > C S. 0:0(0) ack 1 win {window * MSS} <mss {MSS}, sackOK>",
        f"{round_trip_ms}ms C > S . ack 1 win 64240",
    ]
    arrived, now_ms = 0, 2 * round_trip_ms
    for flight in flights:
        for n in range(flight):
            lines += data(now_ms + n / 100, arrived + n, 1) + ack(now_ms + n / 100 + 0.001, arrived + n + 1, window)
        arrived, now_ms = arrived + flight, now_ms + round_trip_ms
    return lines


@pytest.mark.parametrize(
    ("flights", "window", "held_ms"),
    [
        ([10, 12, 12], 14, 10),
        ([10, 11, 11], 14, 10),
        ([10, 15, 15], 17, 0),  # slow start with an ACK for every second segment grows like this
        ([3, 4, 4], 5, 0),  # slow start with an ACK for every second segment grows like this
        ([10, 12, 12], 20, 0),  # the window has room for more than a third of its size
        ([4, 8, 9, 9], 9, 10),  # the flight of 8 leaves room for a segment, so the window does not limit it yet
        ([10, 20, 24, 24], 27, 10),
        ([10, 20, 21, 21], 24, 0),  # congestion avoidance, which begins at 16 segments, grows like this
    ],
)
def test_a_flight_that_grows_like_neither_slow_start_nor_avoidance_was_ended_by_the_window(
    tmp_path: Path, flights: list[int], window: int, held_ms: float
) -> None:
    reported = lasted(tmp_path, at_receiver(flights, window))
    assert reported.get("receiver-window", 0) == pytest.approx(held_ms, abs=0.3)
    assert reported["slow-start"] == pytest.approx(10 * (len(flights) - 1) - held_ms, abs=0.6)


def test_what_the_program_gives_behind_a_small_segment_was_not_kept_back_by_the_window(tmp_path: Path) -> None:
    """The flights have 10, 12 and 12 segments. The last segment of the second flight is 100 bytes short.

    So the application had not written more data when this flight was sent.
    """
    behind = 22 * MSS + 1
    opening, flights = at_receiver([10, 12, 12], 14)[:3], at_receiver([10, 12, 12], 14)[3:]
    shorter = [re.sub(r"\d{5}", lambda place: str(int(place[0]) - 100 * (int(place[0]) >= behind)), line) for line in flights]
    assert "receiver-window" not in lasted(tmp_path, opening + shorter)


def test_a_flight_that_does_not_grow_below_the_edge_was_ended_by_the_window_seen_from_its_sender_too(tmp_path: Path) -> None:
    """Five segments are in flight, and the window has room for a sixth. In slow start, their ACK would have released five more."""
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK>",
        f"20ms S > C S. 0:0(0) ack 1 win {6 * MSS} <mss {MSS}, sackOK>",
        "20ms C > S . ack 1 win 64240",
    ]
    for n in range(4):
        lines += data(40 + 20 * n, 5 * n, 5) + ack(59.99 + 20 * n, 5 * n + 5, 6)
    reported = lasted(tmp_path, lines)
    assert reported["receiver-window"] == pytest.approx(40, abs=0.1)
    assert reported["slow-start"] == pytest.approx(20, abs=0.1)  # the largest possible first flight is unknown


@pytest.mark.parametrize(("top", "window_ms"), [(23, 40), (19, 20)])
def test_a_flight_that_did_not_grow_and_left_room_for_a_segment_waited_for_the_window_that_another_filled(
    tmp_path: Path, top: int, window_ms: float
) -> None:
    """Two flights are one segment smaller than the window, and the third one fills it.

    Below twenty segments, congestion avoidance adds less than one segment per RTT (5% in CUBIC). A flight that did not grow although the
    window had room is no longer in slow start, and its limit is unknown.
    """
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK>",
        f"20ms S > C S. 0:0(0) ack 1 win {top * MSS} <mss {MSS}, sackOK>",
        "20ms C > S . ack 1 win 64240",
    ]
    sent = 0
    for n, flight in enumerate((10, top - 3, top - 1, top - 1, top, 1)):
        lines += data(40 + 20 * n, sent, flight) + ack(59.99 + 20 * n, sent + flight, top)
        sent += flight
    reported = lasted(tmp_path, lines)
    assert reported["receiver-window"] == pytest.approx(window_ms, abs=0.1)
    assert reported["slow-start"] == pytest.approx(60, abs=0.2)
    assert reported.get("unknown", 0.0) == pytest.approx(40 - window_ms, abs=0.2)


@pytest.mark.parametrize(("round_trip_ms", "window_ms"), [(10, 2 * 10), (100, 100)])
def test_a_smaller_flight_than_before_was_ended_by_a_window_with_room_for_less_than_a_piece(
    tmp_path: Path, round_trip_ms: float, window_ms: float
) -> None:
    """The window has room for three more segments. With an RTT of 10 ms, they are less than a burst of Linux; with 100 ms, more.

    A burst is the data of 1 ms (`tcp_tso_autosize`). If a burst had room in the window, the limit of a flight of eleven segments is
    unknown, because an earlier flight was larger.
    """
    reported = lasted(tmp_path, at_receiver([10, 14, 11, 11], 14, round_trip_ms))
    assert reported["receiver-window"] == pytest.approx(window_ms, rel=0.1)
    assert reported["slow-start"] == pytest.approx(round_trip_ms, rel=0.1)
    assert reported.get("unknown", 0.0) == pytest.approx(2 * round_trip_ms - window_ms, rel=0.1)


def after_a_pause(first_flight: int, resent: str) -> list[str]:
    """Return four segments, of which one is retransmitted, and two flights that are sent 20 ms apart.

    Between the four segments and the flights, the window is zero for half a second.
    """
    came = {"needlessly": [0, 1, 2, 3, 3], "after a loss": [0, 2, 3, 1]}[resent]
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK>",
        f"0.001ms S > C S. 0:0(0) ack 1 win 64240 <mss {MSS}, sackOK>",
        "20ms C > S . ack 1 win 64240",
    ]
    for place, n in enumerate(came):
        missing = min(set(range(5)) - set(came[: place + 1]))
        late_ms = 50 if place == len(came) - 1 else 0
        lines += data(40 + place + late_ms, n, 1)
        lines += [f"{40.001 + place + late_ms:.3f}ms S > C . ack {1 + MSS * missing} win {0 if missing == 4 else 64240}"]
    lines += ack(600, 4, 40)
    arrived = 4
    for flight, start_ms in ((first_flight, 620), (2 * first_flight, 640)):
        for n in range(flight):
            lines += data(start_ms + n / 100, arrived + n, 1) + ack(start_ms + n / 100 + 0.001, arrived + n + 1, 40)
        arrived += flight
    return lines


def test_the_first_flight_after_a_pause_is_slow_start_if_all_resends_were_needless(tmp_path: Path) -> None:
    """After a silence longer than its RTO, a sender restarts with the initial window (RFC 5681, 4.1).

    No loss reduced its congestion window.
    """
    reported = lasted(tmp_path, after_a_pause(10, "needlessly"))
    assert reported["slow-start"] == pytest.approx(20, abs=0.3)
    assert "congestion-window" not in reported


@pytest.mark.parametrize(("first_flight", "resent"), [(10, "after a loss"), (4, "needlessly")])
def test_it_is_the_congestion_windows_after_a_loss_and_with_less_than_an_initial_window(
    tmp_path: Path, first_flight: int, resent: str
) -> None:
    reported = lasted(tmp_path, after_a_pause(first_flight, resent))
    assert reported["congestion-window"] == pytest.approx(20, abs=0.3)


def trains(window: int) -> str:
    """Return a capture at the receiver. In each RTT of 20 ms, 30 segments (a train) arrive 80 µs apart.

    The timestamp clock ticks every millisecond.
    """
    size = MSS - 12
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK, TS val 0 ecr 0>",
        f"0.01ms S > C S. 0:0(0) ack 1 win {window * size} <mss {MSS}, sackOK, TS val 1000 ecr 0>",
        "20ms C > S . ack 1 win 64240 <TS val 20 ecr 1000>",
    ]
    for number in range(8 * 30):
        train, place = divmod(number, 30)
        at_us = 40_000 + 20_000 * train + 80 * place
        echoed = 1000 + (at_us - 20_000) // 1000 if train else 1000
        lines += [
            f"{at_us}us C > S . {1 + size * number}:{1 + size * (number + 1)} ack 1 <TS val {at_us // 1000} ecr {echoed}>",
            f"{at_us + 5}us S > C . ack {1 + size * (number + 1)} win {window * size} <TS val {1000 + at_us // 1000} ecr {at_us // 1000}>",
        ]
    return "\n".join(lines)


def test_trains_that_fill_a_window_are_spaced_by_it_however_coarse_their_timestamps(tmp_path: Path) -> None:
    """The window is the cause from the end of the first train (42.32 ms) to the end of the last (182.32 ms)."""
    reported = ledgers.lasted(tmp_path, trains(30))
    assert reported["receiver-window"] == pytest.approx(140.0, abs=1.0)


def test_trains_that_leave_room_for_one_segment_are_not_the_windows(tmp_path: Path) -> None:
    assert "receiver-window" not in ledgers.lasted(tmp_path, trains(31))
