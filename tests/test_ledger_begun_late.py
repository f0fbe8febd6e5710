"""What the ledger says of a connection that had begun before its capture: no handshake tells how far its ends are.

A program writes 100 bytes each second, and the ACKs come 100 to 160 ms later. Nothing else is ever sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from judged import judged_text
from ledgers import NS_PER_MS, lasted

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
    """No router lies before the client, and some before the server: each second, one round trip of 100 ms, and then the program.

    What was in flight when the capture began was no handshake.
    """
    told = lasted(tmp_path, _once_a_second(64, _A_ROUTER_AWAY))
    assert told == {"network": pytest.approx(500), "application": pytest.approx(3600)}


@pytest.mark.parametrize("ttls", [(64, 64), (_A_ROUTER_AWAY, _A_ROUTER_AWAY), (_A_ROUTER_AWAY, 64)])
def test_where_nothing_tells_the_sender_far_from_its_program_late_the_cause_is_unknown(tmp_path: Path, ttls: tuple[int, int]) -> None:
    """It may be 840 ms away (the soonest echo), and each write have waited for the ACK before; only the last round trip is one for sure."""
    assert lasted(tmp_path, _once_a_second(*ttls)) == {"unknown": pytest.approx(4000), "network": pytest.approx(100)}


def test_times_to_live_tell_the_end_where_it_was_captured(tmp_path: Path) -> None:
    found = judged_text(tmp_path, _once_a_second(64, _A_ROUTER_AWAY))
    assert (found["vantage"], found["vantage_known_by"], found["to_client_ns"]) == ("client", "answers", 0)


def test_a_handshake_tells_more_than_times_to_live(tmp_path: Path) -> None:
    """A tunnel delays the client's way by 300 ms and passes packets on unchanged: what the handshake measured is true."""
    opened = """
        0.000 C > S S  0:0(0)        win 64240 <mss 1460, TS val 900 ecr 0>
        0.100 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, TS val 50 ecr 900> {ttl 57}
        0.400 C > S .         ack 1  win 64240 <TS val 940 ecr 50>
    """
    assert judged_text(tmp_path, opened)["to_client_ns"] == 300 * NS_PER_MS
