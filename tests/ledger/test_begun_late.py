"""The ledger of connections that opened before the capture began. No handshake shows the RTT between the capture point and the hosts.

An application writes 100 bytes each second, and the ACKs arrive 100 to 160 ms later. Nothing else is ever sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.judged import judged_text
from tests.support.ledgers import NS_PER_MS, lasted

if TYPE_CHECKING:
    from pathlib import Path

_A_ROUTER_AWAY = 57


def _once_a_second(client_ttl: int, server_ttl: int) -> str:
    here, there = f"{{ttl {client_ttl}}}", f"{{ttl {server_ttl}}}"
    return f"""
        0.000 C > S P. 1:101   ack 1 <TS val 1000 ecr 50>   {here}
        0.100 S > C .  ack 101       <TS val 60 ecr 1000>   {there}
        1.000 C > S P. 101:201 ack 1 <TS val 1100 ecr 60>   {here}
        1.150 S > C .  ack 201       <TS val 70 ecr 1100>   {there}
        2.000 C > S P. 201:301 ack 1 <TS val 1200 ecr 70>   {here}
        2.120 S > C .  ack 301       <TS val 80 ecr 1200>   {there}
        3.000 C > S P. 301:401 ack 1 <TS val 1300 ecr 80>   {here}
        3.160 S > C .  ack 401       <TS val 90 ecr 1300>   {there}
        4.000 C > S P. 401:501 ack 1 <TS val 1400 ecr 90>   {here}
        4.100 S > C .  ack 501       <TS val 100 ecr 1400>  {there}
    """


def test_a_program_that_writes_once_a_second_is_not_held_by_late_acks(tmp_path: Path) -> None:
    """The TTLs show no router between the capture point and the client, and some routers before the server.

    The last write takes 100 ms to arrive. No time has the cause handshake, because the connection was open when the capture began.
    """
    reported = lasted(tmp_path, _once_a_second(64, _A_ROUTER_AWAY))
    assert reported == {"network": pytest.approx(100), "application": pytest.approx(4000)}


@pytest.mark.parametrize("ttls", [(64, 64), (_A_ROUTER_AWAY, _A_ROUTER_AWAY), (_A_ROUTER_AWAY, 64)])
def test_where_nothing_shows_the_sender_far_from_its_program_late_the_cause_is_unknown(tmp_path: Path, ttls: tuple[int, int]) -> None:
    """The fastest echo of a timestamp took 840 ms, so the sender is possibly 840 ms away.

    Then each write possibly waited for an ACK. Only the last 100 ms have a known cause, the network.
    """
    assert lasted(tmp_path, _once_a_second(*ttls)) == {"unknown": pytest.approx(4000), "network": pytest.approx(100)}


def test_times_to_live_show_the_end_where_it_was_captured(tmp_path: Path) -> None:
    found = judged_text(tmp_path, _once_a_second(64, _A_ROUTER_AWAY))
    assert (found["vantage"], found["vantage_known_by"], found["rtt_to_client_ns"]) == ("client", "answers", 0)


def test_a_handshake_shows_more_than_times_to_live(tmp_path: Path) -> None:
    """A tunnel delays the client's packets by 300 ms, but does not change their TTL.

    Judged by the TTL, the client would be near. The handshake shows the true RTT.
    """
    opened = """
        0.000 C > S S  0:0(0)        win 64240 <mss 1460, TS val 900 ecr 0>
        0.100 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, TS val 50 ecr 900> {ttl 57}
        0.400 C > S .         ack 1  win 64240 <TS val 940 ecr 50>
    """
    assert judged_text(tmp_path, opened)["rtt_to_client_ns"] == 300 * NS_PER_MS


def test_a_flight_of_before_the_capture_is_no_recovery(tmp_path: Path) -> None:
    """The ACKs still cover data sent before the first captured byte, and nothing is retransmitted."""
    reported = lasted(
        tmp_path,
        """
        0.0000 C > S . 1:1461     ack 1
        0.0001 S > C . ack -28999
        0.0002 C > S . 1461:2921  ack 1
        0.0003 S > C . ack -27539
        0.0004 C > S . 2921:4381  ack 1
        0.0200 S > C . ack 1461
        0.0201 C > S . 4381:5841  ack 1
        0.0400 S > C . ack 5841
        """,
    )
    assert "loss-recovery" not in reported
    assert sum(reported.values()) == pytest.approx(40)


def test_small_writes_each_held_for_a_late_ack_are_held_by_nagles_rule_without_a_known_mss_too(tmp_path: Path) -> None:
    """A hundred bytes are less than the MSS of any current host.

    In each of four exchanges, the second write waits 43.6 ms for the ACK of the first.
    """
    said = "\n".join(
        f"""
        {at:.4f} C > S P. {first}:{first + 100} ack {answer}
        {at + 0.0436:.4f} S > C . ack {first + 100}
        {at + 0.0437:.4f} C > S P. {first + 100}:{first + 200} ack {answer}
        {at + 0.0438:.4f} S > C P. {answer}:{answer + 100} ack {first + 200}
        {at + 0.0438:.4f} C > S . ack {answer + 100}
        """
        for at, first, answer in ((0.05 * turn, 1 + 200 * turn, 1 + 100 * turn) for turn in range(4))
    )
    # All four waits count, because the previous small piece is in flight in each of them.
    assert lasted(tmp_path, said)["nagle-delayed-ack"] == pytest.approx(4 * 43.7, rel=0.01)


def test_what_held_a_sender_whose_window_is_not_known_is_unknown(tmp_path: Path) -> None:
    """The ACK of each flight of two segments releases the next one. A window of unknown scale or a send buffer limits the flights."""
    said = "\n".join(
        f"""
        {at:.4f} C > S . {first}:{first + 1460} ack 1 win 100
        {at:.4f} C > S . {first + 1460}:{first + 2920} ack 1
        {at + 0.02:.4f} S > C . ack {first + 2920} win 46
        """
        for at, first in ((0.0201 * turn, 1 + 2920 * turn) for turn in range(10))
    )
    # Nine waits of 20.1 ms are followed by the last RTT.
    assert lasted(tmp_path, said) == {"unknown": pytest.approx(9 * 20.1), "network": pytest.approx(20)}


def test_two_silent_sides_do_not_wait_for_each_other(tmp_path: Path) -> None:
    reported = lasted(tmp_path, "0.000 C > S . 1:1 ack 1\n5.000 S > C . ack 1")
    assert reported == {"unknown": pytest.approx(5000)}


@pytest.mark.parametrize(("written", "told_ms"), [(600, 245), (700, 0)])
def test_a_small_segment_forced_into_a_window_of_unknown_scale_waited_for_the_window(tmp_path: Path, written: int, told_ms: float) -> None:
    """A window field of 300 can mean 600 bytes (scale 1), but not 700.

    So a timer can have sent 600 bytes to fill the window, but not 700.
    """
    reported = lasted(
        tmp_path,
        f"""
        0.000 C > S .  1:1461           ack 1
        0.020 S > C .                   ack 1461 win 300
        0.245 C > S P. 1461:{1461 + written} ack 1
        0.265 S > C .                   ack {1461 + written} win 0
        """,
    )
    assert reported.get("receiver-window", 0) == pytest.approx(told_ms)


def test_a_closed_window_of_unknown_scale_that_has_opened_is_closed_no_more(tmp_path: Path) -> None:
    """Data are sent right after the window update, so the sender is near. The application closes 699 ms after the ACK of these data."""
    reported = lasted(
        tmp_path,
        """
        0.0000 C > S .  1:1461    ack 1
        0.0010 S > C .            ack 1461 win 0
        0.5000 S > C .            ack 1461 win 50
        0.5001 C > S .  1461:2921 ack 1
        0.5011 S > C .            ack 2921 win 50
        1.2001 C > S F. 2921:2921 ack 1
        1.2011 S > C .            ack 2922 win 50
        """,
    )
    assert "zero-window" not in reported
    assert reported["application"] == pytest.approx(699)


def test_a_side_that_was_silent_since_before_the_capture_waits_only_for_what_comes(tmp_path: Path) -> None:
    """Possibly, the client's FIN was sent before the capture, so nothing shows that the client waits for the server's FIN."""
    assert lasted(tmp_path, "0.000 S > C . 1:1461 ack 1\n0.010 C > S . ack 1461\n0.900 S > C F. 1461:1461 ack 1") == {
        "unknown": pytest.approx(900)
    }


def test_what_of_a_wait_for_an_answer_was_the_way_is_not_known_without_a_handshake(tmp_path: Path) -> None:
    """Each answer arrives with the ACK, 300 ms after the question. Either the path or the other application took this time."""
    reported = lasted(
        tmp_path,
        """
        0.0000 C > S P. 1:101   ack 1
        0.3000 S > C P. 1:101   ack 101
        0.3001 C > S P. 101:201 ack 101
        0.6001 S > C P. 101:201 ack 201
        0.6002 C > S F. 201:201 ack 201
        """,
    )
    assert "network" not in reported


def _begun_late(server_ends: str) -> str:
    return f"""
        0.000 S > C P. 1:101   ack 1
        0.001 C > S .  ack 101
        5.000 S > C {server_ends} ack 1
        5.001 C > S .  ack 202
    """


def test_a_side_that_is_silent_while_the_other_closes_may_have_closed_before_the_capture(tmp_path: Path) -> None:
    """The client acknowledges the server's FIN and sends none in the capture.

    Possibly, the client's FIN was sent before the capture, or after its end.
    """
    assert lasted(tmp_path, _begun_late("FP. 101:201")) == {"unknown": pytest.approx(5001)}
    assert lasted(tmp_path, _begun_late("P. 101:201"))["peer"] == pytest.approx(5000)


def test_a_fin_that_a_timer_sends_again_has_nothing_before_it_that_is_missing_though_no_ack_was_captured(tmp_path: Path) -> None:
    """A retransmission timer sends the oldest unacknowledged segment (RFC 6298, 5.4), so no data before the FIN are missing.

    The time between the FINs doubles.
    """
    fins = "\n".join(f"{at} C > S F. 1:1(0) ack 1 <TS val {1000 + int(1000 * at)} ecr 7>" for at in (0, 0.6, 1.8, 4.2, 9.0))
    assert lasted(tmp_path, fins) == {"close": pytest.approx(9000)}


def test_a_keepalive_at_the_captures_beginning_is_no_data_that_its_program_sent(tmp_path: Path) -> None:
    """Both hosts send keepalives of one byte without PSH (RFC 9293, 3.8.4); nothing shows what their applications wait for."""
    idle = """
        0.000 C > S . 800:801(1) ack 5001
        0.001 S > C . 5001:5001(0) ack 801
        30.00 C > S . 800:801(1) ack 5001
        30.01 S > C . 5001:5001(0) ack 801
        30.02 S > C . 5000:5001(1) ack 801
        30.03 C > S . 801:801(0) ack 5001
        40.00 S > C R. 5001:5001(0) ack 801
    """
    assert lasted(tmp_path, idle) == {"unknown": pytest.approx(40_000)}
