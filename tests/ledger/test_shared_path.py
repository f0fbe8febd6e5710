"""The ledger of a connection on a shared path: a queue of other traffic is neither a delayed-ACK timer nor a silent application.

The captures are hand-written, with an RTT of 20 ms before the queue grows. Expected durations follow from the times in each capture. Each
exchange has a similar counterpart with another cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

MSS = 1_460
OPENED = f"""
    0 C > S S  0:0(0)       win 64240 <mss {MSS}, sackOK, wscale 7>
    20ms S > C S. 0:0(0) ack 1 win 65160 <mss {MSS}, sackOK, wscale 7>
    20ms C > S . ack 1 win 502
"""


def data(at_ms: float, first: int, count: int) -> str:
    """Return `count` full segments of the client, 1 µs apart. The first one is segment number `first`, counted from 0."""
    return "\n".join(f"{at_ms + n / 1000:.3f}ms C > S . {1 + MSS * (first + n)}:{1 + MSS * (first + n + 1)} ack 1" for n in range(count))


def acks(at_ms: float, first: int, count: int, apart_ms: float = 1.2) -> str:
    """Return the server's ACKs of `count` segments, beginning with number `first`. Each segment has its own ACK."""
    return "\n".join(f"{at_ms + n * apart_ms:.3f}ms S > C . ack {1 + MSS * (first + n + 1)} win 4000" for n in range(count))


def test_an_ack_that_leaves_out_what_left_a_round_trip_before_stood_in_a_queue(tmp_path: Path) -> None:
    """Ten segments are sent. The ACK of the first one arrives after 74 ms, and the ACKs of the other nine follow.

    A delayed-ACK timer would not acknowledge only one of ten segments.
    """
    reported = lasted(tmp_path, "\n".join([OPENED, data(40, 0, 10), acks(114, 0, 1), data(114.01, 10, 2), acks(115.2, 1, 9)]))
    assert reported["network"] >= 74.0
    assert "delayed-ack" not in reported


@pytest.mark.parametrize(("late_ms", "is_delayed"), [(0, True), (30, False)])
def test_an_ack_that_is_late_behind_others_that_were_late_as_well_stood_in_a_queue(
    tmp_path: Path, late_ms: float, *, is_delayed: bool
) -> None:
    """The path has an RTT of 100 ms. Eleven segments are sent. The ACKs of the first ten arrive after 100 or 130 ms.

    The ACK of the eleventh segment arrives 40 ms after the ACK of the first. It is a delayed ACK only if the other ACKs took no more than
    the RTT.
    """
    text, at_ms = OPENED.replace("20ms", "100ms"), 300 + late_ms
    train = [line for n in range(10) for line in (acks(at_ms + n / 100, n, 1), data(at_ms + n / 100 + 0.001, 11 + 2 * n, 2))]
    reported = lasted(tmp_path, "\n".join([text, data(200, 0, 11), *train, acks(at_ms + 40, 10, 1), data(at_ms + 40.01, 31, 1)]))
    assert ("delayed-ack" in reported) == is_delayed


def test_an_ack_by_timer_while_what_it_leaves_out_was_still_under_way_is_a_delayed_one(tmp_path: Path) -> None:
    """Three segments are sent. The ACK of the third arrives 40 ms after the ACK of the first two.

    The ACK of the first two releases data. These data reach the server after the server has sent the second ACK, because the RTT is 100 ms.
    """
    text = OPENED.replace("20ms", "100ms")
    lines = [text, data(200, 0, 3), acks(300, 1, 1), data(300.01, 3, 2), acks(340, 2, 1), data(340.01, 5, 1), acks(400.1, 4, 1)]
    reported = lasted(tmp_path, "\n".join([*lines, acks(440.1, 5, 1)]))
    assert reported["delayed-ack"] == pytest.approx(40.0, abs=0.1)


def probed(*, held_ms: float, lost: bool = False) -> str:
    """Return ten segments whose ACKs arrive late. An eleventh segment is sent after `held_ms`, before any ACK.

    The first RTT sample is 20 ms.
    """
    probe, late = 40 + held_ms, 40 + held_ms + 15
    again = [data(late + 5, 4, 1), acks(late + 25, 10, 1)]
    answered = [acks(late, 0, 4), *again] if lost else [acks(late, 0, 11)]
    return "\n".join([OPENED, data(40, 0, 10), data(probe, 10, 1), *answered])


def test_a_probe_with_new_data_waits_for_the_queue_that_its_acks_stand_in(tmp_path: Path) -> None:
    """Linux sends a tail-loss probe after two RTTs of 20 ms and two jiffies of 4 ms (RFC 8985, 7.2), which is 48 ms.

    The last 20 ms of the connection are the RTT of the last segment.
    """
    reported = lasted(tmp_path, probed(held_ms=48))
    assert reported["network"] == pytest.approx(48.0 + 20.0, abs=0.1)


@pytest.mark.parametrize(("held_ms", "lost"), [(33, False), (90, False), (48, True)])
def test_what_leaves_at_another_time_or_beside_a_loss_is_no_such_probe(tmp_path: Path, held_ms: float, *, lost: bool) -> None:
    """Full segments are in flight, and nothing shows what delayed the next one.

    The application was silent for 20 ms before the first segment.
    """
    reported = lasted(tmp_path, probed(held_ms=held_ms, lost=lost))
    assert reported["network"] <= 20.0 + 20.1
    assert reported["application"] == pytest.approx(20.0, abs=0.1)
    assert reported["unknown"] >= held_ms - 20.1


def probed_behind_a_growing_queue(held_ms: float) -> str:
    """Return an exchange whose smoothed RTT is 30 ms (RFC 6298, 2.3).

    The handshake takes 20 ms, and the first ACK of ten segments takes 100 ms. This ACK releases two segments. Then only a D-SACK arrives,
    which acknowledges no new data. One more segment is sent after `held_ms`.
    """
    probe = 140.02 + held_ms
    dsack = f"170ms S > C . ack {1 + MSS} win 4000 <sack 1:{1 + MSS}>"
    return "\n".join([OPENED, data(40, 0, 10), acks(140, 0, 1), data(140.02, 10, 2), dsack, data(probe, 12, 1), acks(probe + 5, 1, 12)])


@pytest.mark.parametrize(("held_ms", "is_probe"), [(68, True), (130, False)])
def test_a_probe_with_new_data_goes_by_the_smoothed_round_trip_and_no_empty_ack_puts_it_off(
    tmp_path: Path, held_ms: float, *, is_probe: bool
) -> None:
    """A probe is sent after twice the smoothed RTT of 30 ms and two jiffies of 4 ms, which is 68 ms.

    A segment after 130 ms is no probe, although 130 ms are less than twice the last RTT.
    """
    reported = lasted(tmp_path, probed_behind_a_growing_queue(held_ms))
    assert (reported.get("unknown", 0) >= held_ms - 30) == (not is_probe)


@pytest.mark.parametrize(("held_ms", "is_probe"), [(68, True), (50, False)])
def test_a_probe_goes_by_the_round_trip_of_the_oldest_byte_of_each_ack(tmp_path: Path, held_ms: float, *, is_probe: bool) -> None:
    """The handshake takes 20 ms. The first ACK is for segments sent 100 and 40 ms before it.

    Measured by the oldest byte, the smoothed RTT is 30 ms, and the probe is sent after 68 ms. Measured by the newest byte, the smoothed RTT
    would be 22.5 ms, and the probe would be sent after 53 ms. In both cases, the application is silent for 20 ms after the handshake.
    Nothing shows the cause of the 60 ms before the second segment and of the last 2 ms of the capture.
    """
    probe = 140.02 + held_ms
    lines = [data(40, 0, 1), data(100, 1, 9), acks(140, 1, 1), data(140.02, 10, 2), data(probe, 12, 1), acks(probe + 10, 2, 11)]
    reported = lasted(tmp_path, "\n".join([OPENED, *lines]))
    assert reported["application"] == pytest.approx(20, abs=1)
    assert reported["unknown"] == pytest.approx(60 + 2 + (0 if is_probe else held_ms), abs=1)


STAMPED = f"""
    0 C > S S  0:0(0)       win 64240 <mss {MSS}, sackOK, wscale 7, TS val 1000 ecr 0>
    20ms S > C S. 0:0(0) ack 1 win 65160 <mss {MSS}, sackOK, wscale 7, TS val 5000 ecr 1000>
    20ms C > S . ack 1 win 502 <TS val 1020 ecr 5000>
"""
STAMPED_BYTES = MSS - 12


def stamped(at_ms: int, *numbers: int) -> str:
    """Return full segments of the client with these numbers, 1 µs apart, with timestamps of its millisecond clock."""
    places = ((at_ms + n / 1000, 1 + STAMPED_BYTES * number) for n, number in enumerate(numbers))
    return "\n".join(f"{ms:.3f}ms C > S . {at}:{at + STAMPED_BYTES} ack 1 win 502 <TS val {1000 + at_ms} ecr 5000>" for ms, at in places)


def echoed(at_ms: float, behind: int, echo_ms: int, more: str = "", window: int = 4_000) -> str:
    """Return an ACK of all bytes before segment number `behind`.

    The ACK echoes the timestamp that the client's clock had at `echo_ms`.
    """
    clock = 5000 + int(at_ms)
    return f"{at_ms:.3f}ms S > C . ack {1 + STAMPED_BYTES * behind} win {window} <TS val {clock} ecr {1000 + echo_ms}{more}>"


@pytest.mark.parametrize(("held_ms", "is_probe"), [(90, True), (70, False)])
def test_of_what_was_sent_twice_a_timestamp_shows_the_round_trip_that_a_probe_goes_by(
    tmp_path: Path, held_ms: int, *, is_probe: bool
) -> None:
    """The handshake takes 20 ms. Two segments are sent, and the second one is retransmitted needlessly.

    The ACKs of the two segments take 100 and 110 ms, and the next ACK takes 30 ms. The second sample is valid because its ACK echoes the
    timestamp of the original. So the smoothed RTT is 20, 30, 40 and then 38.8 ms, and a probe is sent after 86 ms. Without the second
    sample, the probe would be sent after 68 ms. In both cases, the application is silent for 20 ms after the handshake. The 50 ms before
    the spurious retransmission are 20 ms of transit and 30 ms of unknown cause. The cause of the last 5 ms of the capture is unknown, too.
    """
    dsack = f", sack {1 + STAMPED_BYTES}:{1 + 2 * STAMPED_BYTES}"
    lines = [stamped(40, 0, 1), stamped(90, 1), echoed(140, 1, 40), stamped(140, 2, 3), echoed(150, 2, 40), stamped(150, 4, 5)]
    lines += [echoed(160, 2, 40, dsack), echoed(170, 3, 140), stamped(170, 6, 7)]
    lines += [stamped(170 + held_ms, 8), echoed(195 + held_ms, 9, 170)]
    reported = lasted(tmp_path, "\n".join([STAMPED, *lines]))
    assert reported["application"] == pytest.approx(20, abs=1)
    assert reported["unknown"] == pytest.approx(30 + 5 + (0 if is_probe else held_ms), abs=1)


def timed_out(*, lost: bool, window: int = 4_000) -> str:
    """Return ten segments that are sent at 40 ms. A timer retransmits the first of them at 340 ms.

    From 400 ms on, an ACK arrives every 10 ms and releases two segments. The ACKs are for the originals, which arrived late. If `lost` is
    true, the first original was lost, and the first ACK is for its retransmission.
    """
    lines = [STAMPED.replace("65160", str(window)) if window < 4_000 else STAMPED, stamped(40, *range(10)), stamped(340, 0)]
    for n in range(10):
        lines += [echoed(400 + 10 * n, n + 1, 340 if lost else 40), stamped(400 + 10 * n, 10 + 2 * n, 11 + 2 * n)]
    return "\n".join([*lines, echoed(500, 30, 490)])


def test_behind_a_timeout_that_the_first_ack_shows_to_be_needless_the_path_spaces_the_bytes_as_before(tmp_path: Path) -> None:
    """After a spurious timeout, the sender continues as before (RFC 4015). Nine times, it waits 10 ms for an ACK in a queue."""
    reported = lasted(tmp_path, timed_out(lost=False))
    assert "loss-recovery" not in reported
    assert reported["network"] >= 9 * 10 - 0.1


def test_behind_a_timeout_for_a_loss_the_sender_recovers(tmp_path: Path) -> None:
    """The recovery begins with the first ACK (400 ms) and ends with the ACK of the flight's last segment (490 ms)."""
    assert lasted(tmp_path, timed_out(lost=True))["loss-recovery"] >= 80


@pytest.mark.parametrize("lost", [False, True])
def test_what_a_timer_sends_again_needlessly_behind_a_full_window_waited_for_the_window(tmp_path: Path, *, lost: bool) -> None:
    """Four segments fill the window at 40 ms, and the first one is retransmitted at 340 ms.

    The ACK at 400 ms is for the original. If `lost` is true, it is for the retransmission.
    """
    size = 4 * STAMPED_BYTES
    opening = f"mss {MSS}, sackOK, TS val"
    text = f"""
        0 C > S S  0:0(0)       win 64240 <{opening} 1000 ecr 0>
        20ms S > C S. 0:0(0) ack 1 win {size} <{opening} 5000 ecr 1000>
        20ms C > S . ack 1 win 502 <TS val 1020 ecr 5000>
    """
    lines = [stamped(40, 0, 1, 2, 3), stamped(340, 0), echoed(400, 4, 340 if lost else 40, window=size), stamped(400, 4)]
    reported = lasted(tmp_path, "\n".join([text, *lines, echoed(420, 5, 400, window=size)]))
    assert ("timeout" in reported) == lost
    assert reported.get("receiver-window", 0) == pytest.approx(0 if lost else 360, abs=0.1)


@pytest.mark.parametrize(("segments", "drained_ms"), [(10, 150), (1, 20)])
def test_while_a_request_stands_in_a_queue_the_path_has_it_and_not_the_peer(tmp_path: Path, segments: int, drained_ms: float) -> None:
    """The ACK of ten segments arrives 150 ms after them, and the answer 340 ms after them.

    If only one segment is sent, its late ACK is possibly a delayed ACK, so only the RTT of 20 ms counts as network. The rest of the time
    until the answer has the cause peer. After the answer, the application takes 20 ms.
    """
    answer = f"380ms S > C P. 1:101 ack {1 + MSS * segments} win 4000"
    answered = [acks(100, 0, segments, 10)] if segments > 1 else [acks(190, 0, 1)]
    reported = lasted(
        tmp_path, "\n".join([OPENED, data(40, 0, segments), *answered, answer, data(400, segments, 1), acks(420, segments, 1)])
    )
    assert reported["peer"] == pytest.approx(340 - drained_ms, abs=0.1)
    assert reported["application"] == pytest.approx(20 + 20, abs=0.1)


def test_slow_start_waits_no_longer_than_until_the_narrowest_place_has_carried_its_flight(tmp_path: Path) -> None:
    """A segment takes 1.2 ms on a path with an RTT of 20 ms, so ten segments take 12 ms of the first RTT.

    A flight of twenty segments keeps the path busy for the whole RTT.
    """
    lines = [OPENED, data(40, 0, 10)]
    for n in range(10):
        lines += [acks(60 + 1.2 * n, n, 1), data(60.01 + 1.2 * n, 10 + 2 * n, 2)]
    reported = lasted(tmp_path, "\n".join([*lines, acks(80.01, 10, 1), data(80.02, 30, 2), acks(81.21, 11, 21)]))
    assert reported["slow-start"] == pytest.approx(20 - 12, abs=0.1)


def test_where_no_ack_is_known_to_have_let_it_go_a_segments_own_time_says_that_it_stood_in_a_queue(tmp_path: Path) -> None:
    """The capture is made at the receiver. By their timestamps, 2,800 segments are sent 0.4 ms apart. They arrive 1 ms apart.

    The last 1,700 ACKs release no captured segment.
    """
    size = MSS - 12
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK, wscale 7, TS val 0 ecr 0>",
        f"0.01ms S > C S. 0:0(0) ack 1 win 65160 <mss {MSS}, sackOK, wscale 7, TS val 1000 ecr 0>",
        "20ms C > S . ack 1 win 502 <TS val 10 ecr 1000>",
    ]
    for n in range(2_800):
        left_ms, came_ms = 30 + 2 * n // 5, 40 + n
        heard = max(left_ms - 10, 0) if left_ms > 50 else 0
        lines += [
            f"{came_ms}ms C > S . {1 + size * n}:{1 + size * (n + 1)} ack 1 <TS val {left_ms} ecr {1000 + heard}>",
            f"{came_ms}.01ms S > C . ack {1 + size * (n + 1)} win 65535 <TS val {1000 + came_ms} ecr {left_ms}>",
        ]
    end = 1 + size * 2_800
    lines.append(f"6000ms C > S F. {end}:{end}(0) ack 1 <TS val 5990 ecr 3839>")
    reported = lasted(tmp_path, "\n".join(lines))
    assert "pacing" not in reported
    assert reported["network"] >= 2_799


def at_receiver(*, queued: bool) -> str:
    """Return flights of four segments that fill the window. The segments are 3 ms apart.

    From the second flight on, the segments arrive 60 ms later than the path explains. If `queued` is true, an ACK makes room, and a segment
    is sent at once. The segment echoes the timestamp of this ACK and then waits in a queue. Otherwise the application wrote late, and all
    segments of a flight echo the timestamp of the last ACK. Timestamps count milliseconds; those of the server begin with 1000.
    """
    size, late_ms = MSS - 12, 60
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK, TS val 0 ecr 0>",
        f"0.01ms S > C S. 0:0(0) ack 1 win {4 * size} <mss {MSS}, sackOK, TS val 1000 ecr 0>",
        "20ms C > S . ack 1 win 64240 <TS val 20 ecr 1000>",
    ]
    for number in range(16):
        flight, place = divmod(number, 4)
        came_ms = 40 + flight * (20 + late_ms) + 3 * place
        before_ms = came_ms - 20 - late_ms + (0 if queued else 9 - 3 * place)
        left_ms, echoed = (came_ms - late_ms * queued, 1000 + before_ms) if flight else (came_ms, 1000)
        lines += [
            f"{came_ms}ms C > S . {1 + size * number}:{1 + size * (number + 1)} ack 1 <TS val {left_ms} ecr {echoed}>",
            f"{came_ms}.01ms S > C . ack {1 + size * (number + 1)} win {4 * size} <TS val {1000 + came_ms} ecr {left_ms}>",
        ]
    return "\n".join(lines)


def test_behind_a_queue_a_window_that_is_full_all_the_time_holds_its_sender_all_the_time(tmp_path: Path) -> None:
    """The window is full from 129 ms (last segment of the second flight) to 289 ms (last segment of the last flight).

    The ledger is also allowed to count the time in which the first flight filled the window.
    """
    assert 160.0 - 1.0 <= lasted(tmp_path, at_receiver(queued=True))["receiver-window"] <= 240.0 + 4.0


def test_a_program_that_writes_late_is_not_held_by_the_window_that_has_opened_meanwhile(tmp_path: Path) -> None:
    """The application takes three pauses of 80 ms. Each includes the 9 ms of a flight and the RTT of 20 ms, which do not count."""
    reported = lasted(tmp_path, at_receiver(queued=False))
    assert reported["application"] >= 3 * (80 - 9 - 20) - 3.0


def test_behind_a_queue_what_a_timer_sends_again_while_the_window_is_full_waits_for_the_window(tmp_path: Path) -> None:
    """Two flights of four segments fill the window.

    The last segment of the first flight is retransmitted 300 ms after that flight, and the second flight follows 100 ms later.
    """
    size = MSS - 12
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK, TS val 0 ecr 0>",
        f"0.01ms S > C S. 0:0(0) ack 1 win {4 * size} <mss {MSS}, sackOK, TS val 1000 ecr 0>",
        "20ms C > S . ack 1 win 64240 <TS val 20 ecr 1000>",
    ]
    for came_ms, left_ms, echoed, numbers in ((40, 40, 1000, range(4)), (342, 58, 1000, (3,)), (442, 62, 1040, range(4, 8))):
        for n in numbers:
            lines += [
                f"{came_ms}.{n}ms C > S . {1 + size * n}:{1 + size * (n + 1)} ack 1 <TS val {left_ms} ecr {echoed}>",
                f"{came_ms}.{n}5ms S > C . ack {1 + size * max(n + 1, 4)} win {4 * size} <TS val {1000 + came_ms} ecr {left_ms}>",
            ]
    reported = lasted(tmp_path, "\n".join(lines))
    assert "timeout" not in reported
    assert reported["receiver-window"] + reported["network"] >= 442 - 40.3


def test_by_how_much_a_queue_grew_between_two_flights_the_window_did_not_hold_its_sender(tmp_path: Path) -> None:
    """The capture is made at the receiver, and the RTT is 100 ms.

    Each flight fills the window and waits in a queue that grows by 10 ms. The sender waits 100, 110, 120 and 130 ms for the ACKs of its
    flights. At the receiver, each gap between flights is 10 ms longer than that.
    """
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK, TS val 1000 ecr 0>",
        f"0.01ms S > C S. 0:0(0) ack 1 win {4 * STAMPED_BYTES} <mss {MSS}, sackOK, TS val 5000 ecr 1000>",
        "100ms C > S . ack 1 win 64240 <TS val 1050 ecr 5000>",
    ]
    came_ms, heard = 200, 0
    for flight in range(5):
        left_ms = (heard if flight else 100) + 50
        for n in range(4 * flight, 4 * flight + 4):
            at, us = 1 + STAMPED_BYTES * n, n - 4 * flight
            end, answered = at + STAMPED_BYTES, f"TS val {5000 + came_ms} ecr {1000 + left_ms}"
            lines.append(f"{came_ms}.{us:03}ms C > S . {at}:{end} ack 1 <TS val {1000 + left_ms} ecr {5000 + heard}>")
            lines.append(f"{came_ms}.{us:03}5ms S > C . ack {end} win {4 * STAMPED_BYTES} <{answered}>")
        heard, came_ms = came_ms, came_ms + 100 + 10 * (flight + 1)
    reported = lasted(tmp_path, "\n".join(lines))
    assert reported["receiver-window"] == pytest.approx(100 + 110 + 120 + 130, abs=0.1)


QUESTIONS = 6


def questions(*, queued_ms: int, thought_ms: int, slow_ppm: int = 0) -> str:
    """Return questions captured at the server, which needs 100 ms for each answer. The last question has no answer.

    Each direction takes 10 ms. From the second question on, questions also wait in a queue, and the client thinks before each one. The
    client's timestamp clock is 1,010 ms ahead of the capture's, and slow by `slow_ppm` parts per million.
    """
    options = f"mss {MSS}, sackOK"
    lines = [
        f"0ms    C > S S  0:0(0) win 64240 <{options}, TS val 1000 ecr 0>",
        f"0.05ms S > C S. 0:0(0) ack 1 win 65160 <{options}, TS val 5000 ecr 1000>",
        "20ms   C > S .  ack 1 win 64240 <TS val 1020 ecr 5000>",
    ]
    sent_ms, arrived_ms = 10, 20
    for n in range(QUESTIONS):
        asked, answered = 1 + 200 * n, 1 + 400 * n
        clock = 1010 + sent_ms - sent_ms * slow_ppm // 1_000_000
        lines.append(f"{arrived_ms}ms C > S P. {asked}:{asked + 200} ack {answered} <TS val {clock} ecr {5000 + arrived_ms - 20}>")
        reported = f"win 65160 <TS val {5000 + arrived_ms} ecr {clock}>"
        lines.append(f"{arrived_ms + 0.05}ms S > C . ack {asked + 200} {reported}")
        if n < QUESTIONS - 1:
            lines.append(f"{arrived_ms + 100}ms S > C P. {answered}:{answered + 400} ack {asked + 200} {reported}")
        sent_ms = arrived_ms + 110 + thought_ms
        arrived_ms = sent_ms + 10 + queued_ms
    return "\n".join(lines)


@pytest.mark.parametrize(("queued_ms", "thought_ms"), [(100, 0), (0, 100), (60, 40), (240, 0)])
def test_questions_that_stood_in_a_queue_of_others_are_distinguished_from_late_ones_by_their_own_clock(
    tmp_path: Path, queued_ms: int, thought_ms: int
) -> None:
    """Questions arrive later than the path explains. Their timestamps show when they were sent.

    The server needs 100 ms for each answer in all cases. The timestamp clock ticks every millisecond, so each time is right to within two
    ticks. The first question arrives one RTT (20 ms) after the SYN-ACK.
    """
    reported = lasted(tmp_path, questions(queued_ms=queued_ms, thought_ms=thought_ms))
    assert reported["peer"] == pytest.approx(5 * 100, abs=5 * 2)
    assert reported["network"] == pytest.approx(5 * (20 + queued_ms), abs=5 * 2)
    assert reported["handshake"] == pytest.approx(20, abs=0.1)
    assert reported["application"] == pytest.approx(5 * thought_ms, abs=5 * 2)


def test_a_clock_that_is_slow_is_no_queue(tmp_path: Path) -> None:
    """In each pause of ten minutes, a drift of 80 ppm adds up to 48 ms. In all pauses, it adds up to 240 ms."""
    reported = lasted(tmp_path, questions(queued_ms=0, thought_ms=600_000, slow_ppm=80))
    assert reported["network"] == pytest.approx(5 * 20, abs=5 * 2)


@pytest.mark.parametrize(("acked_by_answer", "by_network_ms"), [(False, 150), (True, 20)])
def test_an_answer_behind_the_last_ack_of_what_stood_in_a_queue_was_awaited_from_that_ack_on(
    tmp_path: Path, *, acked_by_answer: bool, by_network_ms: float
) -> None:
    """The ACK of ten segments arrives 150 ms after them, and the answer 300 ms after them.

    If `acked_by_answer` is true, the last ACK comes with the answer, and only the RTT of 20 ms counts as network. An ACK that comes with an
    answer, and each ACK before it, possibly waited for the server's application.
    """
    acked = acks(100, 0, 8 if acked_by_answer else 10, 10)
    end = 1 + MSS * 10
    rest = f"340ms S > C P. 1:101 ack {end} win 4000\n340.1ms C > S P. {end}:{end + 100} ack 101\n360.1ms S > C . ack {end + 100} win 4000"
    reported = lasted(tmp_path, "\n".join([OPENED, data(40, 0, 10), acked, rest]))
    assert reported["peer"] == pytest.approx(300 - by_network_ms, abs=0.2)


@pytest.mark.parametrize(("ended_each", "by_network"), [(False, True), (True, False)])
def test_without_timestamps_full_segments_of_one_write_that_no_ack_lets_go_are_spaced_by_their_host(
    tmp_path: Path, *, ended_each: bool, by_network: bool
) -> None:
    """In one case, a shaper at the sender passes one segment every 4 ms.

    In the other case, the application writes a segment (with PSH) every 4 ms.
    """
    lines = [OPENED.replace("20ms", "0.02ms")]
    for number in range(60):
        at_ms, first = 10 + 4 * number, 1 + MSS * number
        lines.append(f"{at_ms}ms C > S {'P.' if ended_each else '.'} {first}:{first + MSS} ack 1")
        lines.append(f"{at_ms}.02ms S > C . ack {first + MSS} win 4000")
    reported = lasted(tmp_path, "\n".join(lines))
    cause, other = ("network", "application") if by_network else ("application", "network")
    assert reported[cause] == pytest.approx(59 * 4, abs=12)
    assert reported[other] <= 12


@pytest.mark.parametrize(("handed_down", "by_queue"), [(10, 8), (1, 0)])
def test_what_was_stamped_before_the_segment_before_it_was_captured_stood_in_a_queue_of_its_own_host(
    tmp_path: Path, handed_down: int, by_queue: int
) -> None:
    """The capture point is behind a shaper of the sender, which passes one segment every 4 ms. The path itself takes 20 µs.

    Linux gives the shaper ten segments at a time, with one timestamp. Only eight of them certainly waited in the shaper. The first one did
    not wait. The second one was possibly sent just after the first was captured, because both times are in one millisecond. In the other
    case, the application writes one segment every 4 ms, and there is no shaper.
    """
    size, batches = MSS - 12, 12
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK, wscale 7, TS val 0 ecr 0>",
        f"0.02ms S > C S. 0:0(0) ack 1 win 65160 <mss {MSS}, sackOK, wscale 7, TS val 1000 ecr 0>",
        "0.03ms C > S . ack 1 win 502 <TS val 0 ecr 1000>",
    ]
    for number in range(10 * batches):
        at_ms, first = 10 + 4 * number, 1 + size * number
        stamp = at_ms - 4 * (number % handed_down)
        lines.append(f"{at_ms}ms C > S . {first}:{first + size} ack 1 <TS val {stamp} ecr 1000>")
        lines.append(f"{at_ms}.02ms S > C . ack {first + size} win 4000 <TS val {1000 + at_ms} ecr {stamp}>")
    reported = lasted(tmp_path, "\n".join(lines))
    assert reported["network"] == pytest.approx(batches * by_queue * 4, abs=3)


def test_a_clock_that_runs_slow_shows_no_queue_of_its_own_host_where_it_echoes_what_came_since(tmp_path: Path) -> None:
    """The client's clock is 1% slow. By this clock, a question after 5 s seems to have been sent 50 ms too early.

    Each of the 21 questions is answered after 5 ms.
    """
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK, wscale 7, TS val 0 ecr 0>",
        f"0.02ms S > C S. 0:0(0) ack 1 win 65160 <mss {MSS}, sackOK, wscale 7, TS val 1000 ecr 0>",
        "0.03ms C > S . ack 1 win 502 <TS val 0 ecr 1000>",
    ]
    echo = 1000
    for number, at_ms in enumerate((10, *range(5_010, 5_110, 5))):
        asked, end, stamp = 1 + 100 * number, 101 + 100 * number, at_ms * 99 // 100
        lines.append(f"{at_ms}ms C > S P. {asked}:{end} ack {asked} <TS val {stamp} ecr {echo}>")
        echo = 1000 + at_ms + 5
        lines.append(f"{at_ms + 4}.99ms S > C P. {asked}:{end} ack {end} win 4000 <TS val {echo} ecr {stamp}>")
    reported = lasted(tmp_path, "\n".join(lines))
    assert reported["peer"] == pytest.approx(21 * 5, abs=1)
    assert reported["network"] <= 2
