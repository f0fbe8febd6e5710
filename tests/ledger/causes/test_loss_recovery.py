"""Causes after a packet loss: waits until a retransmission is acknowledged, and flights that do not grow.

The captures are hand-written, as if recorded at the sender. The RTT is 20 ms. Expected durations follow from the times in each capture. The
sender's SYN offers neither SACK nor timestamps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.ledger import stalls
from tests.support.ledgers import judged_text, lasted

if TYPE_CHECKING:
    from pathlib import Path

MSS = 1_460
ROUND_MS = 20.1
"""Time between flights: the ACK of a flight arrives after 20 ms and releases the next flight 0.1 ms later."""


def opened(window: int = 60_000) -> str:
    return f"""
        0.0000 C > S S  0:0(0)        win 65535 <mss 1460>
        0.0200 S > C S. 0:0(0) ack 1  win {window} <mss 1460>
        0.0200 C > S .         ack 1  win 65535
        """


def flight(at_s: float, first: int, count: int) -> str:
    """Return `count` full segments of the connection, beginning with segment number `first`."""
    starts = [1 + (first + place) * MSS for place in range(count)]
    return "\n".join(f"{at_s:.4f} C > S . {start}:{start + MSS} ack 1" for start in starts)


def acked(at_s: float, count: int, window: int = 60_000) -> str:
    return f"{at_s:.4f} S > C . ack {1 + count * MSS} win {window}"


def repaired_by_the_timer(acked_s: float = 1.08) -> str:
    """Return two segments that are sent at 40 ms. The first segment is lost and retransmitted at 1.06 s.

    The ACK of the retransmission releases the third segment 0.1 ms later.
    """
    again = [flight(1.06, 0, 1), acked(acked_s, 2), flight(acked_s + 0.0001, 2, 1)]
    return "\n".join([opened(), flight(0.04, 0, 2), acked(0.06, 0), *again])


def repaired_fast(count: int, window: int = 60_000) -> str:
    """Return `count` segments that are sent at 40 ms.

    The first segment is lost and retransmitted at 60.1 ms. The ACK of the retransmission arrives at 80.1 ms.
    """
    duplicates = [acked(0.06, 0, window)] * 4
    return "\n".join([opened(window), flight(0.04, 0, count), *duplicates, flight(0.0601, 0, 1), acked(0.0801, count, window)])


def test_what_the_ack_of_a_resend_by_the_timer_lets_go_waited_for_the_timeout(tmp_path: Path) -> None:
    """After a timeout, the congestion window has room for the retransmitted segment only (RFC 5681, 3.1)."""
    assert lasted(tmp_path, repaired_by_the_timer())["timeout"] == pytest.approx(1_020 + 20.1, abs=0.1)


def test_what_the_ack_of_a_fast_retransmit_lets_go_waited_for_the_repair(tmp_path: Path) -> None:
    """The recovery lasts from the first duplicate ACK to the next new segment."""
    reported = lasted(tmp_path, "\n".join([repaired_fast(5), flight(0.0802, 5, 1)]))
    assert reported["loss-recovery"] == pytest.approx(80.2 - 60, abs=0.05)
    assert "congestion-window" not in reported


def test_a_repair_lasts_until_its_ack_and_no_longer(tmp_path: Path) -> None:
    """The application writes again 220 ms after the ACK of the retransmission."""
    reported = lasted(tmp_path, "\n".join([repaired_fast(5), flight(0.3, 5, 1)]))
    assert reported["loss-recovery"] == pytest.approx(80.1 - 60, abs=0.05)
    assert reported["application"] >= 300 - 80.1


def test_a_window_that_was_full_over_a_hole_holds_what_its_repair_lets_go(tmp_path: Path) -> None:
    """The window has room for five segments, and five are in flight.

    The window is full until the first duplicate ACK, and again from the retransmission on.
    """
    reported = lasted(tmp_path, "\n".join([repaired_fast(5, 5 * MSS), flight(0.0802, 5, 1)]))
    assert reported["receiver-window"] == pytest.approx(80.2 - 40 - 0.1, abs=0.05)


def test_the_wait_for_the_ack_of_a_resend_is_no_timers(tmp_path: Path) -> None:
    """The ACK arrives 50 ms after the retransmission. The wait for it is a stall as well, but no timer of the sender ended it."""
    found = judged_text(tmp_path, repaired_by_the_timer(acked_s=1.11))
    reported = stalls.stalls(found.ledger).filter(from_client=True, cause="timeout").collect()
    assert dict(reported.select("frame_after", "timer").iter_rows()) == {7: "retransmission", 9: None}


@pytest.mark.parametrize(("sizes", "by_buffer"), [([4] * 9, 2), ([4, 4, 5, 5, 6, 6, 7, 7, 8], 0)])
def test_flights_that_stand_still_behind_a_loss_are_the_buffers(tmp_path: Path, sizes: list[int], by_buffer: int) -> None:
    """Congestion avoidance adds a segment at least every two RTTs (RFC 5681, 3.1). So something else limits seven equal flights."""
    lines, sent = [repaired_fast(5)], 5
    for place, size in enumerate(sizes):
        at_s = 0.0802 + place * ROUND_MS / 1000
        lines += [flight(at_s, sent, size), acked(at_s + 0.02, sent + size)]
        sent += size
    reported = lasted(tmp_path, "\n".join(lines))
    assert reported.get("send-buffer", 0.0) == pytest.approx(by_buffer * ROUND_MS, abs=0.1)
    assert reported["congestion-window"] == pytest.approx((8 - by_buffer) * ROUND_MS, abs=0.1)
