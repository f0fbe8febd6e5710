"""Small segments of a current stack, one per round trip, each released by the ACK of the previous one.

Nagle's algorithm delays such a segment, but only from the time at which the application wrote it. If a segment holds one message, this time
is unknown. The captures are hand-written, from the sender's point of view. The RTT is 20 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

ROUND_MS = 20
SIZE = 1_448
OPENED = f"""
    0.000 C > S S  0:0(0)        win 64240 <mss {SIZE}, sackOK>
    0.020 S > C S. 0:0(0) ack 1  win 65160 <mss {SIZE}, sackOK>
    0.020 C > S .         ack 1
"""


def rounds(sizes: list[int]) -> str:
    """Return rounds of 20 ms: an ACK of everything, and 10 µs later a segment of the given size."""
    lines, seq = [OPENED], 1
    for number, size in enumerate(sizes):
        at_us = 40_000 + 20_000 * number
        lines.append(f"{at_us + 10}us C > S P. {seq}:{seq + size} ack 1\n{at_us + 20_000}us S > C . ack {seq + size}")
        seq += size
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("sizes", "held"),
    [([56] * 10, 1), ([56, *[112] * 9], 9), ([56, 100, 60] * 3 + [100], 1)],
    ids=["one message each", "two messages each", "messages of different sizes"],
)
def test_a_segment_of_one_message_does_not_show_when_the_message_was_written(tmp_path: Path, sizes: list[int], held: int) -> None:
    """Ten segments have nine waits. The cause of the first wait is not in doubt, because the segment before it did not wait."""
    reported = lasted(tmp_path, rounds(sizes))
    assert reported.get("nagle", 0) == pytest.approx(held * ROUND_MS, abs=0.2)
    assert reported.get("unknown", 0) == pytest.approx((9 - held) * ROUND_MS, abs=0.2)


@pytest.mark.parametrize("probed_turns", [[], [1]])
def test_a_tail_loss_probe_of_a_small_segment_does_not_show_that_nagles_algorithm_is_off(tmp_path: Path, probed_turns: list[int]) -> None:
    """Each reply has 100 bytes, a full segment and 300 bytes. The 300 bytes wait for the ACK of the 100 bytes.

    The second reply's last segment is lost, and a tail-loss probe repeats it. Only this small segment is in flight at that time.
    """
    lines, seq, at_ms = [OPENED], 1, 40
    for turn in range(6):
        tail = seq + 100 + SIZE
        lines.append(f"{at_ms}ms S > C P. {1 + 20 * turn}:{21 + 20 * turn} ack {seq}")
        ack = f"ack {21 + 20 * turn}"
        lines.append(f"{at_ms}.1ms C > S P. {seq}:{seq + 100} {ack}\n{at_ms}.11ms C > S P. {seq + 100}:{tail} {ack}")
        lines.append(f"{at_ms + 20}.1ms S > C . ack {tail}\n{at_ms + 20}.11ms C > S P. {tail}:{tail + 300} {ack}")
        if turn in probed_turns:
            lines.append(f"{at_ms + 62}ms C > S P. {tail}:{tail + 300} {ack}")
            at_ms += 42
        lines.append(f"{at_ms + 40}.1ms S > C . ack {tail + 300}")
        seq, at_ms = tail + 300, at_ms + 100
    assert lasted(tmp_path, "\n".join(lines))["nagle"] == pytest.approx(6 * ROUND_MS, abs=0.2)
