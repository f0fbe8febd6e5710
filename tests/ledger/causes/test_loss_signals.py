"""Losses in the ledger: waits before the sender can know of a loss, and losses that do not reduce the congestion window.

The captures are hand-written, as if recorded at the client. The RTT is 20 ms. Expected durations follow from the times in each capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

MSS = 1_460
SYN = f"0 C > S S 0:0(0) win 64240 <mss {MSS}, sackOK, wscale 7>"
OPENED = f"""
    {SYN}
    20ms S > C S. 0:0(0) ack 1 win 65160 <mss {MSS}, sackOK, wscale 7>
    20ms C > S . ack 1 win 502
"""


def at(number: int) -> int:
    """Return the sequence number of the first byte of a segment."""
    return 1 + MSS * number


def data(at_ms: float, *numbers: int, last_bytes: int = MSS) -> str:
    """Return segments of the client, 10 µs apart. All are full, except that the last one has `last_bytes`."""
    sizes = [MSS] * (len(numbers) - 1) + [last_bytes]
    return "\n".join(
        f"{at_ms + n / 100:.3f}ms C > S . {at(number)}:{at(number) + size} ack 1"
        for n, (number, size) in enumerate(zip(numbers, sizes, strict=True))
    )


def acks(at_ms: float, *numbers: int) -> str:
    """Return an ACK for each number in `numbers`. It acknowledges all segments before this number.

    The ACKs are 10 µs apart.
    """
    return "\n".join(f"{at_ms + n / 100:.3f}ms S > C . ack {at(number)} win 4000" for n, number in enumerate(numbers))


def missing(at_ms: float, number: int, count: int) -> str:
    """Return `count` duplicate ACKs, 10 µs apart. Segment `number` is missing, but later segments have arrived."""
    return "\n".join(
        f"{at_ms + n / 100:.3f}ms S > C . ack {at(number)} win 4000 <sack {at(number + 1)}:{at(number + 2 + n)}>" for n in range(count)
    )


def reported(tmp_path: Path, *lines: str, opened: str = OPENED) -> dict[str, float]:
    return lasted(tmp_path, "\n".join([opened, *lines]))


def test_until_duplicate_acks_signalled_the_loss_the_flight_was_slow_starts(tmp_path: Path) -> None:
    """The last segment of the flight is sent at 40.09 ms. The third duplicate ACK arrives at 60.02 ms.

    Until then, slow start limits the sender. The retransmission is sent at 65 ms. Its ACK releases new data at 85 ms.
    """
    lines = [data(40, *range(10)), missing(60, 0, 9), data(65, 0), acks(85, 10), data(85.01, *range(10, 16)), acks(105.1, 16)]
    found = reported(tmp_path, *lines)
    assert found["slow-start"] == pytest.approx(60.02 - 40.09, abs=0.02)
    assert found["loss-recovery"] == pytest.approx(85.01 - 60.02, abs=0.02)
    assert "congestion-window" not in found


def test_until_duplicate_acks_signalled_the_loss_a_flight_without_more_behind_it_was_on_its_way(tmp_path: Path) -> None:
    """The first segment of a flight is lost.

    The last segment is small, so the application had written no more data. Slow start did not limit the flight.
    """
    found = reported(tmp_path, data(40, *range(10), last_bytes=100), missing(60, 0, 8), data(65, 0), acks(85, 9))
    assert found["network"] == pytest.approx(60.02 - 40 + 85 - 65, abs=0.02)
    assert found["loss-recovery"] == pytest.approx(65 - 60.02, abs=0.001)
    assert "slow-start" not in found


def test_two_duplicate_acks_repair_nothing_and_the_flight_of_then_is_slow_starts(tmp_path: Path) -> None:
    """A fast retransmission needs three duplicate ACKs (RFC 5681, 3.2).

    The third of five segments is lost; four more segments are sent from 60.02 to 60.05 ms. The third duplicate ACK arrives one RTT later.
    Until then, slow start limits the sender: without the loss, the ACK of these four segments would have arrived at the same time.
    """
    lines = [data(40, *range(5)), acks(60, 1, 2), data(60.02, 5, 6, 7, 8), missing(60.06, 2, 2), missing(80.01, 2, 3).splitlines()[-1]]
    found = reported(tmp_path, *lines, data(80.04, 2), acks(100.05, 9))
    assert found["slow-start"] == pytest.approx(60.02 - 40.04 + 80.03 - 60.05, abs=0.02)
    assert found["loss-recovery"] == pytest.approx(80.04 - 80.03)


def test_duplicate_acks_that_are_too_few_begin_the_repair_where_a_timer_ends_it(tmp_path: Path) -> None:
    """After one duplicate ACK, RACK waits from 60 to 65 ms, because the segment is possibly only late (RFC 8985, 6.2).

    The cause of this wait is the loss.
    """
    found = reported(tmp_path, data(40, 0, 1), missing(60, 0, 1), data(65, 0), acks(85, 2))
    assert found["slow-start"] == pytest.approx(60 - 40.01, abs=0.02)
    assert found["loss-recovery"] == pytest.approx(65 - 60)


def test_who_has_nothing_to_send_waits_for_no_recovery_until_the_next_loss_is_reported(tmp_path: Path) -> None:
    """Segment 0 is retransmitted at 60.1 ms. Segments 10 and 11 are the last data, and segment 11 is small.

    The ACK at 80.1 ms covers segments 0 to 9. The SACK at 90.13 ms reports segment 11, so a timer retransmits segment 10 at 95 ms. Three
    times have the cause network: the 0.09 ms in which the first flight is sent, the time from 60.12 to 90.13 ms, and the RTT of the last
    retransmission.
    """
    lines = [data(40, *range(10)), missing(60, 0, 8), data(60.1, 0), data(60.11, 10, 11, last_bytes=100), acks(80.1, 10)]
    late = f"90.13ms S > C . ack {at(10)} win 4000 <sack {at(11)}:{at(11) + 100}>"
    found = reported(tmp_path, *lines, late, data(95, 10), f"115ms S > C . ack {at(11) + 100} win 4000")
    assert found["network"] == pytest.approx(0.09 + 90.13 - 60.12 + 20, abs=0.04)
    assert found["loss-recovery"] == pytest.approx(60.12 - 60.02 + 95 - 90.13, abs=0.04)


def test_a_wait_that_begins_in_a_recovery_is_the_recoverys_also_if_the_next_begins_at_its_end(tmp_path: Path) -> None:
    """The first of ten segments is retransmitted at 60.1 ms, followed by two new segments.

    After the ACK of all ten, a duplicate ACK reports that the first new segment is missing.
    """
    lines = [data(40, *range(10)), missing(60, 0, 8), data(60.1, 0, 10, 11), acks(80.1, 9), acks(80.12, 10), missing(80.13, 10, 1)]
    found = reported(tmp_path, *lines, data(80.2, 10), acks(100.2, 12))
    assert found["slow-start"] == pytest.approx(60 - 40.09, abs=0.02)
    assert found["loss-recovery"] == pytest.approx(80.2 - 60, abs=0.1)


@pytest.mark.parametrize(("first_flight", "cause"), [(10, "slow-start"), (1, "congestion-window")])
def test_a_sender_that_begins_as_ever_behind_a_lost_syn_took_it_for_no_sign_of_a_full_path(
    tmp_path: Path, first_flight: int, cause: str
) -> None:
    """A sender that treats a lost SYN as congestion begins with one segment (RFC 5681, 3.1).

    The first two flights have 10 and 20 segments in one case, and 1 and 2 in the other. Each flight takes one RTT.
    """
    opened = OPENED.replace("20ms", "1020ms").replace(SYN, f"{SYN}\n    1000ms {SYN[2:]}")
    second = range(first_flight, 3 * first_flight)
    lines = [data(1040, *range(first_flight)), acks(1060, *range(1, first_flight + 1)), data(1060.15, *second), acks(1080.2, second.stop)]
    found = reported(tmp_path, *lines, data(1080.21, second.stop, second.stop + 1), acks(1100.3, second.stop + 2), opened=opened)
    assert found[cause] >= 2 * 19
    assert {"slow-start", "congestion-window"} - {cause} & found.keys() == set()
