"""The capture point (client, server or between), in captures whose point is known and in exchanges written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcptrace_lab
from tcptrace_lab.lab.experiment import Experiment, run
from tcptrace_lab.lab.hosts.applications import Bulk
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import PathModel
from tests.support import packets, seen_at_ends
from tests.support.judged import judged, judged_text, scenario, scenarios
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
TRUTH = scenarios()

DELAYED = [name for name, made in TRUTH.items() if made["relay"] is not None and made["connections_ended"] == 1]
"""Captures of paths whose delay is long enough to show the capture point."""

AT_ONCE = [
    name for name, made in TRUTH.items() if made["relay"] is None and made["medium"]["kind"] != "lo" and made["connections_ended"] == 1
]
"""Captures over a path without delay: both ends answer within microseconds."""

LOOPBACK = [name for name, made in TRUTH.items() if made["medium"]["kind"] == "lo"]


@pytest.mark.parametrize("name", DELAYED)
def test_the_end_where_it_was_captured_is_found(name: str) -> None:
    found = scenario(name)
    assert (found["vantage"], found["vantage_confidence"]) == (TRUTH[name]["vantage"], "proved")


@pytest.mark.parametrize("name", AT_ONCE)
def test_without_a_path_between_the_ends_no_place_is_made_up(name: str) -> None:
    found = scenario(name)
    assert (found["vantage"], found["vantage_known_by"], found["vantage_confidence"]) == ("unknown", "short", None)


@pytest.mark.parametrize("name", LOOPBACK)
def test_loopback_is_a_case_of_its_own(name: str) -> None:
    found = scenario(name)
    assert (found["vantage"], found["vantage_known_by"]) == ("unknown", "loopback")


MIDDLE = """
    0.000 C > S S  0:0(0)        win 64240 <mss 1460>
    0.010 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    0.022 C > S .         ack 1
    0.022 C > S P. 1:101  ack 1
    0.032 S > C P. 1:101  ack 101
    0.044 C > S .         ack 101
"""
"""An exchange captured between the hosts: the RTT is 12 ms to the client and 10 ms to the server."""


def test_between_the_ends_both_are_far(tmp_path: Path) -> None:
    found = judged_text(tmp_path, MIDDLE)
    assert (found["vantage"], found["vantage_confidence"], found["vantage_known_by"]) == ("middle", "consistent", "handshake")
    assert (found["rtt_to_client_ns"], found["rtt_to_server_ns"]) == (12 * MS, 10 * MS)


def test_data_that_follows_an_ack_by_chance_does_not_prove_the_sender_near(tmp_path: Path) -> None:
    """The capture is made at the receiver.

    The ACK is sent 0.1 ms before the next data arrive, but these data had been in transit for 10 ms.
    """
    found = judged_text(
        tmp_path,
        """
        0.0000 C > S S  0:0(0)        win 64240 <mss 1460>
        0.0001 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
        0.0201 C > S .         ack 1
        0.0202 C > S . 1:1461      ack 1
        0.0203 S > C . ack 1461
        0.0204 C > S . 1461:2921   ack 1
        0.0205 S > C . ack 2921
        0.0206 C > S . 2921:4381   ack 1
        0.0207 S > C . ack 4381
        """,
    )
    assert (found["vantage"], found["rtt_to_client_ns"], found["rtt_to_server_ns"]) == ("server", 20 * MS, MS // 10)


def test_an_echoed_timestamp_proves_that_a_segment_had_arrived(tmp_path: Path) -> None:
    """The capture begins mid-stream, with data in one direction.

    The first ACK has the timestamp 901, which the sender first echoes 20 ms later. Earlier segments echo 900. They prove nothing, because
    no captured ACK has that timestamp.
    """
    found = judged_text(
        tmp_path,
        """
        0.000 C > S . 1:1449     ack 1    <TS val 10 ecr 900>
        0.001 S > C . ack 1449            <TS val 901 ecr 10>
        0.002 C > S . 1449:2897  ack 1    <TS val 12 ecr 900>
        0.003 S > C . ack 2897            <TS val 903 ecr 12>
        0.021 C > S . 2897:4345  ack 1    <TS val 31 ecr 901>
        0.022 S > C . ack 4345            <TS val 922 ecr 31>
        """,
    )
    assert (found["client_reaction_min_ns"], found["server_rtt_min_ns"]) == (20 * MS, None)
    assert (found["vantage"], found["vantage_confidence"], found["vantage_known_by"]) == ("server", "consistent", "answers")


def test_data_beyond_the_old_window_proves_that_the_new_one_had_arrived(tmp_path: Path) -> None:
    """The segments have no timestamps. The ACK at 0.030 s moves the window's right edge beyond 2921.

    So when the sender sent 2921:4381, 20 ms later, it had received that ACK.
    """
    found = judged_text(
        tmp_path,
        """
        0.000 C > S S  0:0(0)        win 64240 <mss 1460>
        0.000 S > C S. 0:0(0) ack 1  win 2920  <mss 1460>
        0.025 C > S .         ack 1
        0.026 C > S . 1:1461    ack 1
        0.027 C > S . 1461:2921 ack 1
        0.030 S > C . ack 1461 win 2920
        0.050 C > S . 2921:4381 ack 1
        """,
    )
    assert found["client_reaction_min_ns"] == 20 * MS


def test_data_of_which_the_fin_alone_is_beyond_the_old_window_prove_nothing(tmp_path: Path) -> None:
    """The data are sent 1 ms after an ACK and end at the right edge of the previous window.

    Only the FIN lies beyond that edge, and a FIN needs no window.
    """
    found = judged_text(
        tmp_path,
        """
        0.000 C > S S  0:0(0)        win 64240 <mss 1460>
        0.000 S > C S. 0:0(0) ack 1  win 2920  <mss 1460>
        0.025 C > S .         ack 1
        0.026 C > S . 1:1461     ack 1
        0.030 S > C . ack 1461 win 2920
        0.031 C > S FP. 1461:2921 ack 1
        """,
    )
    assert found["client_reaction_min_ns"] is None


def test_middle_by_acks_alone_is_only_possible(tmp_path: Path) -> None:
    """The capture has no handshake. So the receiver is possibly at the capture point, and delays all its ACKs."""
    found = judged_text(
        tmp_path,
        "0 C > S P. 1:101 ack 1\n0.040 S > C . ack 101\n1 S > C P. 1:101 ack 101\n1.020 C > S . ack 101",
    )
    assert (found["vantage"], found["vantage_confidence"]) == ("middle", "possible")


def test_one_direction_alone_has_no_place(tmp_path: Path) -> None:
    found = judged_text(tmp_path, "0 C > S P. 1:101 ack 1\n1 C > S P. 101:201 ack 1")
    assert (found["vantage"], found["vantage_known_by"]) == ("unknown", "nothing")


def test_times_at_both_ends_are_half_a_turnaround_before_and_after(tmp_path: Path) -> None:
    """Frame 5 is captured at 32 ms: the server sent it 5 ms earlier, and the client receives it 6 ms later."""
    tables = tcptrace_lab.read(packets.capture(tmp_path / "middle.pcap", MIDDLE))
    rows = seen_at_ends.shifted(tables.segments, tables.connections).collect()
    assert rows["frame"].to_list() == [1, 2, 3, 4, 5, 6]
    sender, receiver = (((rows[f"{end}_ts_ns"] - packets.BASE_NS) / MS).to_list() for end in ("sender", "receiver"))
    assert sender == [-6, 5, 16, 16, 27, 38]
    assert receiver == [5, 16, 27, 27, 38, 49]


def test_one_transfer_has_the_same_times_from_both_of_its_ends() -> None:
    """Two captures of `ethernet-loss` show how long the sender waited for the ACK of the first data.

    The two waits differ by less than 0.25 ms.
    """
    gaps = []
    for name in ("ethernet-loss", "ethernet-loss-at-server"):
        tables = tcptrace_lab.read(CAPTURES / TRUTH[name]["file"])
        rows = seen_at_ends.shifted(tables.segments, tables.connections).collect()
        data = rows.filter(rows["from_client"] & (rows["payload_bytes"] > 0)).row(0, named=True)
        acked = rows.filter(~rows["from_client"] & (rows["acked_bytes"] > 0) & (rows["ack"] > 1)).row(0, named=True)
        gaps.append(acked["receiver_ts_ns"] - data["sender_ts_ns"])
    assert abs(gaps[0] - gaps[1]) < MS // 4
    assert judged(CAPTURES / "ethernet-loss.pcapng")["client_rtt_min_ns"] > 20 * MS


@pytest.mark.live
def test_each_point_of_a_live_path_is_reported(tmp_path: Path) -> None:
    """One transfer is captured at both ends at once; the path delays each direction by 10 ms."""
    path = PathModel(delay_s=0.01)
    done = run(Experiment(Medium("tap", 1_500, forward=path, backward=path), Bulk(100_000)), tmp_path)
    for end in ("client", "server"):
        found = judged(done.captures[end])
        assert (found["vantage"], found["vantage_confidence"]) == (end, "proved")
        assert found[f"rtt_to_{end}_ns"] < 2 * MS < 20 * MS <= found[f"rtt_to_{'server' if end == 'client' else 'client'}_ns"]
