"""Packet loss before a capture point near the receiver: gaps in the sender's IPv4 IDs show that packets are missing.

The captures are hand-written, with an RTT of 10 ms. Expected durations follow from the times in each capture. Linux increments the IP
identification of a connected socket by one per packet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

OPENED = """
    0      C > S S  0:0(0)       win 64240 <mss 1460, sackOK> {id 0}
    0.01ms S > C S. 0:0(0) ack 1 win 65160 <mss 1460, sackOK>
    10ms   C > S .         ack 1 win 64240 {id 100}
"""
EXCHANGES, LATE = 30, 20


def questions(late_ms: float, left_out: int) -> str:
    """Return questions and answers. The client sends a question when it receives the previous answer.

    One question is sent `late_ms` late, and `left_out` IP IDs before it are missing.
    """
    lines, at_ms, number = [OPENED], 20.0, 101
    for place in range(EXCHANGES):
        if place == LATE:
            at_ms, number = at_ms + late_ms, number + left_out
        asked, answered = 1 + 300 * place, 1 + 400 * place
        lines.append(f"{at_ms:.2f}ms C > S P. {asked}:{asked + 300} ack {answered} {{id {number}}}")
        lines.append(f"{at_ms + 0.05:.2f}ms S > C P. {answered}:{answered + 400} ack {asked + 300}")
        at_ms, number = at_ms + 10.05, number + 1
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("late_ms", "left_out", "by_loss"),
    [(215.0, 1, True), (215.0, 0, False), (120.0, 1, False), (900.0, 1, False), (620.0, 2, True)],
    ids=["one-timer", "nothing-lost", "no-timer-is-so-short", "no-timer-is-so-long", "two-timers"],
)
def test_a_question_that_was_lost_on_its_way_here_waited_for_its_senders_timer(
    tmp_path: Path, late_ms: float, left_out: int, *, by_loss: bool
) -> None:
    """The first retransmission timer of Linux runs for 200 ms plus one or two RTTs, the second twice as long.

    If the delay fits no timer, the missing packet was possibly an ACK without data.
    """
    reported = lasted(tmp_path, questions(late_ms, left_out))
    assert reported.get("loss-recovery", 0) == pytest.approx(late_ms if by_loss else 0, abs=1.5)
    assert reported["application"] == pytest.approx(10 + (0 if by_loss else late_ms), abs=1.5)  # including the 10 ms after the handshake


@pytest.mark.parametrize(("left_out", "by_loss"), [(0, False), (1, True), (15, True), (40, False)])
def test_one_that_sends_alone_numbers_nothing_but_data(tmp_path: Path, left_out: int, *, by_loss: bool) -> None:
    """The application writes every 100 ms, and one write arrives 30 ms late.

    The host sends nothing else. A missing IP ID before the late write belongs to the lost first copy of this write. Heavy loss can explain
    that a third of the IDs are missing. If most IDs are missing, the host possibly uses one counter for all its packets.
    """
    lines, at_ms, number = [OPENED], 20.0, 101
    for place in range(EXCHANGES):
        if place == LATE:
            at_ms, number = at_ms + 30, number + left_out
        first = 1 + 500 * place
        lines.append(f"{at_ms:.2f}ms C > S P. {first}:{first + 500} ack 1 {{id {number}}}")
        lines.append(f"{at_ms + 0.05:.2f}ms S > C . ack {first + 500}")
        at_ms, number = at_ms + 100, number + 1
    reported = lasted(tmp_path, "\n".join(lines))
    assert reported.get("loss-recovery", 0) == pytest.approx(130 if by_loss else 0, abs=0.1)


def test_a_number_that_comes_late_was_not_lost(tmp_path: Path) -> None:
    """The missing IP ID belongs to an ACK that arrives late. The next question arrives 215 ms later."""
    text = questions(215.0, 1)
    answered, number = 1 + 400 * LATE, 100 + LATE
    before = 1 + 300 * LATE
    late = f"C > S . {before}:{before} ack {answered} {{id {number + 1}}}"
    head, line, rest = text.partition(f"{20 + 10.05 * LATE + 215:.2f}ms")
    reported = lasted(tmp_path, f"{head}{20 + 10.05 * LATE + 40:.2f}ms {late}\n{line}{rest}")
    assert "loss-recovery" not in reported
