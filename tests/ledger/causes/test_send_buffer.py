"""The cause is a full send buffer, a window, slow start or Nagle's algorithm. Each exchange has a counterpart with another cause.

The captures are hand-written, as if recorded at the sender. The RTT is 20 ms. Expected durations follow from the times in each capture. The
SYN of an "old" sender offers neither SACK nor timestamps.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import analyze
from tests.support import packets
from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MSS = 1_460
ROUND_MS = 20.1
"""Time between flights: the ACK of a flight arrives after 20 ms and releases the next flight 0.1 ms later."""


def opened(*, old: bool, window: int, mss: int = MSS) -> str:
    """Return the handshake. The first data are sent at 40 ms. Window scaling is off."""
    options = f"<mss {mss}>" if old else f"<mss {mss}, sackOK>"
    return f"""
        0.0000 C > S S  0:0(0)        win 65535 {options}
        0.0200 S > C S. 0:0(0) ack 1  win {window} {options}
        0.0200 C > S .         ack 1  win 65535
        """


def flights(sizes: Sequence[Sequence[int]], window: int, seq: int = 1, from_s: float = 0.04) -> str:
    """Return one flight for each list of segment sizes. The ACK of a whole flight releases the next one."""
    lines = []
    for place, flight in enumerate(sizes):
        at_s = from_s + place * ROUND_MS / 1000
        for size in flight:
            lines.append(f"{at_s:.4f} C > S . {seq}:{seq + size} ack 1")
            seq += size
        lines.append(f"{at_s + 0.02:.4f} S > C . ack {seq} win {window}")
    return "\n".join(lines)


def full(count: int) -> list[int]:
    return [MSS] * count


@pytest.mark.parametrize(("pause_s", "held"), [(0.1, 2), (0.3, 1)])
def test_a_flight_that_was_as_large_once_is_held_by_the_buffer(tmp_path: Path, pause_s: float, held: int) -> None:
    """The flights have 1, 2 and 4 segments. After a pause, they have 2, 4 and 1.

    Slow start explains only the first flight of 4. The first flight after the pause (2 segments) is no larger than the last flight before
    the pause (4). If the pause is longer than the retransmission timeout, slow start can explain the second flight of 4 as well (RFC 5681,
    4.1).
    """
    begun = flights([full(1), full(2), full(4)], 65_535)
    again = flights([full(2), full(4), full(1)], 65_535, seq=1 + 7 * MSS, from_s=0.1002 + pause_s)
    reported = lasted(tmp_path, f"{opened(old=True, window=65_535)}{begun}\n{again}")
    assert reported["send-buffer"] == pytest.approx(held * ROUND_MS, abs=0.1)


LOW = [[MSS, 1300]] * 9
"""Nine flights of a full segment and 1,300 bytes. A send buffer of 2,760 bytes would cause such flights."""


def test_flights_below_two_segments_that_never_grow_are_a_full_buffers(tmp_path: Path) -> None:
    """With slow start, each ACK would add a segment (RFC 5681, 3.1).

    The first flight is as large as all later ones, so it filled the send buffer, too.
    """
    reported = lasted(tmp_path, opened(old=True, window=16_384) + flights(LOW, 16_384))
    assert reported["send-buffer"] == pytest.approx(8 * ROUND_MS, abs=0.1)


def test_a_program_that_goes_on_without_an_ack_has_filled_no_buffer(tmp_path: Path) -> None:
    """A small segment is sent 10 ms after the flight before, and no ACK releases it."""
    text = flights(LOW, 16_384)
    last = 1 + 2760 * 9
    at_s = 0.04 + 9 * ROUND_MS / 1000
    late = f"{at_s:.4f} C > S . {last}:{last + 100} ack 1\n{at_s + 0.002:.4f} S > C . ack {last} win 16384\n"
    late += f"{at_s + 0.01:.4f} C > S . {last + 100}:{last + 200} ack 1\n{at_s + 0.02:.4f} S > C . ack {last + 200} win 16384"
    assert "send-buffer" not in lasted(tmp_path, opened(old=True, window=16_384) + text + "\n" + late)


def test_low_flights_that_fill_the_window_are_the_windows(tmp_path: Path) -> None:
    reported = lasted(tmp_path, opened(old=True, window=2_760) + flights(LOW, 2_760))
    assert reported["receiver-window"] == pytest.approx(8 * ROUND_MS, abs=0.1)
    assert "send-buffer" not in reported


def test_a_smaller_flight_behind_one_on_the_plateau_was_not_held_by_the_congestion_window(tmp_path: Path) -> None:
    """Eight flights have five segments, and the last flight has four.

    If an application writes large pieces, a full send buffer does not always have the same number of bytes. So a full send buffer explains
    the last flight, too.
    """
    reported = lasted(tmp_path, opened(old=False, window=60_000) + flights([full(5)] * 8 + [full(4), full(1)], 60_000))
    assert reported["send-buffer"] == pytest.approx(9 * ROUND_MS, abs=0.1)


def test_a_plateau_counts_as_such_below_a_top_that_was_reached_twice(tmp_path: Path) -> None:
    """Two flights have 8,252 bytes, eight 7,300 and one 5,840.

    The plateau is 7,300 bytes, because no flight is a whole segment larger. The second flight is no larger than the first, so slow start
    limits only the first. The third flight waits for the ACK of a small segment, so its wait has an unknown cause: possibly, Nagle's
    algorithm delayed it.
    """
    text = flights([[*full(5), 952]] * 2 + [full(5)] * 8 + [full(4), full(1)], 60_000)
    reported = lasted(tmp_path, opened(old=False, window=60_000) + text)
    assert reported["send-buffer"] == pytest.approx(9 * ROUND_MS, abs=0.1)
    assert reported["unknown"] == pytest.approx(ROUND_MS, abs=0.1)


def test_flights_that_grow_later_did_not_stand_on_a_plateau_before(tmp_path: Path) -> None:
    """Eight flights have five segments, one has four, and one seven.

    The flight of seven shows that more data could be in flight. So the limit of the flight of four is unknown.
    """
    text = flights([full(5)] * 8 + [full(4), full(7), full(1)], 60_000)
    reported = lasted(tmp_path, opened(old=False, window=60_000) + text)
    assert reported["send-buffer"] == pytest.approx(8 * ROUND_MS, abs=0.1)
    assert reported["slow-start"] == pytest.approx(ROUND_MS, abs=0.1)
    assert reported["unknown"] == pytest.approx(ROUND_MS, abs=0.1)


@pytest.mark.parametrize(("old", "last", "rounds"), [(True, 6, 9), (False, 6, 6), (False, 5, 10)])
def test_equal_flights_below_the_plateau_refute_slow_start(tmp_path: Path, *, old: bool, last: int, rounds: int) -> None:
    """Six flights have five segments each. Three flights have three segments each. Then one larger flight follows.

    The second and third flights of three did not grow. Newer senders can leave slow start without a loss (RFC 9406). If the last flight of
    a newer sender is one segment larger than the plateau, the equal flights prove nothing.
    """
    text = flights([full(5)] * 6 + [full(3)] * 3 + [full(last), full(1)], 60_000)
    reported = lasted(tmp_path, opened(old=old, window=60_000) + text)
    assert reported["send-buffer"] == pytest.approx(rounds * ROUND_MS, abs=0.1)


@pytest.mark.parametrize(
    ("old", "in_time_ms", "rest", "by_buffer_ms"), [(True, 20, 1, 15.0), (True, 30, 1, 0.0), (True, 20, 3, 15.0), (False, 20, 3, 0.0)]
)
def test_one_ack_that_comes_late_alone_shows_no_queue(
    tmp_path: Path, in_time_ms: int, rest: int, by_buffer_ms: float, *, old: bool
) -> None:
    """Flights have five segments.

    In the last flight, one or three segments are ACKed 15 ms after the other segments, which are ACKed in time or 10 ms late. If one ACK
    covers three segments, the network card of a current host possibly merged them after a queue.
    """
    at_s, seq, most = 0.04 + 7 * ROUND_MS / 1000, 1 + 35 * MSS, 10 - rest
    first_s, rest_s = at_s + in_time_ms / 1000, at_s + (in_time_ms + 15) / 1000
    sent = [f"{first_s + 0.0001:.4f} C > S . {start}:{start + MSS} ack 1" for start in range(seq + 5 * MSS, seq + most * MSS, MSS)]
    text = [flights([full(5)] * 7, 60_000), *(f"{at_s:.4f} C > S . {seq + n * MSS}:{seq + (n + 1) * MSS} ack 1" for n in range(5))]
    text += [f"{first_s:.4f} S > C . ack {seq + (5 - rest) * MSS} win 60000", *sent, f"{rest_s:.4f} S > C . ack {seq + 5 * MSS} win 60000"]
    begun = opened(old=old, window=60_000) + "\n".join(text)
    after = f"{rest_s + 0.0001:.4f} C > S . {seq + most * MSS}:{seq + (most + 1) * MSS} ack 1"
    before, reported = (lasted(tmp_path, each) for each in (begun, f"{begun}\n{after}"))
    assert reported["send-buffer"] - before["send-buffer"] == pytest.approx(by_buffer_ms, abs=0.2)


def drained(sizes: Sequence[int], *, acked_in_turn: bool, rounds: int = 9) -> str:
    """Return flights. Each segment of a flight takes 40 ms at the bottleneck.

    The ACK of a flight's last segment releases the next flight.
    """
    lines, seq = [], 1
    for at_s in (0.04 + place * (0.0201 + 0.04 * len(sizes)) for place in range(rounds)):
        for passed, size in enumerate(sizes, 1):
            lines.append((at_s, f"C > S . {seq}:{seq + size} ack 1"))
            seq += size
            if acked_in_turn or passed == len(sizes):
                lines.append((at_s + 0.02 + 0.04 * passed, f"S > C . ack {seq} win 65535"))
    return "\n".join(f"{at_s:.4f} {line}" for at_s, line in sorted(lines, key=itemgetter(0)))


def test_a_flight_that_is_acknowledged_bit_by_bit_went_through_a_queue_and_the_buffer_has_the_round_trip_behind_it(tmp_path: Path) -> None:
    """Each of eight waits is 180.1 ms.

    The path is busy for 160 ms with four segments. Then it is idle for 20 ms, because the send buffer is empty.
    """
    reported = lasted(tmp_path, opened(old=False, window=65_535) + drained(full(4), acked_in_turn=True))
    assert "delayed-ack" not in reported
    assert reported["send-buffer"] == pytest.approx(8 * 20, abs=0.5)


def test_an_ack_that_comes_a_timer_behind_its_neighbours_was_delayed_though_that_stood_in_a_queue(tmp_path: Path) -> None:
    """In each flight of five segments, four are ACKed 15 ms late, and the last one 150 ms after them.

    No queue grows that fast.
    """
    lines, seq = [], 1
    for at_s in (0.04 + place * 0.1851 for place in range(9)):
        lines += [f"{at_s:.4f} C > S . {seq + n * MSS}:{seq + (n + 1) * MSS} ack 1" for n in range(5)]
        seq += 5 * MSS
        lines += [f"{at_s + 0.035:.4f} S > C . ack {seq - MSS} win 60000", f"{at_s + 0.185:.4f} S > C . ack {seq} win 60000"]
    reported = lasted(tmp_path, opened(old=False, window=60_000) + "\n".join(lines))
    assert reported["delayed-ack"] == pytest.approx(8 * 185.1, rel=0.01)


def test_a_small_buffer_that_leaves_the_path_idle_is_not_advised_to_become_smaller_for_its_queues_sake(tmp_path: Path) -> None:
    text = opened(old=False, window=65_535) + drained(full(4), acked_in_turn=True, rounds=20)
    remedies = {one.id: " ".join(one.remedy) for one in analyze(packets.capture(tmp_path / "exchange.pcap", text)).findings}
    assert "raise the send buffer" in remedies["send-buffer-limited"]
    assert "smaller buffer" not in remedies["bufferbloat"]


def test_a_flight_that_is_acknowledged_at_once_after_as_long_waited_for_a_delayed_ack(tmp_path: Path) -> None:
    reported = lasted(tmp_path, opened(old=False, window=65_535) + drained(full(4), acked_in_turn=False))
    assert "send-buffer" not in reported
    assert reported["delayed-ack"] == pytest.approx(8 * 180.1, rel=0.01)


@pytest.mark.parametrize(("late_ms", "rounds"), [(3.0, 9), (4.5, 8)])
def test_a_program_that_goes_on_four_milliseconds_behind_the_ack_was_not_woken_by_it(tmp_path: Path, late_ms: float, rounds: int) -> None:
    """The capture is made at the sender. An ACK that makes room wakes the application within 4 ms, however long the path is."""
    at_s, seq = 0.04 + 8 * ROUND_MS / 1000 + (ROUND_MS + late_ms) / 1000, 1 + 45 * MSS
    text = flights([full(5)] * 9, 60_000) + f"\n{at_s:.4f} C > S . {seq}:{seq + MSS} ack 1"
    reported = lasted(tmp_path, opened(old=False, window=60_000) + text)
    assert reported["send-buffer"] == pytest.approx(rounds * ROUND_MS + (late_ms if rounds == 9 else 0), abs=0.2)


@pytest.mark.parametrize("old", [True, False])
def test_flights_that_grow_through_a_later_plateau_do_not_stand_on_it(tmp_path: Path, *, old: bool) -> None:
    """Flights of one, two, three and five segments are slow start. The next six flights, of three segments, are a plateau."""
    text = flights([full(1), full(2), full(3), full(5), *[full(3)] * 6, full(1)], 60_000)
    reported = lasted(tmp_path, opened(old=old, window=60_000) + text)
    assert reported["slow-start"] == pytest.approx(4 * ROUND_MS, abs=0.1)
    assert reported["send-buffer"] == pytest.approx(6 * ROUND_MS, abs=0.1)


@pytest.mark.parametrize(("old", "rounds"), [(True, 2), (False, 0)])
def test_an_old_sender_whose_flight_did_not_grow_is_not_in_slow_start_however_few_they_are(
    tmp_path: Path, *, old: bool, rounds: int
) -> None:
    """There are three flights of three segments.

    The congestion window of a newer sender can stop growing without a loss (RFC 9406), so the cause is unknown.
    """
    reported = lasted(tmp_path, opened(old=old, window=60_000) + flights([full(3)] * 3 + [full(1)], 60_000))
    assert reported.get("send-buffer", 0.0) == pytest.approx(rounds * ROUND_MS, abs=0.1)
    assert reported["slow-start"] == pytest.approx(ROUND_MS, abs=0.1)
    assert reported.get("unknown", 0.0) == pytest.approx((2 - rounds) * ROUND_MS, abs=0.1)


@pytest.mark.parametrize(("size", "cause", "rounds"), [(1_300, "send-buffer", 8), (MSS, "receiver-window", 7)])
def test_a_small_segment_does_not_wait_for_a_third_of_the_window(tmp_path: Path, size: int, cause: str, rounds: int) -> None:
    """Four segments are in flight, and the window has room for 1,600 bytes.

    Linux defers only if it has more than one segment to send.
    """
    window = 4 * size + 1_600
    reported = lasted(tmp_path, opened(old=False, window=window) + flights([[size] * 4] * 9, window))
    assert reported[cause] == pytest.approx(rounds * ROUND_MS, abs=0.1)


@pytest.mark.parametrize("old", [True, False])
def test_a_window_with_room_for_one_more_segment_holds_newer_senders_alone(tmp_path: Path, *, old: bool) -> None:
    """Four segments are in flight, and the window has room for five.

    Linux can wait until a third of the window is free (`tcp_tso_should_defer`), but BSD sends what fits.
    """
    reported = lasted(tmp_path, opened(old=old, window=5 * MSS) + flights([full(4)] * 9, 5 * MSS))
    assert reported.get("send-buffer", 0.0) == pytest.approx(8 * ROUND_MS if old else 0.0, abs=0.1)


def messages(tail: int, *, window: int, room_first: bool) -> str:
    """Return messages of three full segments and a small one. The window has room for two segments.

    A segment is sent 0.1 ms after an ACK makes room for it.
    """
    lines, seq, at_s = [], 1, 0.04
    for _ in range(4):
        for size in (MSS, MSS):
            lines.append(f"{at_s:.4f} C > S . {seq}:{seq + size} ack 1")
            seq += size
        lines.append(f"{at_s + 0.02:.4f} S > C . ack {seq - MSS} win {window}")
        lines.append(f"{at_s + 0.0201:.4f} C > S . {seq}:{seq + MSS} ack 1")
        seq += MSS
        if room_first:
            lines.append(f"{at_s + 0.022:.4f} S > C . ack {seq - MSS} win {window}")
        lines.append(f"{at_s + 0.0401:.4f} S > C . ack {seq} win {window}")
        lines.append(f"{at_s + 0.0402:.4f} C > S P. {seq}:{seq + tail} ack 1")
        seq += tail
        lines.append(f"{at_s + 0.0602:.4f} S > C . ack {seq} win {window}")
        at_s += 0.1
    return "\n".join(lines)


def test_a_small_segment_that_let_room_pass_was_held_by_nagle(tmp_path: Path) -> None:
    """The ACK at 22 ms makes room for a full segment.

    But the 500 bytes are sent only 18.1 ms later, when the ACK of all data arrives.
    """
    window = 2 * MSS
    reported = lasted(tmp_path, opened(old=True, window=window) + messages(500, window=window, room_first=True))
    assert reported["nagle"] == pytest.approx(4 * ROUND_MS, abs=0.1)


def test_a_small_segment_that_leaves_when_the_window_opens_was_the_windows(tmp_path: Path) -> None:
    """Only the ACK of all data opens the window, so the window and Nagle's algorithm explain the wait equally well."""
    window = 2 * MSS
    reported = lasted(tmp_path, opened(old=True, window=window) + messages(500, window=window, room_first=False))
    assert "nagle" not in reported


@pytest.mark.parametrize(("count", "held"), [(2, 1), (4, 0)])
def test_a_tail_behind_fewer_bytes_than_any_send_buffer_has_was_held_by_nagle(tmp_path: Path, count: int, held: int) -> None:
    """Twice, 428 bytes wait for the ACK of full segments.

    The second time, the flight before the 428 bytes is as large as an earlier flight. Two segments of 536 bytes leave room in the smallest
    send buffer (2,048 bytes); four segments can fill it.
    """
    turn = [[536] * count, [428]]
    reported = lasted(tmp_path, opened(old=True, window=65_535, mss=536) + flights([[536], *turn, *turn], 65_535))
    assert reported.get("nagle", 0.0) == pytest.approx(held * ROUND_MS, abs=0.1)


def halves(window: int) -> str:
    """Return six rounds. Every 30.1 ms, 600 bytes are sent, and 8,300 bytes 10 ms later.

    The 600 bytes are not acknowledged when the 8,300 bytes are sent. The ACK of both releases the next 600 bytes.
    """
    lines, seq, at_s = [], 1, 0.04
    for _ in range(6):
        for after_s, size in ((0.0, 600), (0.01, 8_300)):
            lines.append(f"{at_s + after_s:.4f} C > S P. {seq}:{seq + size} ack 1")
            seq += size
        lines.append(f"{at_s + 0.03:.4f} S > C . ack {seq} win {window}")
        at_s += 0.0301
    return "\n".join(lines)


def test_a_close_behind_half_of_the_largest_window_was_not_held_by_nagle(tmp_path: Path) -> None:
    """The last 600 bytes carry the FIN.

    TCP does not delay a FIN. So these bytes were sent as soon as the application had written them. The other three waits have the cause
    Nagle's algorithm.
    """
    head, sign, last = halves(16_384).rpartition("P. 44501:")
    assert sign
    reported = lasted(tmp_path, opened(old=True, window=16_384, mss=9_148) + f"{head}FP. 44501:{last.splitlines()[0]}")
    assert reported["nagle"] == pytest.approx(3 * ROUND_MS, abs=0.1)


@pytest.mark.parametrize(("window", "held"), [(16_384, 4), (32_768, 0)])
def test_half_of_the_largest_window_passes_a_small_segment_and_nagle_holds_what_is_less(tmp_path: Path, window: int, held: int) -> None:
    """With a window of 16,384 bytes, BSD (`tcp_output`) sends 8,300 bytes at once, because they exceed half of the window.

    8,300 bytes are a small segment (the MSS is 9,148), and less than half of a window of 32,768. If they are sent at once in that window,
    Nagle's algorithm is off. At the first of the five waits, it is still unknown that the flights do not grow.
    """
    reported = lasted(tmp_path, opened(old=True, window=window, mss=9_148) + halves(window))
    assert reported.get("nagle", 0.0) == pytest.approx(held * ROUND_MS, abs=0.1)


@pytest.mark.parametrize(("window", "told_ms"), [(8_192, 0.0), (16_384, ROUND_MS)])
def test_half_of_the_largest_window_never_waits_for_nagle(tmp_path: Path, window: int, told_ms: float) -> None:
    """4,100 bytes wait for the ACK of 512 bytes.

    The 4,100 bytes are more than half of a window of 8,192 bytes, but less than half of a window of 16,384.
    """
    reported = lasted(tmp_path, opened(old=True, window=window, mss=4_312) + flights([[512], [4_100]], window))
    assert reported.get("nagle", 0.0) == pytest.approx(told_ms, abs=0.1)


@pytest.mark.parametrize(("longest", "held"), [(8_192, 6), (8_000, 0)])
def test_whole_clusters_that_pass_a_small_segment_are_full_and_what_waits_behind_them_is_held_by_nagle(
    tmp_path: Path, longest: int, held: int
) -> None:
    """With an MSS of 9,148, 4.4BSD sends segments of 8,192 bytes: four clusters (`tcp_mss`).

    So segments of 8,192 bytes are full. Segments of 8,000 bytes are small, and are sent while another small one is in flight. In this case,
    Nagle's algorithm is off.
    """
    lines, seq = [], 1
    for place in range(7):
        at_s = 0.04 + 0.1801 * place
        for after_s, size in ((0.0, (2_048, 6_144)[place % 2]), (0.0005, longest)):
            lines.append(f"{at_s + after_s:.4f} C > S P. {seq}:{seq + size} ack 1")
            seq += size
        lines.append(f"{at_s + 0.18:.4f} S > C . ack {seq} win 49152")
    reported = lasted(tmp_path, opened(old=True, window=49_152, mss=9_148) + "\n".join(lines))
    assert reported.get("nagle-delayed-ack", 0.0) == pytest.approx(held * 179.6, abs=1)


def test_a_plateau_that_the_last_flight_passes_by_less_than_a_segment_is_the_highest(tmp_path: Path) -> None:
    """Flights of 2,920 and 2,460 bytes alternate, and the last flight has 3,920.

    In slow start, a flight grows by whole segments (RFC 5681, 3.1). Every second flight ends with 1,000 bytes. Nagle's algorithm explains
    the wait after these bytes as well, so its cause is unknown.
    """
    sizes = [[MSS, MSS], [MSS, 1_000]] * 6 + [[MSS, MSS, 1_000]]
    reported = lasted(tmp_path, opened(old=False, window=30_000) + flights(sizes, 30_000))
    assert reported["send-buffer"] == pytest.approx(6 * ROUND_MS, abs=0.1)
    assert reported["unknown"] == pytest.approx(6 * ROUND_MS, abs=0.1)


def test_a_program_that_writes_by_its_own_clock_fills_no_buffer_though_acks_come_while_it_writes(tmp_path: Path) -> None:
    """Every 5 ms, the application writes a burst of six segments, 0.1 ms apart. Meanwhile, ACKs of the burst sent 20 ms earlier arrive.

    The next burst begins 4.45 ms later, when an ACK arrives. It looks as if a full send buffer had blocked the application. The test does
    not check the cause of the 0.5 ms in which a burst is sent.
    """
    lines: list[tuple[float, str]] = []
    for burst in range(40):
        at_ms, seq = 40 + 5 * burst, 1 + 6 * MSS * burst
        lines += ((at_ms + 0.1 * place, f"C > S . {seq + place * MSS}:{seq + (place + 1) * MSS} ack 1") for place in range(6))
        lines += ((at_ms + 19.95 + 0.2 * pair, f"S > C . ack {seq + 2 * pair * MSS} win 65535") for pair in (1, 2, 3))
    text = "\n".join(f"{at_ms / 1000:.5f} {what}" for at_ms, what in sorted(lines))
    reported = lasted(tmp_path, opened(old=True, window=65_535) + text)
    assert reported.get("send-buffer", 0.0) < 40 * 0.5


@pytest.mark.parametrize(("old", "segments", "cause"), [(True, 11, "send-buffer"), (True, 10, "slow-start"), (False, 11, "slow-start")])
def test_an_old_sender_that_begins_with_more_than_any_initial_window_knows_no_slow_start(
    tmp_path: Path, *, old: bool, segments: int, cause: str
) -> None:
    """Ten segments are the largest initial window (RFC 6928).

    A newer sender can start with a larger window, which it cached from an earlier connection.
    """
    reported = lasted(tmp_path, opened(old=old, window=65_535) + flights([full(segments)] * 2, 65_535))
    assert reported[cause] == pytest.approx(ROUND_MS, abs=0.1)


def test_a_program_that_writes_small_segments_at_its_own_pace_is_let_go_by_no_ack_that_comes_just_before_one(tmp_path: Path) -> None:
    """Every 20 ms, 500 bytes are sent. The path has an RTT of 80 ms.

    An ACK arrives 2 ms before every fifth segment. No ACK arrives just before the other segments.
    """
    sent = [(100 + 20 * n, f"C > S P. {1 + 500 * n}:{501 + 500 * n} ack 1") for n in range(50)]
    acks = [(178 + 100 * n, f"S > C . ack {501 + 2500 * n} win 65535") for n in range(10)]
    handshake = [
        (0, f"C > S S 0:0(0) win 65535 <mss {MSS}>"),
        (80, f"S > C S. 0:0(0) ack 1 win 65535 <mss {MSS}>"),
        (80, "C > S . ack 1 win 65535"),
    ]
    reported = lasted(
        tmp_path, "\n".join(f"{at_ms / 1000:.4f} {line}" for at_ms, line in sorted([*handshake, *sent, *acks], key=lambda each: each[0]))
    )
    assert reported.keys() <= {"handshake", "network", "application", "close"}


def test_small_segments_that_pass_need_no_window_for_a_full_one(tmp_path: Path) -> None:
    """Each flight has five segments of 600 bytes, sent without Nagle's algorithm. The window then has room for 1,000 more bytes.

    That is less than a full segment and less than half of the window, but more than the application writes. So not the window but the send
    buffer of 3,000 bytes is full.
    """
    reported = lasted(tmp_path, opened(old=True, window=4_000) + flights([[600] * 5] * 9, 4_000))
    assert reported["send-buffer"] == pytest.approx(8 * ROUND_MS, abs=0.1)
    assert "receiver-window" not in reported


def writes_and_tails(writes: Sequence[Sequence[int]], tail: int, *, joined: bool) -> str:
    """Return `writes`, one every 100 ms, and a small segment of `tail` bytes after each of them.

    The ACK of a whole write releases the small segment. If `joined` is true, the capture shows a write as one super-segment (offload).
    """
    lines, seq = [opened(old=False, window=65_535)], 1
    for at_ms, write in zip(range(100, 10_000, 100), writes, strict=False):
        for size in [sum(write)] if joined else write:
            lines.append(f"{at_ms}ms C > S P. {seq}:{seq + size} ack 1")
            seq += size
        lines.append(f"{at_ms + 20}ms S > C . ack {seq} win 65535")
        lines.append(f"{at_ms + 20.1}ms C > S P. {seq}:{seq + tail} ack 1")
        seq += tail
        lines.append(f"{at_ms + 40.1}ms S > C . ack {seq} win 65535")
    return "\n".join(lines)


@pytest.mark.parametrize("joined", [True, False])
def test_the_small_tail_of_segments_that_a_card_cuts_holds_the_next_small_one_as_any_other(tmp_path: Path, *, joined: bool) -> None:
    """The first write has three full segments. Six more writes have three full segments and a small one of 400 bytes.

    After each of these six writes, Nagle's algorithm delays another 100 bytes for one RTT.
    """
    text = writes_and_tails([full(3), *[[*full(3), 400]] * 6], 100, joined=joined)
    assert lasted(tmp_path, text)["nagle"] == pytest.approx(6 * ROUND_MS, abs=0.1)


def test_segments_of_a_path_that_takes_less_than_the_mss_have_no_small_tail_where_a_card_cuts_them(tmp_path: Path) -> None:
    """One or two segments of 1,400 bytes are sent, and two more after their ACK.

    No segment has the full MSS, so 2,800 bytes are not a full segment and a small one.
    """
    assert "nagle" not in lasted(tmp_path, writes_and_tails([[1400], *[[1400, 1400]] * 6], 2800, joined=True))


def test_what_a_program_writes_as_soon_as_an_ack_comes_was_not_held_by_nagle(tmp_path: Path) -> None:
    """Each flight is 752 bytes and ten full segments, released by the ACK of the previous flight.

    The application was blocked by a full send buffer. If Nagle's algorithm had delayed the 752 bytes, no more data would have followed
    them.
    """
    reported = lasted(tmp_path, opened(old=False, window=65_535) + flights([[752, *full(10)]] * 8, 65_535))
    assert reported["send-buffer"] == pytest.approx(6 * ROUND_MS, abs=0.1)
    assert reported["unknown"] == pytest.approx(ROUND_MS, abs=0.1)  # no earlier flight exists to compare the first one with
    assert "nagle" not in reported


@pytest.mark.parametrize(("behind_us", "cause", "waits"), [(700, "application", 19), (20, "unknown", 18)])
def test_what_leaves_some_time_behind_an_ack_was_not_held_by_nagles_rule_of_a_host_that_takes_the_ack_and_lets_go(
    tmp_path: Path, behind_us: int, cause: str, waits: int
) -> None:
    """Every 3.4 ms, 100 bytes are sent, 700 or 20 µs after the ACK of the previous 100 bytes.

    After 700 µs, the application has its own pace. After 20 µs, the ACK possibly released a segment that Nagle's algorithm delayed. But
    more writes would have filled the segment. It has only 100 bytes, so the application possibly wrote after the ACK. Only the wait of the
    second segment is not in doubt, because the first segment did not wait.
    """
    lines = [opened(old=False, window=60_000).replace("0.0200", f"{3_400 - behind_us}us")]
    for place in range(20):
        at_us, first = 40_000 + 3_400 * place, 1 + 100 * place
        lines.append(f"{at_us}us C > S P. {first}:{first + 100} ack 1\n{at_us + 3_400 - behind_us}us S > C . ack {first + 100} win 60000")
    begun, reported = (lasted(tmp_path, "\n".join(lines[:count])) for count in (2, 21))
    other = "unknown" if cause == "application" else "application"
    assert reported[cause] - begun.get(cause, 0) == pytest.approx(waits * 3.4, abs=0.5)
    assert reported.get(other, 0) == pytest.approx(begun.get(other, 0), abs=0.1)


@pytest.mark.parametrize(("segments", "held"), [(6, 1), (4, 0), (17, 0), (20, 1)])
def test_a_flight_of_today_that_is_no_larger_than_the_one_before_is_not_slow_starts(tmp_path: Path, segments: int, held: int) -> None:
    """Two flights of `segments` full segments are followed by a single segment.

    For some sizes, the send buffer is not the only explanation. A flight of four can be BBR's probe for the minimum RTT. From 16 segments
    on, slow start has possibly ended. From 20 on, congestion avoidance adds a segment per RTT.
    """
    reported = lasted(tmp_path, opened(old=False, window=60_000) + flights([full(segments)] * 2 + [full(1)], 60_000))
    assert reported.get("send-buffer", 0) == pytest.approx(held * ROUND_MS, abs=0.1)


@pytest.mark.parametrize(("last", "late_ms"), [(2, 0), (1, 3)])
def test_an_ack_wakes_no_program_whose_buffer_had_room_for_more(tmp_path: Path, last: int, late_ms: float) -> None:
    """Eight flights of two segments are followed by a flight of two or one.

    The next segment is sent 3 ms after the ACK of that last flight. If only one segment is in flight, the send buffer has room for a second
    one. So the application had not written the next segment yet. The application is also silent for the first 20 ms.
    """
    sent = [full(2)] * 8 + [full(last)]
    seq, at_s = 1 + MSS * (16 + last), 0.04 + 8 * ROUND_MS / 1000 + 0.023
    text = f"{flights(sent, 60_000)}\n{at_s:.4f} C > S . {seq}:{seq + MSS} ack 1\n{at_s + 0.02:.4f} S > C . ack {seq + MSS} win 60000"
    assert lasted(tmp_path, opened(old=True, window=60_000) + text)["application"] == pytest.approx(
        20 + (20 + late_ms if late_ms else 0), abs=0.1
    )


def test_half_of_a_window_smaller_than_two_segments_is_a_full_segment_of_linux(tmp_path: Path) -> None:
    """Four flights have 400 or 1,000 bytes. The next has two segments, of 2,048 and 952 bytes. Four more have 1,000 bytes.

    For Linux, half of the window (2,048 bytes) is a full segment. So no small segment is sent while another is in flight.
    """
    sent = [[400], *[[1_000]] * 3, [2_048, 952], *[[1_000]] * 4]
    reported = lasted(tmp_path, opened(old=False, window=4_096, mss=9_000) + flights(sent, 4_096))
    assert reported["nagle"] == pytest.approx(7 * ROUND_MS, abs=0.1)
