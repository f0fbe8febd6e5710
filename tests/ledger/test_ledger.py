"""The time ledger: each wait has the cause that the exchange was written to show, and all waits of a direction sum to its lifetime.

The captures are hand-written, as if recorded at the client. The RTT is 20 ms. Expected durations follow from the times in each capture.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import schema
from tcptrace_lab.findings import evidence
from tests.support.ledgers import advised, judged, judged_text, sums
from tests.support.opened import MS, causes, lasted, tables
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path


def test_the_second_small_write_waits_for_the_delayed_ack_of_the_first(tmp_path: Path) -> None:
    """Frame 5, an ACK, releases frame 6 at 0.100 s. With an RTT of 20 ms, this ACK is 40 ms late."""
    found = tables(
        tmp_path,
        """
        0.0400 C > S P. 1:101    ack 1
        0.1000 S > C .           ack 101
        0.1001 C > S P. 101:201  ack 1
        0.1201 S > C P. 1:51     ack 201
        """,
    )
    assert lasted(found, "nagle-delayed-ack") == [pytest.approx(60.1)]


def test_an_ack_of_bytes_that_were_not_captured_was_delayed_too(tmp_path: Path) -> None:
    """A tool truncated packets without recording their true length.

    The capture has 30 of 100 bytes. So the ACK of all 100 bytes gives no RTT sample.
    """
    found = tables(
        tmp_path,
        """
        0.0400 C > S P. 1:31     ack 1
        0.1000 S > C .           ack 101
        0.1001 C > S P. 101:131  ack 1
        0.1201 S > C P. 1:51     ack 201
        """,
    )
    assert lasted(found, "nagle-delayed-ack") == [pytest.approx(60.1)]


def test_a_wait_in_which_the_capture_missed_what_left_is_unknown(tmp_path: Path) -> None:
    """Twenty segments were sent between frames 4 and 6, but the capture has only their ACKs.

    So the wait before the last of these segments is unknown.
    """
    found = tables(
        tmp_path,
        f"""
        0.040 C > S . 1:1461 ack 1
        0.060 S > C . ack 1461
        3.060 S > C . ack {1 + 21 * 1460}
        3.061 C > S . {1 + 21 * 1460}:{1 + 22 * 1460} ack 1
        3.081 S > C . ack {1 + 22 * 1460}
        """,
    )
    assert lasted(found, "unknown") == [pytest.approx(3021.0)]


def test_a_small_write_behind_a_small_one_in_flight_shows_that_nagle_is_off(tmp_path: Path) -> None:
    """Frame 5 was sent while frame 4 was in flight, so Nagle's algorithm is off.

    The last frame follows an ACK only because the application wrote its data at that time.
    """
    found = tables(
        tmp_path,
        """
        0.0400 C > S P. 1:101    ack 1
        0.0500 C > S P. 101:201  ack 1
        0.1000 S > C .           ack 201
        0.1001 C > S P. 201:301  ack 1
        """,
    )
    assert "nagle-delayed-ack" not in dict(causes(found))


@pytest.mark.parametrize("flags", ["FP.", "PU."])
def test_what_nagle_never_holds_does_not_show_that_nagle_is_off(tmp_path: Path, flags: str) -> None:
    """The last data before a close and urgent data are sent at once, whatever is in flight.

    So the last frame does not show that Nagle's algorithm is off. Nagle's algorithm made frame 6 wait for the ACK in frame 5.
    """
    found = tables(
        tmp_path,
        f"""
        0.0400 C > S P. 1:101    ack 1
        0.1000 S > C .           ack 101
        0.1001 C > S P. 101:201  ack 1
        0.1201 S > C P. 1:51     ack 201
        0.1300 C > S P. 201:301  ack 51
        0.1310 C > S {flags} 301:401 ack 51
        0.1500 S > C .           ack {402 if "F" in flags else 401}
        """,
    )
    assert lasted(found, "nagle-delayed-ack") == [pytest.approx(60.1)]


def test_a_close_that_leaves_with_an_ack_was_not_held_by_nagle(tmp_path: Path) -> None:
    """Frame 6 looks like the second of two small writes, but it carries the FIN.

    TCP does not delay a FIN. So frame 6 was sent as soon as the application had written its data.
    """
    found = tables(
        tmp_path,
        """
        0.0400 C > S P.  1:101    ack 1
        0.1000 S > C .            ack 101
        0.1001 C > S FP. 101:201  ack 1
        0.1201 S > C .            ack 202
        """,
    )
    assert not {"nagle", "nagle-delayed-ack"} & set(dict(causes(found)))


def test_an_answer_is_waited_for_a_round_trip_long_and_then_for_the_other_side(tmp_path: Path) -> None:
    """A question at 0.040 s is acknowledged at 0.060 s and answered at 0.160 s. The next question is sent at 0.190 s.

    So the causes are network for 20 ms, peer for 100 ms, and application for 30 ms.
    """
    found = tables(
        tmp_path,
        """
        0.040 C > S P. 1:101  ack 1
        0.060 S > C .         ack 101
        0.160 S > C P. 1:501  ack 101
        0.190 C > S P. 101:201 ack 501
        0.210 S > C . ack 201
        """,
    )
    assert [name for name, _ in causes(found)][1:5] == ["application", "network", "peer", "application"]
    assert lasted(found, "peer") == [pytest.approx(100.0)]
    assert lasted(found, "network")[0] == pytest.approx(20.0)
    assert lasted(found, "application")[1] == pytest.approx(30.0)


def test_a_full_window_owns_the_time_until_it_opens(tmp_path: Path) -> None:
    """The server offers a window of 23 << 7 = 2944 bytes, so the client sends two segments in each RTT."""
    found = tables(
        tmp_path,
        """
        0.0200 S > C .            ack 1 win 23
        0.0400 C > S .  1:1461    ack 1
        0.0400 C > S .  1461:2921 ack 1
        0.0600 S > C .            ack 2921 win 23
        0.0601 C > S .  2921:4381 ack 1
        0.0601 C > S .  4381:5841 ack 1
        0.0801 S > C .            ack 5841 win 23
        0.0802 C > S .  5841:7301 ack 1
        """,
    )
    assert dict(causes(found))["receiver-window"] == pytest.approx(2 * 20.1)


def test_a_closed_window_is_distinguished_from_a_full_one(tmp_path: Path) -> None:
    found = tables(
        tmp_path,
        """
        0.040 C > S .  1:1461 ack 1
        0.060 S > C .         ack 1461 win 0
        0.260 C > S .  1460:1460(0) ack 1
        0.280 S > C .         ack 1461 win 0
        0.500 S > C .         ack 1461 win 509
        0.501 C > S .  1461:2921 ack 1
        """,
    )
    reported = dict(causes(found))
    assert reported["zero-window"] == pytest.approx(461.0)
    assert "receiver-window" not in reported


def test_a_segment_resent_after_silence_waited_for_the_timer(tmp_path: Path) -> None:
    found = tables(tmp_path, "0.040 C > S P. 1:101 ack 1\n1.040 C > S P. 1:101 ack 1\n1.060 S > C . ack 101")
    assert lasted(found, "timeout") == [pytest.approx(1000.0)]


def test_a_syn_that_is_sent_again_belongs_to_the_handshake(tmp_path: Path) -> None:
    text = """
        0.000 C > S S  0:0(0)        win 64240 <mss 1460>
        1.000 C > S S  0:0(0)        win 64240 <mss 1460>
        1.020 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
        1.020 C > S .         ack 1
        1.050 C > S P. 1:101  ack 1
        """
    found = judged_text(tmp_path, text)
    assert lasted(found, "handshake") == [pytest.approx(1020.0)]
    assert lasted(found, "application") == [pytest.approx(30.0)]


def test_a_syn_that_nobody_answers_is_the_handshakes_to_the_end(tmp_path: Path) -> None:
    text = "0.000 C > S S 0:0(0) win 64240 <mss 1460>\n1.000 C > S S 0:0(0)\n2.500 C > S R 1:1"
    found = judged_text(tmp_path, text)
    assert dict(causes(found)) == pytest.approx({"handshake": 2500.0})


def test_what_holds_a_sender_with_bytes_in_flight_when_the_capture_ends_is_unknown(tmp_path: Path) -> None:
    """No ACK arrives within an RTT of 20 ms, and the capture ends 400 ms later.

    The capture does not show whether a packet was lost, the ACK is late, or the host is gone.
    """
    found = tables(tmp_path, "0.100 C > S P. 1:101 ack 1\n0.520 S > C . ack 1")
    assert lasted(found, "unknown") == [pytest.approx(400.0)]


def test_the_time_until_its_syn_ack_is_acknowledged_is_the_handshakes_of_a_server_that_only_receives(tmp_path: Path) -> None:
    """The capture is made at the server, which only receives.

    The 30 ms until the ACK of the SYN-ACK have the cause handshake. The client's message arrives 40 ms after that ACK. It was in transit
    for 30 of these 40 ms.
    """
    text = """
        0.000 C > S S  0:0(0)         win 64240 <mss 1460>
        0.000 S > C S. 0:0(0) ack 1   win 65160 <mss 1460>
        0.030 C > S .         ack 1
        0.070 C > S P. 1:101  ack 1
        0.070 S > C .         ack 101
        0.100 C > S F. 101:101 ack 1
    """
    found = judged_text(tmp_path, text)
    assert dict(causes(found, from_client=False)) == pytest.approx({"handshake": 30, "network": 30, "peer": 40})


ASKED_AND_ANSWERED = """
        0.100 C > S P. 1:101 ack 1
        0.120 S > C .        ack 101
        0.170 S > C P. 1:101 ack 101
        0.170 C > S .        ack 101
"""


def test_at_the_end_of_a_capture_it_is_unknown_which_of_two_silent_sides_is_to_speak(tmp_path: Path) -> None:
    """In the last 2 s, it is unknown which application had to write next.

    Before these 2 s, the client waited 20 ms for the network and 50 ms for the server.
    """
    found = tables(tmp_path, ASKED_AND_ANSWERED + "2.170 S > C . ack 101")
    assert dict(causes(found)[-3:]) == pytest.approx({"network": 20, "peer": 50, "unknown": 2000})
    assert dict(causes(found, from_client=False)[-2:]) == pytest.approx({"network": 20, "unknown": 1980}, abs=1)


@pytest.mark.parametrize(("last", "cause"), [("0.0800", "idle"), ("1.0000", "unknown")])
def test_a_sender_to_which_nobody_speaks_has_no_more_to_send_once_all_is_acknowledged(tmp_path: Path, last: str, cause: str) -> None:
    """The capture ends with a keepalive and its answer, 1.5 s after the data.

    Until all data were ACKed, TCP possibly delayed the next data.
    """
    found = tables(
        tmp_path,
        f"""
        0.0400 C > S P. 1:101    ack 1
        {last} S > C .           ack 101
        1.5000 C > S .  100:100  ack 1
        1.5400 S > C .           ack 101
        """,
    )
    assert sum(lasted(found, cause)) > 1_000


def test_a_silence_of_a_second_until_a_side_ends_the_connection_is_idle(tmp_path: Path) -> None:
    found = tables(tmp_path, ASKED_AND_ANSWERED + "2.170 S > C F. 101:101 ack 101")
    assert dict(causes(found)[-2:]) == pytest.approx({"peer": 50, "idle": 2000})
    assert dict(causes(found, from_client=False)[-1:]) == pytest.approx({"idle": 1980}, abs=1)


ANSWERED_TWICE = """
        0.000 C > S S  0:0(0)        win 64240 <mss 1460>
        0.020 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
        0.020 C > S .         ack 1
        1.020 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
        1.020 C > S .         ack 1
        """


def test_a_syn_ack_that_is_sent_again_belongs_to_the_handshake_of_both_sides(tmp_path: Path) -> None:
    """The first ACK was lost, or the accept queue was full.

    The server retransmits its SYN-ACK after 1 s, and then the client's application takes 30 ms.
    """
    found = judged_text(tmp_path, ANSWERED_TWICE + "1.050 C > S P. 1:101 ack 1")
    assert dict(causes(found)) == pytest.approx({"handshake": 1020.0, "application": 30.0})
    assert lasted(found, "handshake") == [pytest.approx(1020.0)]
    assert dict(causes(found, from_client=False)) == pytest.approx({"handshake": 1050.0}), "the ACK that opens it came with the data"


def test_a_syn_ack_that_is_sent_again_belongs_to_the_handshake_where_the_server_speaks_first(tmp_path: Path) -> None:
    """The server sends a greeting at 1.060 s, 40 ms after its second SYN-ACK. The RTT takes 20 ms of these 40 ms.

    The client answers 10 ms later.
    """
    text = ANSWERED_TWICE + "1.060 S > C P. 1:51 ack 1\n1.070 C > S P. 1:101 ack 51\n1.090 S > C . ack 101"
    reported = dict(causes(judged_text(tmp_path, text)))
    assert reported["handshake"] == pytest.approx(1020.0)
    assert (reported["peer"], reported["application"]) == pytest.approx((20.0, 10.0))


def test_behind_a_syn_ack_that_was_sent_once_a_late_greeting_is_waited_for(tmp_path: Path) -> None:
    """The connection is open at 0.020 s. The server's first data arrive at 0.420 s, and the client sends at 0.430 s."""
    text = ANSWERED_TWICE.partition("1.020")[0] + "0.420 S > C P. 1:51 ack 1\n0.430 C > S P. 1:101 ack 51"
    reported = dict(causes(judged_text(tmp_path, text)))
    assert reported["handshake"] == pytest.approx(20.0)
    assert reported["network"] + reported["peer"] == pytest.approx(400.0)
    assert reported["application"] == pytest.approx(10.0)


def test_flights_that_double_with_each_round_trip_are_slow_start(tmp_path: Path) -> None:
    found = tables(
        tmp_path,
        """
        0.0400 C > S . 1:1461    ack 1
        0.0400 C > S . 1461:2921 ack 1
        0.0600 S > C .           ack 2921
        0.0601 C > S . 2921:4381 ack 1
        0.0601 C > S . 4381:5841 ack 1
        0.0601 C > S . 5841:7301 ack 1
        0.0601 C > S . 7301:8761 ack 1
        """,
    )
    assert lasted(found, "slow-start") == [pytest.approx(20.1)]


def test_a_window_owns_only_what_the_line_stands_idle(tmp_path: Path) -> None:
    """The line has 10 Mb/s, and the timestamp of a frame is the time of its first bit.

    Two full segments (1538 bytes on the line, 1.23 ms each) fill the window of 2944 bytes. The ACK of both segments arrives 20 ms (one RTT)
    after the second one is on the line. In each 22.46 ms, the line is busy for 2.46 ms. The window is the cause of the other 20 ms.
    """
    text = "".join(
        f"""
        {0.04 + 0.02246 * place:.5f} C > S . {1 + 2920 * place}:{1461 + 2920 * place} ack 1
        {0.04123 + 0.02246 * place:.5f} C > S . {1461 + 2920 * place}:{2921 + 2920 * place} ack 1
        {0.06246 + 0.02246 * place:.5f} S > C . ack {2921 + 2920 * place} win 23
        """
        for place in range(6)
    )
    found = tables(tmp_path, "0.03 S > C . ack 1 win 23\n" + text)
    assert sum(lasted(found, "receiver-window")) == pytest.approx(5 * 20, abs=0.1)
    assert sums(found, from_client=True)["network"] / MS == pytest.approx(11 * 1.23 + 20, abs=2.5)  # plus the RTT after the last segment


def test_nothing_is_said_of_a_direction_whose_acks_were_not_captured(tmp_path: Path) -> None:
    text = "0 C > S . 1:1461 ack 1\n0.5 C > S . 1461:2921 ack 1\n1.5 C > S . 2921:4381 ack 1"
    found = judged_text(tmp_path, text)
    assert causes(found) == [("unknown", 1500.0)]


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap*")), ids=lambda path: path.name)
def test_the_ledger_of_every_direction_covers_its_life_without_gap_or_overlap(path: Path) -> None:
    found = judged(path)
    connections = found.connections.collect()
    sides = found.ledger.sort("start_ns").collect().partition_by("conn", "from_client", as_dict=True)
    spent = found.accounts.collect()
    for row in connections.iter_rows(named=True):
        life = (row["first_ts_ns"], row["last_ts_ns"])
        for side, from_client in schema.SIDES.items():
            if life[0] == life[1]:
                continue
            own = sides[row["conn"], from_client]
            assert (own["start_ns"][0], own["end_ns"][-1]) == life
            assert own["end_ns"][:-1].to_list() == own["start_ns"][1:].to_list()
            reported = spent.filter(pl.col("conn") == row["conn"]).select(pl.sum_horizontal(f"^{side}_.*_ns$")).item()
            assert reported == life[1] - life[0]


@pytest.mark.parametrize(
    "name",
    [
        "ethernet-small-receive-window",
        "ethernet-small-receive-window-at-server",
        "atm9180-small-receive-window",
        "atm9188-small-receive-window",
    ],
)
def test_window_time_equals_the_kernels_count_within_a_twentieth(name: str) -> None:
    """If the sender does not pace, `tcpi_rwnd_limited` in TCP_INFO is nearly exact (docs/how-it-decides.md, 2.8)."""
    (path,) = CAPTURES.glob(f"{name}.pcap*")
    truth = json.loads((CAPTURES / f"{name}.json").read_text())["connections"][0]["client"]["tcp_info"]
    found = judged(path)
    spent = found.accounts.collect().row(0, named=True)
    measured_ms = ((spent["client_receiver_window_ns"] or 0) + (spent["client_zero_window_ns"] or 0)) / MS
    assert measured_ms == pytest.approx(truth["tcpi_rwnd_limited"] / 1000, abs=truth["tcpi_busy_time"] / 1000 / 20)


@pytest.mark.parametrize("medium", ["ethernet", "loopback", "atm9180", "atm9188"])
def test_nagle_stalls_account_for_what_nodelay_saves(medium: str) -> None:
    """The application has the same schedule twice: without and with TCP_NODELAY.

    The durations of the two connections differ by the sum of the stalls, within 3%.
    """
    lives, stalls = {}, {}
    for setting in ("on", "off"):
        (path,) = CAPTURES.glob(f"{medium}-nagle-{setting}.pcap*")
        found = judged(path)
        row = found.connections.collect().row(0, named=True)
        spent = found.accounts.collect().row(0, named=True)
        lives[setting] = row["last_ts_ns"] - row["first_ts_ns"]
        stalls[setting] = spent["client_nagle_delayed_ack_ns"] or 0
    assert stalls["off"] == 0
    assert stalls["on"] == pytest.approx(lives["on"] - lives["off"], rel=0.03)


def test_a_finding_names_its_frames_its_cost_and_what_would_refute_it() -> None:
    found = judged(CAPTURES / "ethernet-nagle-on.pcapng")
    first = advised(found).findings[0]
    assert (first.id, str(first.severity), str(first.confidence), first.conn, first.from_client) == (
        "nagle-delayed-ack",
        "high",
        "proved",
        0,
        True,
    )
    assert first.cost_ns == found.accounts.collect()["client_nagle_delayed_ack_ns"][0]
    assert "Would be disproved by" in first.limits
    intervals = found.ledger.collect()
    ends = set(intervals.filter(pl.col("cause") == "nagle-delayed-ack")["frame_after"])
    assert ends & set(first.evidence_frames)


def test_a_handshake_that_nobody_answers_is_reported_as_that(tmp_path: Path) -> None:
    text = "0.0 C > S S 0:0(0) win 64240 <mss 1460>\n1.0 C > S S 0:0(0) win 64240 <mss 1460>\n3.0 C > S S 0:0(0) win 64240 <mss 1460>"
    found = judged_text(tmp_path, text)
    (reported,) = advised(found).findings
    assert (reported.id, reported.title, reported.cost_ns) == (
        "handshake-slow",
        "A connection attempt was not answered for 3 s",
        3_000 * MS,
    )
    assert "retransmitted it twice, and no answer came" in reported.mechanism


def test_many_short_waits_have_frames_that_prove_them(tmp_path: Path) -> None:
    """The connection lasts 122 s. Nearly all of it are 2,000 delays of 60 ms, one before every second write."""
    rounds = "\n".join(
        f"+1ms C > S P. {200 * n + 1}:{200 * n + 101} ack 1\n+60ms S > C . ack {200 * n + 101}\n"
        f"+0.1ms C > S P. {200 * n + 101}:{200 * n + 201} ack 1\n+1ms S > C . ack {200 * n + 201}"
        for n in range(2000)
    )
    start = "0 C > S S 0:0(0) win 64240 <mss 1460>\n0.001 S > C S. 0:0(0) ack 1 win 65160 <mss 1460>\n0.001 C > S . ack 1 win 64240"
    found = judged_text(tmp_path, f"{start}\n{rounds}")
    reported = advised(found)
    first = reported.findings[0]
    assert (first.id, len(first.evidence_frames)) == ("nagle-delayed-ack", 3 * evidence.EVIDENCE_WAITS)
    assert all((frame - 4) % 4 in (0, 1, 2) for frame in first.evidence_frames), "the write before, the late ACK and the write that waited"
    own = reported.longest.filter(pl.col("cause") == "nagle-delayed-ack")
    ends = own.select("frame_before", "frame_after").iter_rows()
    assert all({before, before + 1, after} <= set(first.evidence_frames) for before, after in ends)


def test_a_slow_handshake_is_reported_once(tmp_path: Path) -> None:
    text = """
        0.000 C > S S  0:0(0)        win 64240 <mss 1460>
        1.000 C > S S  0:0(0)        win 64240 <mss 1460>
        1.020 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
        1.020 C > S .         ack 1
        1.050 C > S P. 1:101  ack 1
        1.070 S > C .         ack 101
        """
    found = judged_text(tmp_path, text)
    slow = [each for each in advised(found).findings if each.id == "handshake-slow"]
    assert [(each.conn, each.from_client, each.cost_ns) for each in slow] == [(0, True, 1_020 * MS)]


FIN_LOST = """
        0.040 C > S P. 1:101    ack 1
        0.060 S > C P. 1:51     ack 101
        0.070 C > S F. 101:101  ack 51
"""


def test_a_fin_that_is_sent_again_when_all_data_are_there_holds_nobody_up(tmp_path: Path) -> None:
    """The FIN sent at 0.070 s is lost. It is retransmitted at 0.370 s and 0.970 s, and answered at 0.990 s.

    So 0.92 s have the cause close, and neither direction has a timeout.
    """
    found = tables(
        tmp_path,
        FIN_LOST
        + """
        0.370 C > S F. 101:101  ack 51
        0.970 C > S F. 101:101  ack 51
        0.990 S > C F. 51:51    ack 102
        0.990 C > S .           ack 52
        """,
    )
    assert lasted(found, "close") == [pytest.approx(300 + 600 + 20)]
    assert "timeout" not in dict(causes(found)) | dict(causes(found, from_client=False))


def test_a_fin_that_the_other_side_waits_for_before_it_goes_on_was_held_up_by_its_timer(tmp_path: Path) -> None:
    """The lost FIN marks the end of a request, and the server waits for it. So the answer arrives one RTT after the second FIN."""
    found = tables(
        tmp_path,
        FIN_LOST
        + """
        0.370 C > S F. 101:101  ack 51
        0.390 S > C P. 51:1051  ack 102
        0.391 S > C F. 1051:1051 ack 102
        0.391 C > S .           ack 1052
        """,
    )
    assert lasted(found, "timeout") == [pytest.approx(300)]


def test_data_that_are_sent_again_with_their_fin_waited_for_the_timer(tmp_path: Path) -> None:
    found = tables(
        tmp_path,
        """
        0.040 C > S FP. 1:101    ack 1
        0.340 C > S FP. 1:101    ack 1
        0.360 S > C F. 1:1       ack 102
        0.360 C > S .            ack 2
        """,
    )
    assert lasted(found, "timeout") == [pytest.approx(300)]


def test_a_side_that_sends_no_data_is_not_limited_by_the_network(tmp_path: Path) -> None:
    """The server sends 100 bytes and closes.

    The client's ACKs and FIN are in transit for some time, but no data of the client waits for the network.
    """
    text = """
        0.000 C > S S  0:0(0)          win 64240 <mss 1460>
        0.100 S > C S. 0:0(0)   ack 1  win 65160 <mss 1460>
        0.100 C > S .           ack 1
        0.200 S > C P. 1:101    ack 1
        0.201 S > C F. 101:101  ack 1
        0.201 C > S .           ack 102
        0.202 C > S F. 1:1      ack 102
        0.302 S > C .           ack 2
    """
    found = judged_text(tmp_path, text)
    assert found.accounts.collect().item(0, "client_network_ns") > 0.3 * 302 * MS
    assert not [one for one in advised(found).findings if one.id == "network-limited"]


def dialogue(rounds: int) -> str:
    """Return a capture at the client, which asks questions of 100 bytes and ACKs the answers at once.

    The server answers each question with 500 bytes, 20 ms after the question.
    """
    lines = ["0.000 C > S S 0:0(0) win 64240 <mss 1460>", "0.020 S > C S. 0:0(0) ack 1 win 65160 <mss 1460>", "0.020 C > S . ack 1"]
    for n in range(rounds):
        at = 0.020 + 0.020 * n
        lines.append(f"{at:.4f} C > S P. {100 * n + 1}:{100 * n + 101} ack {500 * n + 1}")
        lines.append(f"{at + 0.020:.4f} S > C P. {500 * n + 1}:{500 * n + 501} ack {100 * n + 101}")
    end = 0.020 + 0.020 * rounds
    return "\n".join([*lines, f"{end:.4f} C > S . ack {500 * rounds + 1}"])


def test_the_longest_round_trip_is_never_shorter_than_the_shortest(tmp_path: Path) -> None:
    """The capture is made at the client, which ACKs at once.

    For the server, the RTT is still 20 ms, because it includes the path to the client and back.
    """
    found = judged_text(tmp_path, dialogue(15))
    reported = {one.from_client: one.mechanism for one in advised(found).findings if one.id == "network-limited"}
    assert reported[False].endswith("The RTT was at least 20 ms.")


def test_a_window_that_grew_later_is_reported_as_large_as_it_was_when_it_held(tmp_path: Path) -> None:
    """In each of ten RTTs of 20 ms, two segments fill the window of 2,920 bytes. The last ACK offers 64,240 bytes."""
    lines = ["0.000 C > S S 0:0(0) win 64240 <mss 1460>", "0.020 S > C S. 0:0(0) ack 1 win 2920 <mss 1460>", "0.020 C > S . ack 1"]
    for n in range(10):
        at, first = 0.021 + 0.020 * n, 2920 * n + 1
        lines += [f"{at:.4f} C > S . {first}:{first + 1460} ack 1", f"{at + 0.0001:.4f} C > S . {first + 1460}:{first + 2920} ack 1"]
        lines.append(f"{at + 0.0199:.4f} S > C . ack {first + 2920} win {2920 if n < 9 else 64240}")
    found = judged_text(tmp_path, "\n".join([*lines, "0.222 C > S P. 29201:30661 ack 1"]))
    (reported,) = [one for one in advised(found).findings if one.id == "receiver-window-limited"]
    assert reported.title.startswith("The receive window (2.92 kB during the waits, at most 64.2 kB overall) limited the sender for ")
