"""What a transfer would have gained without its late ACKs, compared with calculations by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.ledger import late_acks
from tests.support import packets
from tests.support.ledgers import advised, judged, sums

if TYPE_CHECKING:
    from pathlib import Path

RTT, LATE = 100, 40


def wait(start: int, end: int, cause: str, ack: int | None = None, sent: int = 0) -> dict[str, Any]:
    """Return a wait. `ack` is the time of the ACK that ended it, and `sent` the time of the data that this ACK covers."""
    return {
        "start_ns": start,
        "end_ns": end,
        "cause": cause,
        "frame_after": end,
        "ack_frame": ack,
        "ack_lag_ns": None if ack is None else ack - sent,
        "ack_late_ns": None if ack is None else ack - sent - RTT,
    }


def gain(*waits: dict[str, Any]) -> int:
    all_ns = sum(one["end_ns"] - one["start_ns"] for one in waits if one["cause"] == late_acks.CAUSE)
    return late_acks.gain_ns(waits, {frame: frame for frame in late_acks.frames(waits)}, all_ns)


def test_a_late_ack_of_the_only_segment_in_flight_costs_its_whole_delay_each_time() -> None:
    assert gain(wait(0, 140, "delayed-ack", 140), wait(140, 280, "delayed-ack", 280, 140)) == 2 * LATE


def test_a_late_ack_within_a_round_costs_nothing_because_another_ack_released_the_next_flight() -> None:
    late = wait(10, 145, "delayed-ack", 145, 5)
    assert gain(late, wait(145, 150, "slow-start", 150, 50)) == 0
    assert gain(late, wait(145, 245, "slow-start", 245, 145)) == LATE


def test_a_segment_never_departs_before_its_predecessor() -> None:
    """The wait is shorter than the delay of its ACK, because another segment departed meanwhile."""
    assert gain(wait(120, 140, "delayed-ack", 140)) == 140 - 120


def test_two_flights_that_alternate_gain_as_much_as_the_one_that_gains_less() -> None:
    """Two flights start at 0 and 50 ns. The ACK of the second flight is 30 ns late, and the ACK of the first flight 40 ns."""
    first, second = wait(50, 140, "delayed-ack", 140), wait(140, 180, "delayed-ack", 180, 50)
    assert gain(first, second, wait(180, 240, "congestion-window", 240, 140)) == LATE
    assert gain(first, second, wait(180, 240, "congestion-window", 240, 140), wait(240, 280, "congestion-window", 280, 180)) == 30


def test_a_pause_of_the_application_keeps_its_length() -> None:
    assert gain(wait(0, 140, "delayed-ack", 140), wait(140, 900, "application", 240, 140)) == LATE


def test_waits_that_are_not_listed_gain_as_much_as_the_listed_ones() -> None:
    listed = [wait(0, 140, "delayed-ack", 140), wait(140, 160, "delayed-ack", 160, 60)]
    assert late_acks.gain_ns(listed, {140: 140, 160: 160}, 320) == 0
    assert late_acks.gain_ns(listed[:1], {140: 140}, 280) == 2 * LATE


def opened() -> str:
    return """
        0ms   C > S S  0:0(0)       win 65535 <mss 1000>
        100ms S > C S. 0:0(0) ack 1 win 65535 <mss 1000>
        100ms C > S .         ack 1 win 65535
        """


def test_a_flight_that_doubles_although_one_ack_was_late_has_no_finding(tmp_path: Path) -> None:
    """The first flight has three segments, and only the ACK of the last one is late. The ACK of the first two released four segments."""
    late = """
        110ms C > S . 1:1001 ack 1
        110ms C > S . 1001:2001 ack 1
        112ms C > S . 2001:3001 ack 1
        210ms S > C . ack 2001
        210ms C > S . 3001:4001 ack 1
        210ms C > S . 4001:5001 ack 1
        210ms C > S . 5001:6001 ack 1
        210ms C > S . 6001:7001 ack 1
        262ms S > C . ack 3001
        262ms C > S . 7001:8001 ack 1
        262ms C > S . 8001:9001 ack 1
        310ms S > C . ack 5001
        310ms C > S . 9001:10001 ack 1
        310ms C > S . 10001:11001 ack 1
        310ms S > C . ack 7001
        310ms C > S P. 11001:12001 ack 1
        362ms S > C . ack 9001
        410ms S > C . ack 12001
        """
    judgement = judged(packets.capture(tmp_path / "round.pcap", opened() + late))
    assert sums(judgement, from_client=True)["delayed-ack"] == 52_000_000
    assert "delayed-ack" not in {one.id for one in advised(judgement).findings}


def test_flights_of_one_segment_have_a_finding_that_costs_the_delays_without_the_round_trips(tmp_path: Path) -> None:
    """Two waits are too few for a deadlock."""
    lines, at_ms = [], 110
    for place in range(3):
        lines += [
            f"{at_ms}ms C > S P. {1000 * place + 1}:{1000 * place + 1001} ack 1",
            f"{at_ms + 150}ms S > C . ack {1000 * place + 1001}",
        ]
        at_ms += 150
    judgement = judged(packets.capture(tmp_path / "one.pcap", opened() + "\n".join(lines)))
    (found,) = (one for one in advised(judgement).findings if one.id == "delayed-ack")
    assert sums(judgement, from_client=True)["delayed-ack"] == 2 * 150_000_000
    assert found.cost_ns == 2 * 50_000_000
    assert "These waits took 300 ms in all" in found.mechanism
