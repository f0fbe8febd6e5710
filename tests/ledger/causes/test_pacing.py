"""The cause "pacing": senders whose own timer spaces bursts (Linux: BBR, SO_MAX_PACING_RATE), and exchanges that only look paced.

The captures are hand-written. Expected durations follow from the times in each capture. A segment carries 1,448 bytes. A burst has two
segments 10 µs apart, as in Linux (`tcp_tso_autosize`). The second segment has PSH (`__tcp_transmit_skb`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 1_448
FIRST_MS = 40.0


def bursts(count: int, every_ms: float, acked_after_ms: float, *, tail: int = 0, options: str = ", sackOK") -> str:
    """Return `count` bursts, captured at the sender. Each burst has one ACK.

    A burst has two full segments. If `tail` is not 0, a small segment of `tail` bytes follows them.
    """
    whole = 2 * SIZE + tail
    lines: list[tuple[float, str]] = []
    for number in range(count):
        at_ms, seq = FIRST_MS + number * every_ms, 1 + number * whole
        lines.append((at_ms, f"C > S . {seq}:{seq + SIZE} ack 1"))
        lines.append((at_ms + 0.01, f"C > S P. {seq + SIZE}:{seq + 2 * SIZE} ack 1"))
        if tail:
            lines.append((at_ms + 0.02, f"C > S P. {seq + 2 * SIZE}:{seq + whole} ack 1"))
        lines.append((at_ms + acked_after_ms, f"S > C . ack {seq + whole} win 65535"))
    later = [f"{at_ms:.3f}ms {line}" for at_ms, line in sorted(lines)]
    return f"""
        0ms   C > S S  0:0(0)        win 65535 <mss {SIZE}{options}>
        {acked_after_ms:.3f}ms S > C S. 0:0(0) ack 1  win 65535 <mss {SIZE}{options}>
        {acked_after_ms + 0.01:.3f}ms C > S .         ack 1  win 65535
        """ + "\n".join(later)


@pytest.mark.parametrize(("every_ms", "round_trip_ms"), [(9.46, 14.5), (4.5, 7.3), (20.0, 5.0)])
def test_bursts_that_leave_evenly_by_themselves_are_spaced_by_their_sender(tmp_path: Path, every_ms: float, round_trip_ms: float) -> None:
    """The gaps between bursts are longer than half an RTT in one case, and longer than a whole RTT in the other.

    All 39 gaps are equal, and no ACK arrived just before the end of a gap.
    """
    reported = lasted(tmp_path, bursts(40, every_ms, round_trip_ms))
    assert reported["pacing"] == pytest.approx(39 * (every_ms - 0.01), abs=0.5)
    assert "send-buffer" not in reported


@pytest.mark.parametrize(("late_ms", "paced"), [(0.5, True), (0.02, False)])
def test_bursts_that_leave_some_time_behind_an_ack_and_without_a_pause_were_not_let_go_by_it(
    tmp_path: Path, late_ms: float, *, paced: bool
) -> None:
    """Five gaps last 20 ms. The RTT is 0.5 or 0.02 ms shorter, so an ACK arrives 0.5 or 0.02 ms before each burst.

    Only an ACK 0.02 ms before a burst can have released the burst. The first 20 bursts do not count, because slow start limits some of
    them.
    """
    begun, all_of_it = (lasted(tmp_path, bursts(count, 4.0, 20.0 - late_ms)) for count in (20, 60))
    assert (all_of_it["pacing"] - begun["pacing"] > 40 * 3.9) == paced


def test_a_program_that_writes_at_its_own_pace_ends_its_writes_with_a_small_segment(tmp_path: Path) -> None:
    """The application writes 3,000 bytes every 20 ms over a path with an RTT of 5 ms.

    Each write ends with a small segment of 104 bytes.
    """
    reported = lasted(tmp_path, bursts(40, 20.0, 5.0, tail=104))
    assert reported.get("pacing", 0) <= 40 * 0.02
    assert reported["application"] == pytest.approx(39 * 20.0, abs=40)


def test_one_flight_in_each_round_trip_that_its_program_sends_late_is_at_no_pace(tmp_path: Path) -> None:
    """The client sends two segments every 20 ms, 4 ms after the ACK of the previous two."""
    assert "pacing" not in lasted(tmp_path, bursts(40, 20.0, 16.0))


def test_a_stack_older_than_pacing_does_not_pace(tmp_path: Path) -> None:
    assert "pacing" not in lasted(tmp_path, bursts(40, 9.46, 14.5, options=""))


def test_where_data_arrives_and_nothing_reveals_queues_the_path_may_have_spaced_bursts(tmp_path: Path) -> None:
    """A token bucket on the path releases the bursts. Each burst is ACKed at once. The ACK reaches the sender half an RTT later."""
    text = bursts(40, 9.46, 0.02).replace("0.030ms C > S .         ack 1", "14.500ms C > S .         ack 1")
    reported = lasted(tmp_path, text)
    assert "pacing" not in reported
    assert reported["network"] >= 39 * (9.46 - 0.01) - 0.5


@pytest.mark.parametrize(("flags", "cause"), [(".", "unknown"), ("P.", "application")])
def test_a_write_that_goes_on_after_all_was_acknowledged_may_wait_for_a_pacing_timer(tmp_path: Path, flags: str, cause: str) -> None:
    """A full segment is sent every 50 to 56 ms and ACKed after 20 ms. If it has no PSH, more data of its write can be in the buffer."""
    lines = [bursts(1, 50.0, 20.0)]
    for number in range(1, 10):
        at_ms, seq = FIRST_MS + 50 * number + 3 * (number % 3), 1 + SIZE * (number + 1)
        lines.append(f"{at_ms}ms C > S {flags} {seq}:{seq + SIZE} ack 1\n{at_ms + 20}ms S > C . ack {seq + SIZE} win 65535")
    reported = lasted(tmp_path, "\n".join(lines))
    other = "application" if cause == "unknown" else "unknown"
    assert reported[cause] - reported.get(other, 0) > 8 * 25
