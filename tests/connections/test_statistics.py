"""Statistics of connections, in exchanges written by hand. Each test computes its expected values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.engine import read_text

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
"""Nanoseconds in a millisecond."""

HANDSHAKE = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1000, sackOK, TS val 100 ecr 0>
    0.010 S > C  S.  0:0(0) ack 1  win 65160 <mss 1000, sackOK, TS val 500 ecr 100>
    0.012 C > S  .          ack 1  win 64240 <TS val 112 ecr 500>
"""
"""Frames 1 to 3: a handshake."""


def client(folder: Path, text: str) -> dict[str, Any]:
    """Return the columns of the client's direction in an exchange."""
    return side(folder, text, "client")


def side(folder: Path, text: str, name: str) -> dict[str, Any]:
    row = read_text(folder, text).connections.row(0, named=True)
    return {column.removeprefix(f"{name}_"): value for column, value in row.items() if column.startswith(f"{name}_")}


def test_round_trips_three_ways_each_with_its_samples(tmp_path: Path) -> None:
    """The SYN's RTT is 10 ms. One ACK covers two segments.

    By Karn's rule, the newer segment gives the RTT sample (108 - 101 ms). By the timestamp, the older segment gives it (108 - 100 ms).
    """
    found = client(
        tmp_path,
        f"""{HANDSHAKE}
        0.100 C > S . 1:1001    ack 1 <TS val 200 ecr 500>
        0.101 C > S . 1001:2001 ack 1 <TS val 201 ecr 500>
        0.108 S > C . ack 2001        <TS val 608 ecr 200>
        """,
    )
    assert (found["rtt_handshake_samples"], found["rtt_handshake_ns"]) == (1, 10 * MS)
    assert (found["rtt_samples"], found["rtt_min_ns"], found["rtt_max_ns"]) == (2, 7 * MS, 10 * MS)
    assert found["rtt_stdev_ns"] == 2_121_320, "of 10 and 7: 3 / √2"
    assert (found["rtt_timestamp_samples"], found["rtt_timestamp_min_ns"], found["rtt_timestamp_mean_ns"]) == (2, 8 * MS, 9 * MS)


def test_a_timestamp_shows_which_transmission_arrived_where_karn_must_not(tmp_path: Path) -> None:
    """The segment sent at 100 ms is retransmitted at 400 ms. The ACK at 409 ms echoes the timestamp of the retransmission, 500."""
    found = client(
        tmp_path,
        f"""{HANDSHAKE}
        0.100 C > S . 1:1001 ack 1 <TS val 200 ecr 500>
        0.400 C > S . 1:1001 ack 1 <TS val 500 ecr 500>
        0.409 S > C . ack 1001     <TS val 909 ecr 500>
        """,
    )
    assert found["rtt_samples"] == 1, "the SYN's"
    assert (found["rtt_timestamp_samples"], found["rtt_timestamp_min_ns"]) == (2, 9 * MS)
    assert (found["rtt_retransmitted_samples"], found["rtt_retransmitted_min_ns"]) == (1, 9 * MS)
    assert (found["max_retransmits"], found["retransmit_interval_samples"], found["retransmit_interval_max_ns"]) == (1, 1, 300 * MS)


def test_an_echo_of_the_first_transmission_gives_no_time_of_the_second(tmp_path: Path) -> None:
    found = client(
        tmp_path,
        f"""{HANDSHAKE}
        0.100 C > S . 1:1001 ack 1 <TS val 200 ecr 500>
        0.400 C > S . 1:1001 ack 1 <TS val 500 ecr 500>
        0.409 S > C . ack 1001     <TS val 909 ecr 200>
        """,
    )
    assert found["rtt_timestamp_samples"] == 1, "the SYN's"


def test_no_handshake_round_trip_of_a_syn_that_was_resent(tmp_path: Path) -> None:
    text = """
        0.000 C > S  S   0:0(0)
        1.000 C > S  S   0:0(0)
        1.010 S > C  S.  0:0(0) ack 1
        1.012 C > S  .          ack 1
    """
    found = client(tmp_path, text)
    assert (found["rtt_handshake_samples"], found["rtt_handshake_ns"]) == (0, None)
    assert side(tmp_path, text, "server")["rtt_handshake_ns"] == 2 * MS


def test_bytes_and_segments_per_ack_of_data(tmp_path: Path) -> None:
    """One ACK covers 1000 bytes, the next 2500 bytes in three segments; the ACK of the FIN covers no data."""
    found = side(
        tmp_path,
        f"""{HANDSHAKE}
        0.100 C > S . 1:1001    ack 1
        0.110 S > C . ack 1001
        0.120 C > S . 1001:2001 ack 1
        0.121 C > S . 2001:3001 ack 1
        0.122 C > S . 3001:3501 ack 1
        0.130 S > C . ack 3501
        0.140 C > S F. 3501:3501 ack 1
        0.150 S > C . ack 3502
        """,
        "server",
    )
    assert (found["advancing_acks"], found["bytes_per_ack"], found["segments_per_ack"]) == (2, 1750.0, 2.0)
    assert (found["max_bytes_per_ack"], found["max_segments_per_ack"]) == (2500, 3)
    assert client(tmp_path, HANDSHAKE)["bytes_per_ack"] is None


def test_cumulative_duplicate_and_post_loss_acks(tmp_path: Path) -> None:
    """1001:2001 is lost and retransmitted. The segments after it were sent before the retransmission."""
    found = client(
        tmp_path,
        f"""{HANDSHAKE}
        0.100 C > S . 1:1001    ack 1
        0.101 C > S . 1001:2001 ack 1
        0.102 C > S . 2001:3001 ack 1
        0.103 C > S . 3001:4001 ack 1
        0.104 C > S . 4001:5001 ack 1
        0.110 S > C . ack 1001
        0.112 S > C . ack 1001 <sack 2001:3001>
        0.113 S > C . ack 1001 <sack 2001:4001>
        0.114 S > C . ack 1001 <sack 2001:5001>
        0.115 C > S . 1001:2001 ack 1
        0.125 S > C . ack 5001
        """,
    )
    assert found["triple_duplicate_acks"] == 1
    assert found["cumulatively_acked_segments"] == 3, "all but the first and the last"
    assert found["post_loss_acks"] == 1
    assert (found["rtt_retransmitted_samples"], found["rtt_samples"]) == (0, 2), "the SYN's and that of the first segment"
    assert (found["retransmit_interval_samples"], found["retransmit_interval_min_ns"]) == (1, 14 * MS)


def test_sack_segments_and_d_sacks_are_distinguished(tmp_path: Path) -> None:
    """A SACK is a D-SACK if its first block lies below the ACK or within the second block (RFC 2883, 4)."""
    found = side(
        tmp_path,
        f"""{HANDSHAKE}
        0.100 C > S . 1:5001 ack 1
        0.110 S > C . ack 2001 <sack 3001:4001>
        0.111 S > C . ack 2001 <sack 1:1001, nop>
        0.112 S > C . ack 2001 <sack 3201:3401 3001:4001>
        """,
        "server",
    )
    assert (found["sack_segments"], found["dsack_segments"], found["max_sack_blocks"]) == (3, 2, 2)


def test_urgent_data_ends_at_the_urgent_pointer_or_with_the_segment(tmp_path: Path) -> None:
    """The first segment has the URG flag and an urgent pointer of 0, so 0 bytes are urgent.

    Segments without data do not count as urgent segments.
    """
    found = client(tmp_path, f"{HANDSHAKE}\n0.1 C > S P.U 1:101 ack 1\n0.2 C > S .U ack 1")
    assert (found["urgent_segments"], found["urgent_bytes"]) == (1, 0)
    assert (found["pushed_segments"], found["pushed_data_segments"]) == (1, 1)


def test_bytes_in_flight_over_segments_and_over_time(tmp_path: Path) -> None:
    """The bytes in flight after frames 3 to 6 are 0, 1000, 2000 and 0.

    1000 bytes are in flight for 50 of 200 ms, and 2000 bytes for another 50 ms.
    """
    found = client(
        tmp_path,
        f"""{HANDSHAKE}
        0.050 C > S . 1:1001    ack 1
        0.100 C > S . 1001:2001 ack 1
        0.150 S > C . ack 2001
        0.200 C > S .           ack 1
        """,
    )
    assert (found["min_in_flight_bytes"], found["mean_in_flight_bytes"], found["max_in_flight_bytes"]) == (1000, 750, 2000)
    assert found["time_mean_in_flight_bytes"] == 750, "(1000 · 50 + 2000 · 50) / 200"


def test_a_stream_from_syn_to_fin_and_what_of_it_was_never_seen(tmp_path: Path) -> None:
    text = f"""{HANDSHAKE}
        0.1 C > S .  1:1001    ack 1
        0.2 C > S F. 1501:2001 ack 1
    """
    found = client(tmp_path, text)
    assert (found["stream_bytes"], found["missing_bytes"], found["unique_bytes"]) == (2000, 500, 1500)
    assert side(tmp_path, text, "server")["stream_bytes"] is None, "no FIN"


def test_the_initial_window_ends_with_the_first_ack_of_data(tmp_path: Path) -> None:
    found = client(
        tmp_path,
        f"""{HANDSHAKE}
        0.100 C > S . 1:1001    ack 1
        0.101 C > S . 1001:2001 ack 1
        0.110 S > C . ack 2001
        0.111 C > S . 2001:3001 ack 1
        """,
    )
    assert (found["initial_window_bytes"], found["initial_window_segments"]) == (2000, 2)
    assert client(tmp_path, "0.1 C > S . 1:1001 ack 1")["initial_window_bytes"] is None, "no SYN"


def test_round_trips_of_full_sized_segments_begin_anew_with_a_larger_one(tmp_path: Path) -> None:
    found = client(
        tmp_path,
        f"""{HANDSHAKE}
        0.100 C > S . 1:101     ack 1
        0.104 S > C . ack 101
        0.200 C > S . 101:1101  ack 1
        0.206 S > C . ack 1101
        0.300 C > S . 1101:2101 ack 1
        0.308 S > C . ack 2101
        0.400 C > S . 2101:2201 ack 1
        0.401 S > C . ack 2201
        """,
    )
    assert (found["rtt_full_size_bytes"], found["rtt_full_size_samples"]) == (1000, 2)
    assert (found["rtt_full_size_min_ns"], found["rtt_full_size_mean_ns"], found["rtt_full_size_max_ns"]) == (6 * MS, 7 * MS, 8 * MS)


def test_windows_sizes_and_what_the_capture_cut(tmp_path: Path) -> None:
    """After the SYN, the windows are 100 and 300 bytes, and the segments have 100 and 300 bytes.

    Frames are truncated at 96 bytes, of which 14 + 20 + 20 are headers, so 42 bytes of data remain.
    """
    text = """
        0.00 C > S  S   0:0(0)        win 64240
        0.01 S > C  S.  0:0(0) ack 1  win 65160
        0.02 C > S  .  1:101   ack 1  win 100
        0.03 C > S  .  101:401 ack 1  win 300
    """
    found = read_text(tmp_path, text, snaplen_bytes=96).connections.row(0, named=True)
    assert (found["client_mean_window_bytes"], found["client_ack_segments"]) == (200, 2)
    assert (found["client_min_segment_bytes"], found["client_mean_segment_bytes"], found["client_max_segment_bytes"]) == (100, 200, 300)
    assert found["client_truncated_bytes"] == 100 - 42 + 300 - 42
    assert found["client_frame_bytes"] == 54 + 154 + 354, "headers and data; the capture cut them, the link did not"
    assert found["client_max_gap_ns"] == 20 * MS


def test_a_clock_that_goes_back_at_each_segment_measures_no_silence(tmp_path: Path) -> None:
    """The server's second segment is stamped 1 s after the first, the third 2 s before the second.

    So the server's longest silence is 1 s.
    """
    text = """
        9.0 C > S . 1:101   ack 1
        8.0 C > S . 101:201 ack 1
        1.0 S > C . 1:101   ack 201
        2.0 S > C . 101:201 ack 201
        0.0 S > C . 201:301 ack 201
    """
    found = read_text(tmp_path, text).connections.row(0, named=True)
    assert (found["client_max_gap_ns"], found["server_max_gap_ns"]) == (None, 1000 * MS)


def test_windows_are_unknown_without_their_scale(tmp_path: Path) -> None:
    """Without the handshake the window scale is unknown, so only a window of 0 is known; the largest and the mean window are null."""
    found = client(tmp_path, "0.1 C > S . 1:101 ack 1 win 500\n0.2 C > S . 101:201 ack 1 win 0")
    assert (found["max_window_bytes"], found["mean_window_bytes"], found["min_window_bytes"]) == (None, None, 0)
