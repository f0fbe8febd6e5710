"""The cause "receiver window": captures in which the window limits the sender. Each has a similar counterpart with another cause.

The captures are hand-written, with an RTT of 20 ms. Expected durations follow from the times in each capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab.engine.segments import read
from tests.support import ledgers, packets
from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

MSS = 1_460


def at_sender(window: int) -> str:
    """Return a flight of six segments that the client sends, and what follows.

    The client sends a seventh segment after the first ACK. From 0.0606 s on, the window has room for an eighth one, but the client sends it
    only after the last ACK, which is delayed by 30 ms. Windows are written in units of 128 bytes. If `window` is 69 (8,832 bytes), the room
    is 1,584 bytes.
    """
    flight = "\n".join(f"0.0400 C > S . {1 + MSS * n}:{1 + MSS * (n + 1)} ack 1" for n in range(6))
    return f"""
        0.0000 C > S S  0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
        0.0200 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
        0.0200 C > S .         ack 1  win 502
        0.0300 S > C .         ack 1  win {window}
        {flight}
        0.0600 S > C .  ack 1461 win {window}
        0.0601 C > S .  8761:10221 ack 1
        0.0604 S > C .  ack 2921 win {window - 11}
        0.0606 S > C .  ack 4381 win {window - 11}
        0.1100 S > C .  ack 10221 win {window - 56}
        0.1101 C > S .  10221:11681 ack 1
        """


def test_a_window_with_room_for_less_than_a_third_of_it_holds_a_sender_that_waits_for_more(tmp_path: Path) -> None:
    """The window has room for 1,584 bytes. Linux waits for at least a third of the window of 8,832 bytes (`tcp_tso_should_defer`).

    The congestion window has room, because the flight shrank from 8,760 to 5,840 bytes.
    """
    reported = lasted(tmp_path, at_sender(69))
    assert reported["receiver-window"] == pytest.approx(20.1 + 50.0, abs=0.05)
    assert "delayed-ack" not in reported


def test_beside_a_large_window_it_is_the_delayed_ack_that_is_waited_for(tmp_path: Path) -> None:
    reported = lasted(tmp_path, at_sender(500))
    assert reported["delayed-ack"] == pytest.approx(50.0, abs=0.05)
    assert "receiver-window" not in reported


def at_receiver(first_window: int, end: int) -> str:
    """Return an exchange. The first flight ends at byte `end`, and its ACKs leave room for 460 bytes.

    The client sends 460 bytes at 0.3002 s, before the window update reaches the client. The 460 bytes are captured when they arrive, after
    the one-way delay.
    """
    return f"""
        0.0000 C > S S  0:0(0)        win 64240 <mss 1460>
        0.0000 S > C S. 0:0(0) ack 1  win {first_window} <mss 1460>
        0.0200 C > S .         ack 1  win 64240
        0.0400 C > S .  1:1461        ack 1
        0.0400 C > S P. 1461:{end}    ack 1
        0.0401 S > C .  ack 1461      win {end + 460 - 1461}
        0.0810 S > C .  ack {end}     win 460
        0.3010 S > C .  ack {end}     win 8000
        0.3102 C > S P. {end}:{end + 460} ack 1
        0.3103 S > C .  ack {end + 460}   win 7540
        0.3210 C > S .  {end + 460}:{end + 1920} ack 1
        0.3211 S > C .  ack {end + 1920}  win 7540
        """


def test_what_the_senders_timer_forces_into_a_small_window_was_held_by_it_seen_from_the_receiver_too(tmp_path: Path) -> None:
    """The window of 2,000 bytes cut the second segment short, so the sender had more data.

    The next 460 bytes filled the room that was left.
    """
    reported = lasted(tmp_path, at_receiver(first_window=2_000, end=2_001))
    assert reported["receiver-window"] == pytest.approx(310.2 - 40.0 + 10.8, abs=0.5)
    # The wait before the first data has three parts: the transit of the SYN-ACK, the transit of the data, and 20 ms of the application.
    assert reported["handshake"] == pytest.approx(20.0)
    assert reported.get("application", 0.0) == pytest.approx(20.0)


def test_a_late_message_behind_one_that_the_window_did_not_cut_is_the_programs(tmp_path: Path) -> None:
    reported = lasted(tmp_path, at_receiver(first_window=2_500, end=2_001))
    assert reported["application"] > 200
    assert reported.get("receiver-window", 0.0) < 30


def test_half_of_the_largest_window_waits_for_no_more_room_of_a_sender_that_went_on_at_once(tmp_path: Path) -> None:
    """A sender is allowed to send as soon as half of the largest window is free (RFC 9293, 3.8.6.2.1 (3)).

    Earlier in this connection, the sender filled a window of 4,096 bytes 0.1 ms after it opened.
    """
    reported = lasted(
        tmp_path,
        """
        0.0000 C > S S  0:0(0)        win 64240 <mss 4312>
        0.0200 S > C S. 0:0(0) ack 1  win 4096 <mss 4312>
        0.0200 C > S .         ack 1  win 64240
        0.0400 C > S . 1:4097         ack 1
        0.0600 S > C .  ack 4097      win 4096
        0.0601 C > S . 4097:8193      ack 1
        0.0801 S > C .  ack 8193      win 4096
        0.0802 C > S P. 8193:9097     ack 1
        0.1002 S > C .  ack 9097      win 3192
        0.6402 C > S P. 9097:12289    ack 1
        0.6602 S > C .  ack 12289     win 0
        """,
    )
    assert reported["receiver-window"] == pytest.approx(2 * 20.1, abs=0.1)
    assert reported["application"] > 500


@pytest.mark.parametrize(("left_ms", "cause", "ms"), [(66, "application", 26.0), (640, "receiver-window", 600.0)])
def test_what_takes_all_of_a_small_window_was_held_by_it_only_if_that_was_as_long_as_senders_wait_for_more(
    tmp_path: Path, left_ms: int, cause: str, ms: float
) -> None:
    """The receiver's application does not read. Its buffer has room for 4,096 bytes.

    The first 904 bytes stay in the buffer, and the next 3,192 fill it. A sender waits at least 100 ms for more room (RFC 9293, 3.8.6.2.1).
    """
    reported = lasted(
        tmp_path,
        f"""
        0.0000 C > S S  0:0(0)        win 64240 <mss 4312>
        0.0200 S > C S. 0:0(0) ack 1  win 4096 <mss 4312>
        0.0200 C > S .         ack 1  win 64240
        0.0400 C > S P. 1:905         ack 1
        0.0600 S > C .  ack 905       win 3192
        {left_ms}ms C > S P. 905:4097 ack 1
        {left_ms + 20}ms S > C .  ack 4097 win 0
        """,
    )
    before_any_data = {"application": 20.0}
    expected = before_any_data | {cause: ms + before_any_data.get(cause, 0.0)}
    assert {name: reported[name] for name in ("application", "receiver-window") if name in reported} == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(("next_ms", "cause"), [(5_060, "receiver-window"), (61, "application")])
def test_what_a_senders_timer_forces_into_the_window_at_first_was_held_by_it_if_no_window_ever_let_it_go_sooner(
    tmp_path: Path, next_ms: int, cause: str
) -> None:
    """4.2BSD sends less than a full segment only when its persist timer expires, after at least 5 s.

    The window is 4,096 bytes; a full segment is 4,312 bytes.
    """
    reported = lasted(
        tmp_path,
        f"""
        0.0000 C > S S  0:0(0)        win 4096 <mss 4312>
        0.0200 S > C S. 0:0(0) ack 1  win 4096 <mss 4312>
        0.0200 C > S .         ack 1  win 4096
        5.0200 C > S .  1:4097        ack 1
        5.0400 S > C .  ack 4097      win 4096
        {5_000 + next_ms}ms C > S .  4097:8193 ack 1
        {5_020 + next_ms}ms S > C .  ack 8193 win 4096
        """,
    )
    assert reported[cause] == pytest.approx(5_000 + (next_ms - 20 if cause == "receiver-window" else 0), abs=0.1)


def test_a_window_is_full_until_all_is_acknowledged_and_closed_only_from_then_on(tmp_path: Path) -> None:
    """Two segments fill the window of 2,920 bytes at 0.040 s, and their ACK at 0.060 s closes it.

    A probe byte beyond the window is refused.
    """
    reported = lasted(
        tmp_path,
        """
        0.0000 C > S S  0:0(0)        win 64240 <mss 1460>
        0.0200 S > C S. 0:0(0) ack 1  win 2920 <mss 1460>
        0.0200 C > S .         ack 1  win 64240
        0.0400 C > S .  1:1461        ack 1
        0.0400 C > S .  1461:2921     ack 1
        0.0600 S > C .  ack 2921      win 0
        0.5600 C > S .  2921:2922     ack 1
        0.5800 S > C .  ack 2921      win 0
        0.7000 S > C .  ack 2921      win 2920
        0.7000 C > S .  2921:4381     ack 1
        0.7200 S > C .  ack 4381      win 2920
        """,
    )
    assert reported["receiver-window"] == pytest.approx(20, abs=0.1)
    assert reported["zero-window"] == pytest.approx(640, abs=0.1)


@pytest.mark.parametrize(("left_ms", "window_ms"), [(60.1, 5.1), (74.0, 0.0)])
def test_a_window_that_opened_long_before_a_segment_left_did_not_hold_it(tmp_path: Path, left_ms: float, window_ms: float) -> None:
    """Two segments leave room for 1,080 bytes.

    The ACK of the first segment at 60 ms makes room for 2,540 bytes, while the second segment is still in flight.
    """
    reported = lasted(
        tmp_path,
        f"""
        0.0000 C > S S  0:0(0)        win 64240 <mss 1460>
        0.0200 S > C S. 0:0(0) ack 1  win 4000 <mss 1460>
        0.0200 C > S .         ack 1  win 64240
        0.0400 C > S .  1:1461        ack 1
        0.0550 C > S .  1461:2921     ack 1
        0.0600 S > C .  ack 1461      win 4000
        {left_ms}ms C > S .  2921:4381     ack 1
        0.0750 S > C .  ack 2921      win 4000
        0.0950 S > C .  ack 4381      win 4000
        """,
    )
    assert reported.get("receiver-window", 0.0) == pytest.approx(window_ms, abs=0.01)


def through_a_queue(*, resent: int | None) -> str:
    """Return a capture at the receiver. A flight of 20 segments passes a path that takes 10 ms per segment.

    Segment `resent` arrives twice. The ACK of segment n - 20 takes 10 ms to the sender and releases segment n there. Segment n echoes the
    timestamp of this ACK.
    """
    lines = [
        "0 C > S S 0:0(0) win 64240 <mss 1460, sackOK, wscale 7, TS val 1000 ecr 0>",
        "0 S > C S. 0:0(0) ack 1 win 65160 <mss 1460, sackOK, wscale 7, TS val 5000 ecr 1000>",
        "0.02 C > S . ack 1 win 502 <TS val 1010 ecr 5000>",
    ]
    arrivals = [n for n in range(80) for _ in range(1 + (n == resent))]
    acked_ms: dict[int, int] = {}
    seen = 0
    for place, n in enumerate(arrivals):
        now_ms = 40 + 10 * place
        echoed_ms = acked_ms[n - 20] if n >= 20 else 0
        left_ms = echoed_ms + 10 if n >= 20 else 30
        again = n < seen
        left_ms += 30 if again else 0
        first, end = 1 + 1_000 * n, 1_001 + 1_000 * n
        lines.append(f"{now_ms}ms C > S . {first}:{end} ack 1 <TS val {1000 + left_ms} ecr {5000 + echoed_ms}>")
        sack = f", sack {first}:{end}" if again else ""
        lines.append(f"{now_ms}.1ms S > C . ack {max(end, 1 + 1_000 * seen)} win 512 <TS val {5000 + now_ms} ecr {1000 + left_ms}{sack}>")
        acked_ms.setdefault(n, now_ms)
        seen = max(seen, n + 1)
    return "\n".join(lines)


def test_bytes_that_drain_through_a_queue_are_the_networks_although_one_was_sent_again_needlessly(tmp_path: Path) -> None:
    """A tail-loss probe was spurious, because the original was only late.

    Arrivals have 78 gaps of 10 ms without the probe, and 79 with it.
    """
    plain, probed = (lasted(tmp_path, through_a_queue(resent=resent)) for resent in (None, 19))
    assert "loss-recovery" not in plain.keys() | probed.keys()
    assert probed["network"] - plain["network"] == pytest.approx(10, abs=1)


def test_causes_of_these_exchanges_sum_to_their_lives(tmp_path: Path) -> None:
    for text in (at_sender(69), at_receiver(2_000, 2_001), through_a_queue(resent=19)):
        found = read(packets.capture(tmp_path / "exchange.pcap", text))
        (life,) = found.connections.select(pl.col("last_ts_ns") - pl.col("first_ts_ns")).collect().to_series()
        assert sum(lasted(tmp_path, text).values()) == pytest.approx(life / ledgers.NS_PER_MS)


def pieces(size: int, *, between_ms: float) -> str:
    """Return ten requests of two pieces, and their answers.

    The first piece has 13 bytes. The second follows `between_ms` later. The ACK of the first piece arrives 45 ms after the piece. The MSS
    is 1,460 bytes.
    """
    lines = ["0 C > S S 0:0(0) win 64240 <mss 1460>", "0.005 S > C S. 0:0(0) ack 1 win 65160 <mss 1460>", "0.005 C > S . ack 1 win 64240"]
    for n in range(10):
        start_ms, first = 10 + 100 * n, 1 + (13 + size) * n
        lines.append(f"{start_ms}ms C > S P. {first}:{first + 13}")
        piece = f"{start_ms + between_ms}ms C > S P. {first + 13}:{first + 13 + size}"
        ack = f"{start_ms + 45}ms S > C . ack {first + 13}"
        lines += [piece, ack] if between_ms < 45 else [ack, piece]
        lines.append(f"{start_ms + 45 + between_ms}ms S > C P. {1 + 50 * n}:{51 + 50 * n} ack {first + 13 + size}")
        lines.append(f"{start_ms + 46 + between_ms}ms C > S . ack {51 + 50 * n}")
    return "\n".join(lines)


@pytest.mark.parametrize("size", [700, 1_400, 1_450])
def test_a_piece_of_nearly_a_segment_is_held_by_nagle_like_a_small_one(tmp_path: Path, size: int) -> None:
    """Second pieces are never in flight together. So they are writes of the application, not segments that a tunnel shortened."""
    reported = lasted(tmp_path, pieces(size, between_ms=45.1))
    assert reported["nagle-delayed-ack"] == pytest.approx(10 * 45.1)
    assert "delayed-ack" not in reported


@pytest.mark.parametrize("size", [700, 1_400])
def test_a_piece_that_leaves_at_once_was_not_held_by_nagle(tmp_path: Path, size: int) -> None:
    reported = lasted(tmp_path, pieces(size, between_ms=0.1))
    assert not {"nagle", "nagle-delayed-ack", "delayed-ack"} & reported.keys()


def both_ways(flight: int, *, queued: bool) -> str:
    """Return a flight of the client. The ACK of its first segment arrives 70 ms later.

    If `queued` is true, the server's data arrive in between, with old ACK numbers.
    """
    lines = [
        "0 C > S S 0:0(0) win 64240 <mss 1460, sackOK, wscale 7>",
        "0.020 S > C S. 0:0(0) ack 1 win 65160 <mss 1460, sackOK, wscale 7>",
        "0.020 C > S . ack 1 win 502",
    ]
    lines += [f"0.040 C > S . {1 + MSS * n}:{1 + MSS * (n + 1)} ack 1" for n in range(flight)]
    lines += [f"{41 + 2 * n}ms S > C . {1 + MSS * n}:{1 + MSS * (n + 1)} ack 1" for n in range(34) if queued]
    lines += [f"0.110 S > C . ack {1 + MSS}", f"0.1101 C > S . {1 + flight * MSS}:{1 + (flight + 1) * MSS}"]
    lines += [f"0.130 S > C . ack {1 + (flight + 1) * MSS}"]
    return "\n".join(lines)


def test_an_ack_that_waits_behind_the_other_sides_data_is_the_networks_not_a_delayed_one(tmp_path: Path) -> None:
    """After the server has received the client's flight, its data carry the ACK of the flight (RFC 9293, 3.8.6.3).

    The data that arrive from 41 to 107 ms carry an older ACK number. So the server sent them before it received the flight, and they waited
    in a queue. A receiver must ACK at least every second segment (RFC 5681, 4.2). So it does not delay the ACK of ten segments, but can
    delay the ACK of one segment.
    """
    assert "delayed-ack" not in lasted(tmp_path, both_ways(10, queued=True))
    assert "delayed-ack" not in lasted(tmp_path, both_ways(10, queued=False))
    assert lasted(tmp_path, both_ways(1, queued=False))["delayed-ack"] == pytest.approx(70.1)
