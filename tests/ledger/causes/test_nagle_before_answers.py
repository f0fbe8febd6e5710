"""Small messages that are answered one by one: either Nagle's algorithm or the application delays the next message.

The first part of an answer acknowledges everything, so Nagle's algorithm then releases the next message. An application that waits for its
answer sends after the last part. The exchanges are written by hand; the path delays each direction by 10 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 12
ROUND_TRIP_MS = 20
MESSAGES_BYTES, PART_BYTES = 120, 13
REACTION_MS, NEXT_PART_MS = 0.05, 0.08


def exchange(*, waits: bool, at_server: bool, parts: int = 2) -> str:
    """Return an exchange. The client sends one small segment at a time, and the server answers it in `parts`.

    The client sends the next segment after the first part of the answer. If `waits` is true, it sends after the last part.
    """
    to_capture_ms = ROUND_TRIP_MS / 2 if at_server else 0
    lines = [
        f"{to_capture_ms}ms C > S S 0:0(0) win 64240 <mss 1460>",
        f"{20 - to_capture_ms}ms S > C S. 0:0(0) ack 1 win 65160 <mss 1460>",
        f"{20.05 + to_capture_ms}ms C > S . ack 1 win 64240",
    ]
    at_ms, seq, acked, answered = 100.0, 1, 1, 1
    for _ in range(ROUNDS):
        end = seq + MESSAGES_BYTES
        lines.append(f"{at_ms + to_capture_ms:.2f}ms C > S P. {seq}:{end} ack {acked} win 64240")
        for part in range(parts):
            arrives_ms = at_ms + ROUND_TRIP_MS + part * NEXT_PART_MS
            lines.append(f"{arrives_ms - to_capture_ms:.2f}ms S > C P. {answered}:{answered + PART_BYTES} ack {end} win 65160")
            answered += PART_BYTES
        last = parts - 1 if waits else 0
        acked = answered - (parts - 1 - last) * PART_BYTES
        at_ms, seq = at_ms + ROUND_TRIP_MS + last * NEXT_PART_MS + REACTION_MS, end
    return "\n".join(sorted(lines, key=lambda line: float(line.split("ms")[0])))


@pytest.mark.parametrize("at_server", [False, True])
def test_what_leaves_with_the_first_part_of_an_answer_was_held_by_nagles_algorithm(tmp_path: Path, *, at_server: bool) -> None:
    held = lasted(tmp_path, exchange(waits=False, at_server=at_server))
    assert held["nagle"] == pytest.approx((ROUNDS - 1) * (ROUND_TRIP_MS + REACTION_MS), rel=0.01)


@pytest.mark.parametrize("at_server", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
def test_an_application_that_waits_for_the_whole_answer_is_not_held(tmp_path: Path, parts: int, *, at_server: bool) -> None:
    reported = lasted(tmp_path, exchange(waits=True, at_server=at_server, parts=parts))
    assert "nagle" not in reported
    assert reported["network"] >= (ROUNDS - 1) * ROUND_TRIP_MS
