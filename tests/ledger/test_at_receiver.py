"""The ledger of a sender without timestamps, captured at its receiver: an ACK is captured half an RTT before it reaches the sender.

Stacks that send no timestamps are Windows, libslirp, lwIP and smoltcp. The captures are hand-written, with an RTT of 20 ms unless stated
otherwise. Expected durations follow from the times in each capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

MSS = 1_460


def opened(answered_s: float = 0.0200, options: str = "") -> str:
    return f"""
        0.0000 C > S S  0:0(0)        win 64240 <mss {MSS}{options}>
        0.0000 S > C S. 0:0(0) ack 1  win 65535 <mss {MSS}{options}>
        {answered_s:.4f} C > S .      ack 1  win 64240
        """


def flights(sizes: list[int], first_s: float, every_s: float = 0.0200, full: int = MSS, window: int = 65_535, flags: str = ".") -> str:
    """Return one flight for each element of `sizes`, which is the flight's number of segments.

    Each segment is ACKed at once, and these ACKs release the next flight.
    """
    lines, sent = [], 1
    for number, size in enumerate(sizes):
        for place in range(size):
            at_s = first_s + number * every_s + place * 0.000_010
            lines.append(f"{at_s:.6f} C > S {flags} {sent}:{sent + full} ack 1")
            lines.append(f"{at_s + 0.000_005:.6f} S > C . ack {sent + full} win {window}")
            sent += full
    return "\n".join(lines)


def spread(segments: int, every_s: float, first_s: float) -> str:
    return flights([1] * segments, first_s, every_s)


def test_the_way_of_the_syn_ack_is_the_handshakes_and_what_the_program_took_then_its_own(tmp_path: Path) -> None:
    reported = lasted(tmp_path, opened() + "0.0320 C > S P. 1:101 ack 1\n 0.0321 S > C . ack 101 win 65535")
    assert reported["handshake"] == pytest.approx(20.0, abs=0.05)
    assert reported["application"] == pytest.approx(12.0, abs=0.15)  # 12 ms before the data, and 0.1 ms after the last ACK


def test_a_flight_that_leaves_room_for_one_segment_waited_for_the_window_that_flights_fill_as_their_sender_knew_it(tmp_path: Path) -> None:
    """Two flights have six segments. Two more flights have seven, which fill the receive window.

    The flights of six leave room for one segment. Linux does not send while less than a third of the window is free
    (`tcp_tso_should_defer`). The capture never shows a whole flight in transit, because each segment is ACKed at once. Only the first
    flight has the cause slow start, because nothing shows that it could have been larger.
    """
    text = opened().replace("win 65535", f"win {7 * MSS}") + flights([6, 6, 7, 7], 0.0400, window=7 * MSS)
    reported = lasted(tmp_path, text.replace(f"<mss {MSS}>", f"<mss {MSS}, sackOK>"))
    assert reported["receiver-window"] == pytest.approx(2 * 20, abs=0.3)
    assert reported["slow-start"] == pytest.approx(20, abs=0.3)


def cut_window(room: int, sent: int) -> str:
    """Return four segments and their ACKs. The last ACK offers a window of `room` bytes, which is less than before.

    220 ms later, `sent` bytes arrive.
    """
    return (
        opened()
        + f"""
        0.0201 C > S . 1:1461     ack 1
        0.0201 C > S . 1461:2921  ack 1
        0.0202 S > C . ack 2921   win 3528
        0.0401 C > S . 2921:4381  ack 1
        0.0401 C > S . 4381:5841  ack 1
        0.0402 S > C . ack 5841   win {room}
        0.2602 C > S P. 5841:{5841 + sent} ack 1
        0.2603 S > C . ack {5841 + sent}   win 0
        0.3000 S > C . ack {5841 + sent}   win 32768
        0.3200 C > S P. {5841 + sent}:{7301 + sent} ack 1
        0.3201 S > C . ack {7301 + sent}   win 32768
        """
    )


def test_what_fills_the_room_that_the_last_ack_left_was_forced_into_it_though_there_was_more_before(tmp_path: Path) -> None:
    """The window ended at 6,449. The last ACK moves its end back to 6,353, which leaves room for 512 bytes.

    When the 512 bytes are sent, this ACK has reached the sender.
    """
    reported = lasted(tmp_path, cut_window(512, 512))
    # The 512 bytes fill the window, which stays full until their ACK can have reached the sender.
    assert reported["receiver-window"] == pytest.approx(220.1 + 20.1, abs=0.2)
    assert reported.get("application", 0) < 1


def test_what_leaves_room_in_the_window_was_not_held_by_it(tmp_path: Path) -> None:
    reported = lasted(tmp_path, cut_window(512, 300))
    assert reported["application"] == pytest.approx(220.0, abs=2.5)


def test_before_a_probe_the_window_was_closed_however_its_edge_had_moved(tmp_path: Path) -> None:
    """The sender sent data beyond the window of the first ACK. The last ACK moves the end of the window to the end of these data."""
    reported = lasted(
        tmp_path,
        opened()
        + """
        0.0201 C > S . 1:1461     ack 1
        0.0201 C > S . 1461:2921  ack 1
        0.0202 S > C . ack 1461   win 1000
        0.0203 S > C . ack 2921   win 0
        0.2403 C > S . 2920:2920(0) ack 1
        0.2404 S > C . ack 2921   win 0
        0.3000 S > C . ack 2921   win 32768
        0.3200 C > S P. 2921:4381 ack 1
        0.3201 S > C . ack 4381   win 32768
        """,
    )
    assert reported["zero-window"] + reported.get("receiver-window", 0) == pytest.approx(299.9, abs=0.2)


def test_what_comes_evenly_spread_over_the_round_trip_is_spaced_by_the_path(tmp_path: Path) -> None:
    """One segment arrives every 3 ms, so seven arrive in each RTT. The path sets this pace."""
    reported = lasted(tmp_path, opened() + flights([2, 4], 0.0201) + "\n" + shifted(spread(60, 0.003, 0.0601), 6))
    assert reported["network"] >= 0.9 * 59 * 3.0
    assert "send-buffer" not in reported


def test_what_comes_in_flights_with_pauses_between_fills_a_buffer(tmp_path: Path) -> None:
    reported = lasted(tmp_path, opened() + flights([2, 4] + [7] * 12, 0.0201))
    assert reported["send-buffer"] >= 11 * 19.5
    assert reported.get("network", 0) < 25


def test_single_segments_that_never_become_more_fill_a_buffer_and_are_not_in_slow_start(tmp_path: Path) -> None:
    """A stack whose send buffer has room for one segment sends one segment per RTT.

    Slow start would add one segment per ACK (RFC 5681, 3.1).
    """
    reported = lasted(tmp_path, opened() + flights([1] * 12, 0.0201))
    assert reported["send-buffer"] == pytest.approx(11 * 20.0, abs=0.5)
    assert "slow-start" not in reported


def shifted(text: str, segments: int) -> str:
    """Return the lines of an exchange, with all data `segments` full segments later in the stream."""
    lines = []
    for line in text.splitlines():
        words = line.split()
        words = [
            ":".join(str(int(part) + segments * MSS) for part in word.split(":"))
            if ":" in word
            else str(int(word) + segments * MSS)
            if words[place - 1] == "ack" and words[1] == "S"
            else word
            for place, word in enumerate(words)
        ]
        lines.append(" ".join(words))
    return "\n".join(lines)


@pytest.mark.parametrize("answered_s", [0.0200, 0.0225, 0.0260])
def test_a_handshake_that_took_longer_than_the_way_does_not_make_acks_come_too_late(tmp_path: Path, answered_s: float) -> None:
    """The handshake is slower than the RTT because of address resolution.

    Then flights double every 20 ms, each released by the ACKs of the previous one.
    """
    reported = lasted(tmp_path, opened(answered_s) + flights([2, 4, 8, 16], answered_s + 0.0001))
    assert reported["slow-start"] == pytest.approx(3 * 20.0, abs=0.5)
    assert reported.get("application", 0) < 1


def test_what_a_program_gives_halfway_to_the_round_trip_was_let_go_by_no_ack(tmp_path: Path) -> None:
    """One piece arrives every 13 ms, but the RTT is 20 ms. So no ACK of the previous piece can have reached the sender."""
    reported = lasted(tmp_path, opened() + flights([1] * 20, 0.0201, 0.013, full=500))
    assert "slow-start" not in reported
    assert "send-buffer" not in reported


@pytest.mark.parametrize("options", ["", ", sackOK"])
def test_segments_a_little_below_the_mss_that_fly_together_are_full_ones(tmp_path: Path, options: str) -> None:
    """The libslirp stack subtracts 20 bytes too many for headers, so its full segments are shorter than the MSS.

    If these segments counted as small, Nagle's algorithm would send only one at a time.
    """
    reported = lasted(tmp_path, opened(options=options) + flights([2, 4, 8, 16, 32], 0.0201, full=1_440))
    assert reported["slow-start"] == pytest.approx(4 * 20.0, abs=0.5)
    assert "nagle" not in reported


def test_segments_a_little_below_the_mss_that_come_one_by_one_are_small_and_held(tmp_path: Path) -> None:
    reported = lasted(tmp_path, opened() + flights([1] * 8, 0.0201, full=1_440))
    assert reported.get("nagle", 0) + reported.get("send-buffer", 0) == pytest.approx(7 * 20.0, abs=0.5)


def test_causes_of_these_exchanges_sum_to_their_lives(tmp_path: Path) -> None:
    reported = lasted(tmp_path, opened(0.0225) + flights([2, 4, 8], 0.0226))
    assert sum(reported.values()) == pytest.approx(22.6 + 2 * 20.0 + 0.075, abs=0.001)


def test_segments_of_one_write_that_come_a_round_trip_and_a_half_apart_are_spaced_by_the_path(tmp_path: Path) -> None:
    """At 400 kb/s, a frame of 1,538 bytes takes 31 ms, which is longer than the RTT.

    A short segment takes less. Only the last segment ends a write (PSH).
    """
    reported = lasted(
        tmp_path,
        opened()
        + flights([1] * 20, 0.0201, 0.031)
        + """
        0.6195 C > S .  29201:29601 ack 1
        0.6196 S > C .  ack 29601 win 65535
        0.6505 C > S P. 29601:31061 ack 1
        0.6506 S > C .  ack 31061 win 65535
        """,
    )
    assert reported["network"] == pytest.approx(19 * 31.0 + 10.3 + 31.0, abs=0.5)
    assert reported.get("application", 0) < 1.5


def test_segments_as_far_apart_as_round_trips_are_spaced_by_the_path_where_a_shorter_one_came_sooner(tmp_path: Path) -> None:
    """At 530 kb/s, a frame of 1,538 bytes takes 23.2 ms, which looks like one segment per RTT of 20 ms.

    But 478 bytes take 7.2 ms, so no ACK released the segments.
    """
    lines = [opened(), flights([1] * 2, 0.0201, 0.0232)]
    for number in range(6):
        sent, at_s = 2_921 + number * 3_320, 0.0665 + number * 0.0536
        for size, flags, came_s in ((400, "P.", 0.0), (MSS, ".", 0.0232), (MSS, ".", 0.0464)):
            lines.append(f"{at_s + came_s:.4f} C > S {flags} {sent}:{sent + size} ack 1")
            sent += size
            lines.append(f"{at_s + came_s + 0.0001:.4f} S > C . ack {sent} win 65535")
    reported = lasted(tmp_path, "\n".join(lines))
    assert reported["network"] >= 0.95 * (0.0464 + 5 * 0.0536) * 1000


def test_writes_as_large_as_a_segment_that_come_as_regularly_are_their_programs(tmp_path: Path) -> None:
    """Each segment ends a write (PSH), so possibly, the application had not written the next segment yet."""
    reported = lasted(tmp_path, opened() + flights([1] * 20, 0.0201, 0.031, flags="P."))
    assert reported["application"] >= 19 * (31.0 - 20.0 - 2.1)


def test_segments_that_each_wait_for_an_ack_are_not_spaced_by_the_path(tmp_path: Path) -> None:
    """One segment arrives per RTT. If the path itself were this slow, the RTT of data would be longer than the RTT of the handshake."""
    reported = lasted(tmp_path, opened() + flights([1] * 20, 0.0201, 0.0202))
    assert reported.get("network", 0) < 20


def test_small_segments_that_come_at_once_behind_each_other_are_not_held_by_nagle(tmp_path: Path) -> None:
    """Each segment is ACKed before the next one arrives. But when the next one was sent, this ACK had not reached the sender."""
    reported = lasted(tmp_path, opened() + flights([8] * 6, 0.0201, full=787, flags="P."))
    assert "nagle" not in reported
    assert "nagle-delayed-ack" not in reported


def test_small_segments_that_each_come_a_round_trip_behind_the_ack_before_are_held_by_nagle(tmp_path: Path) -> None:
    reported = lasted(tmp_path, opened() + flights([1] * 12, 0.0201, full=787, flags="P."))
    assert reported["nagle"] >= 10 * 19.9


def test_at_the_receiver_the_time_until_its_answer_is_all_its_own(tmp_path: Path) -> None:
    """The server answers each question after 8 ms, and the next question arrives one RTT (2.2 ms) after the answer."""
    questions = [0.0022 + number * 0.0102 for number in range(10)]
    lines = [
        f"""
        {at_s:.4f} C > S P. {48 * number + 1}:{48 * number + 49} ack {number * 100 + 1}
        {at_s + 0.0080:.4f} S > C P. {number * 100 + 1}:{number * 100 + 101} ack {48 * number + 49} win 65535"""
        for number, at_s in enumerate(questions[:-1])
    ]
    reported = lasted(tmp_path, opened(0.0022) + "".join(lines) + f"\n{questions[-1]:.4f} C > S P. 433:481 ack 901")
    assert reported["peer"] == pytest.approx(9 * 8.0, abs=0.7)
    assert reported["network"] == pytest.approx(9 * 2.2, abs=0.7)


def repaired(*, overtaken: bool = False) -> str:
    """Return ten segments, of which the third is lost. Its retransmission, sent after four new segments, is lost, too.

    Two segments arrive after the lost retransmission. One RTT later, two more and a second retransmission arrive. If `overtaken` is true,
    the IP IDs show that two segments of the first flight arrive in the wrong order.
    """
    first = [0, 1, 4, 3, 5, 6, 7, 8, 9] if overtaken else [0, 1, *range(3, 10)]
    lines, have = [opened(options=", sackOK")], set[int]()
    for at_ms, numbers in ((40, first), (60, [10, 11, 12, 13]), (60.1, [14, 15]), (80.1, [16, 17, 2])):
        for place, number in enumerate(numbers):
            have.add(number)
            asked = next(n for n in range(20) if n not in have)
            sack = f" <sack {1 + MSS * (asked + 1)}:{1 + MSS * (max(have) + 1)}>" if asked < max(have) else ""
            counted = 130 if number == 2 else 100 + number
            lines += [
                f"{at_ms + place / 100:.3f}ms C > S . {1 + MSS * number}:{1 + MSS * (number + 1)} ack 1 {{id {counted}}}",
                f"{at_ms + place / 100 + 0.005:.3f}ms S > C . ack {1 + MSS * asked} win 65535{sack}",
            ]
    return "\n".join(lines)


def test_a_sender_that_knows_of_a_loss_repairs_it_though_the_repair_does_not_come(tmp_path: Path) -> None:
    """The sender reacts to duplicate ACKs captured at 40.025 ms. Its reaction is captured at 60.025 ms, one RTT later.

    So the recovery lasts from 60.03 to 80.12 ms.
    """
    assert lasted(tmp_path, repaired())["loss-recovery"] == pytest.approx(80.12 - 60.03, abs=0.05)


def test_where_segments_are_overtaken_a_few_duplicate_acks_are_no_sign_of_a_repair(tmp_path: Path) -> None:
    """A sender that has seen reordering waits for longer than three duplicate ACKs (RFC 8985, 6.2).

    So nothing shows a recovery before the retransmission arrives, at 80.12 ms.
    """
    assert lasted(tmp_path, repaired(overtaken=True)).get("loss-recovery", 0.0) < 0.1


def test_a_program_that_is_silent_behind_a_loss_is_not_repairing_it(tmp_path: Path) -> None:
    """The ACK of everything is captured at 80.125 ms and reaches the sender 20 ms later. New data arrive 5 s later."""
    more = f"5080ms C > S . {1 + MSS * 18}:{1 + MSS * 19} ack 1\n5080.005ms S > C . ack {1 + MSS * 19} win 65535"
    reported = lasted(tmp_path, f"{repaired()}\n{more}")
    assert reported["loss-recovery"] == pytest.approx(80.125 + 20 - 60.03, abs=0.05)
    assert reported["application"] >= 4_900


def pairs(count: int, round_trip_ms: int) -> str:
    """Return `count` pairs of segments. A pair arrives every 4 ms, and each is acknowledged at once.

    The timestamps of a pair echo the last ACK that had reached the sender. This ACK was captured one RTT earlier.
    """
    size, every_ms = MSS - 12, 4
    lines = [
        f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK, TS val 0 ecr 0>",
        f"0.01ms S > C S. 0:0(0) ack 1 win 65535 <mss {MSS}, sackOK, TS val 1000 ecr 0>",
        f"{round_trip_ms}ms C > S . ack 1 win 64240 <TS val {round_trip_ms} ecr 1000>",
    ]
    for number in range(count):
        came_ms, first = 40 + every_ms * number, 1 + 2 * size * number
        heard = number - -(-round_trip_ms // every_ms)
        echoed = 1040 + every_ms * heard if heard >= 0 else 1000
        lines += [
            f"{came_ms}ms C > S . {first}:{first + size} ack 1 <TS val {came_ms} ecr {echoed}>",
            f"{came_ms}.005ms C > S . {first + size}:{first + 2 * size} ack 1 <TS val {came_ms} ecr {echoed}>",
            f"{came_ms}.010ms S > C . ack {first + 2 * size} win 65535 <TS val {1000 + came_ms} ecr {came_ms}>",
        ]
    return "\n".join(lines)


def test_what_leaves_some_time_after_the_ack_that_it_echoes_fills_no_buffer_but_is_spaced_by_its_sender(tmp_path: Path) -> None:
    """When the first six segments were sent, no ACK can have reached the sender.

    Each later pair echoes an ACK that reached the sender 3 ms before the pair was sent.
    """
    reported = lasted(tmp_path, pairs(60, round_trip_ms=21))
    assert reported["pacing"] >= (60 - 6 - 1) * 4 * 0.9
    assert "send-buffer" not in reported


def test_what_leaves_with_the_ack_that_it_echoes_fills_a_buffer(tmp_path: Path) -> None:
    """Each pair echoes the ACK of the fifth pair before it. The sender sends each pair as soon as the echoed ACK arrives."""
    reported = lasted(tmp_path, pairs(60, round_trip_ms=20))
    assert reported["send-buffer"] >= (60 - 5 - 5) * 4 * 0.9
    assert reported.get("pacing", 0) <= 5 * 4 + 1


def test_behind_a_flight_of_which_the_capture_missed_a_part_that_was_acknowledged_the_wait_is_unknown(tmp_path: Path) -> None:
    """The capture lacks the last two segments of each flight of four.

    So the captured flights of two, which never grow, are not the true flights. Each wait is 20 ms, minus the 10 µs between the two captured
    segments. The missing bytes are acknowledged, so they were not lost before the capture point.
    """
    lines = [opened()]
    for number in range(8):
        at_ms, first = 40 + 20 * number, 1 + 4 * MSS * number
        lines += [f"{at_ms + place * 0.01:.2f}ms C > S . {first + place * MSS}:{first + (place + 1) * MSS} ack 1" for place in range(2)]
        lines.append(f"{at_ms + 0.05:.2f}ms S > C . ack {first + 4 * MSS} win 65535")
    reported = lasted(tmp_path, "\n".join(lines))
    assert reported["unknown"] == pytest.approx(7 * 19.99, abs=0.1)
