"""The state of a connection just before each segment: bytes in flight, usable window, gaps, ACK lag, RTTs, and the segment's trigger.

The exchanges are written by hand. Each test computes its expected values from the column meanings in `tcptrace_lab/schema`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.engine import column, read_text

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
"""Nanoseconds in a millisecond."""

HANDSHAKE = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    0.010 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    0.011 C > S  .          ack 1  win 502
"""
"""Frames 1 to 3: a handshake. Both sides shift their windows by 7."""


def test_bytes_in_flight_are_those_sent_and_not_yet_acknowledged(tmp_path: Path) -> None:
    """When C sends frames 4, 5, 7 and 8, it has 0, 1460, 2920 - 1460 and 1460 + 1460 bytes in flight.

    S sends the ACK in frame 6 and has 0 bytes in flight.
    """
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1
        0.021 C > S . 1461:2921 ack 1
        0.030 S > C . ack 1461 win 500
        0.031 C > S . 2921:4381 ack 1
        0.032 C > S . 4381:5841 ack 1
        """,
    )
    assert column(read.segments, "in_flight_bytes", 4, 5, 6, 7, 8) == [0, 1460, 0, 1460, 2920]
    assert column(read.segments, "in_flight_bytes", 1, 2, 3) == [None, None, 0], "the SYN-ACK is the first ACK the client gets"
    assert read.connections["client_max_in_flight_bytes"].to_list() == [4380], "after frame 8: 5841 - 1461"


def test_bytes_in_flight_are_unknown_in_mid_stream_until_the_other_side_acknowledges(tmp_path: Path) -> None:
    read = read_text(tmp_path, "0 C > S . 1:1461 ack 1\n1 C > S . 1461:2921 ack 1\n2 S > C . 1:1(0) ack 1461\n3 C > S . 2921:4381 ack 1")
    assert column(read.segments, "in_flight_bytes", 1, 2, 4) == [None, None, 1460]


def test_syn_and_fin_are_acknowledged_like_a_byte_each(tmp_path: Path) -> None:
    read = read_text(tmp_path, f"{HANDSHAKE}\n0.02 C > S FP. 1:101 ack 1\n0.03 S > C F. 1:1(0) ack 102\n0.04 C > S . ack 2")
    assert column(read.segments, "acked_bytes") == [None, 1, 1, 0, 101, 1]


def test_bytes_sent_again_are_in_flight_once(tmp_path: Path) -> None:
    read = read_text(tmp_path, f"{HANDSHAKE}\n0.02 C > S . 1:1461 ack 1\n0.52 C > S . 1:1461 ack 1\n1.52 C > S . 1:1461 ack 1")
    assert column(read.segments, "in_flight_bytes", 4, 5, 6) == [0, 1460, 1460]


def test_usable_window_is_what_was_offered_less_what_is_out(tmp_path: Path) -> None:
    """The right edge of the window is 1 + 65160 after the SYN-ACK, then 1461 + 20 * 128 = 4021.

    Before frame 7, C has sent up to 2921; before frame 8, up to 4021.
    """
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1
        0.021 C > S . 1461:2921 ack 1
        0.030 S > C . ack 1461 win 20
        0.031 C > S . 2921:4021 ack 1
        0.032 C > S . 4021:4022 ack 1
        """,
    )
    assert column(read.segments, "usable_window_bytes", 3, 4, 5) == [65_160, 65_160, 65_160 - 1460]
    assert column(read.segments, "usable_window_bytes", 7, 8) == [4021 - 2921, 0]
    assert column(read.segments, "usable_window_bytes", 1) == [None], "nothing was offered yet"


def test_usable_window_is_negative_after_the_window_shrank(tmp_path: Path) -> None:
    """C has 2920 bytes in flight when the window shrinks to 10 * 128 = 1280 bytes without a new ACK.

    The usable window is 1 + 1280 - 2921 = -1640 bytes.
    """
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1
        0.021 C > S . 1461:2921 ack 1
        0.030 S > C . ack 1 win 10
        0.231 C > S . 1:1461    ack 1
        """,
    )
    assert column(read.segments, "usable_window_bytes", 7) == [-1640]


def test_gaps_count_from_the_own_direction_and_from_the_other(tmp_path: Path) -> None:
    """C sends at 0, 11, 20 and 100 ms; S at 10 (SYN-ACK), 40 (data with ACK) and 70 ms (ACK)."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S P. 1:101  ack 1
        0.040 S > C P. 1:51   ack 101 win 500
        0.070 S > C .         ack 101 win 501
        0.100 C > S P. 101:201 ack 51
        """,
    )
    assert column(read.segments, "since_previous_ns") == [None, None, 11 * MS, 9 * MS, 30 * MS, 30 * MS, 80 * MS]
    assert column(read.segments, "since_last_ack_ns") == [None, None, 1 * MS, 10 * MS, 20 * MS, 50 * MS, 30 * MS]
    assert column(read.segments, "since_last_data_ns") == [None, None, None, None, 20 * MS, 50 * MS, 60 * MS]


def test_round_trip_is_measured_from_the_newest_segment_acknowledged(tmp_path: Path) -> None:
    """The ACK at 30 ms covers segments sent at 20 and 22 ms: the RTT is 8 ms, and the ACK lag of the oldest byte 10 ms."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1
        0.022 C > S . 1461:2921 ack 1
        0.024 C > S . 2921:4381 ack 1
        0.030 S > C . ack 2921 win 500
        0.036 S > C . ack 4381 win 500
        0.037 S > C . ack 4381 win 510
        """,
    )
    assert column(read.segments, "acked_bytes", 7, 8, 9) == [2920, 1460, 0]
    assert column(read.segments, "rtt_ns", 7, 8, 9) == [8 * MS, 12 * MS, None]
    assert column(read.segments, "ack_lag_ns", 7, 8, 9) == [10 * MS, 12 * MS, None]
    assert column(read.segments, "acked_bytes", 1) == [None], "a SYN without ACK"


def test_round_trip_of_the_handshake_is_a_sample(tmp_path: Path) -> None:
    read = read_text(tmp_path, HANDSHAKE)
    assert column(read.segments, "rtt_ns") == [None, 10 * MS, 1 * MS]


def test_no_round_trip_sample_from_a_resent_segment(tmp_path: Path) -> None:
    """By Karn's rule, 1:1461 gives no sample, because it was sent twice. The next segment was sent once and gives a sample.

    The ACK lag of 1:1461 counts from the retransmission.
    """
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1
        0.320 C > S . 1:1461    ack 1
        0.330 S > C . ack 1461 win 500
        0.340 C > S . 1461:2921 ack 1
        0.355 S > C . ack 2921 win 500
        """,
    )
    assert column(read.segments, "rtt_ns", 6, 8) == [None, 15 * MS]
    assert column(read.segments, "ack_lag_ns", 6, 8) == [10 * MS, 15 * MS]
    connection = read.connections.row(0, named=True)
    assert (connection["client_rtt_samples"], connection["client_rtt_max_ns"]) == (2, 15 * MS), "the SYN's 10 ms and this one"


def test_no_round_trip_sample_if_any_covered_byte_was_resent(tmp_path: Path) -> None:
    """The ACK covers 1:1461 (sent twice) and 1461:2921 (sent once, later). Possibly, the receiver delayed this ACK until 1:1461 arrived."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1
        0.021 C > S . 1461:2921 ack 1
        0.320 C > S . 1:1461    ack 1
        0.330 S > C . ack 2921 win 500
        """,
    )
    assert column(read.segments, "rtt_ns", 7) == [None]
    assert column(read.segments, "acked_bytes", 7) == [2920]


def test_needless_resend_of_acknowledged_bytes_hides_no_later_round_trip(tmp_path: Path) -> None:
    """Karn's rule applies only to bytes that an ACK newly acknowledges; 1:1461 was acknowledged before it was sent again."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S P. 1:1461 ack 1
        0.030 S > C .  ack 1461 win 500
        0.320 C > S P. 1:1461 ack 1
        0.330 C > S P. 1461:2921 ack 1
        0.340 S > C .  ack 2921 win 500
        """,
    )
    assert column(read.segments, "rtt_ns", 5, 8) == [10 * MS, 10 * MS]
    assert column(read.segments, "ack_lag_ns", 8) == [10 * MS]


def test_delayed_ack_shows_as_lag(tmp_path: Path) -> None:
    read = read_text(tmp_path, f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.060 S > C . ack 101 win 500")
    assert column(read.segments, "ack_lag_ns", 5) == [40 * MS]


def test_data_right_after_an_ack_is_released_by_it_and_the_rest_by_the_burst(tmp_path: Path) -> None:
    """Ten segments fill the offered window of 10 * 1460 bytes. Frame 14, an ACK of two segments, releases two more 20 µs later."""
    lines = [HANDSHAKE.replace("win 65160", "win 14600")]
    lines += [f"0.0200{index:02} C > S . {1 + index * 1460}:{1 + (index + 1) * 1460} ack 1" for index in range(10)]
    lines += ["0.030 S > C . ack 2921 win 114", "+20us C > S . 14601:16061 ack 1", "+1us C > S . 16061:17521 ack 1"]
    read = read_text(tmp_path, "\n".join(lines))
    assert column(read.segments, "released_by", 14) == [None], "an ACK without data"
    assert column(read.segments, "released_by", 15, 16) == ["ack", "burst"]
    assert column(read.segments, "released_by_frame", 15, 16) == [14, 15]
    assert column(read.segments, "released_by", *range(5, 14)) == ["burst"] * 9
    assert set(column(read.segments, "released_by_frame", *range(5, 14))) == {4}


def test_data_after_idle_time_is_released_by_the_write(tmp_path: Path) -> None:
    read = read_text(tmp_path, f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.030 S > C . ack 101 win 500\n5.000 C > S P. 101:201 ack 1")
    assert column(read.segments, "released_by", 6) == ["write"]
    assert column(read.segments, "released_by_frame", 6) == [None]


def test_resending_after_a_silence_is_released_by_a_timer(tmp_path: Path) -> None:
    read = read_text(tmp_path, f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.320 C > S P. 1:101 ack 1\n0.920 C > S P. 1:101 ack 1")
    assert column(read.segments, "released_by", 5, 6) == ["timer", "timer"]
    assert column(read.segments, "released_by_frame", 5, 6) == [None, None]
