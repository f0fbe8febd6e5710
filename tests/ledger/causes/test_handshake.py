"""The cause "handshake" in the server's direction: the time in which a connection opens.

The captures are made at the client, over a path with an RTT of 100 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted_of_server

if TYPE_CHECKING:
    from pathlib import Path

OPEN = """
0     C > S S  0:0(0)        win 64240 <mss 1460>
100ms S > C S. 0:0(0) ack 1  win 65535 <mss 1460>
100ms C > S .         ack 1  win 64240
"""


@pytest.mark.parametrize("asked_ms", [100, 130])
def test_a_server_that_answers_a_request_does_not_wait_twice_for_the_handshake(tmp_path: Path, asked_ms: int) -> None:
    """The handshake takes one RTT. The request and the answer take another one, which has the cause network."""
    answered_ms = asked_ms + 100 + 20
    reported = lasted_of_server(tmp_path, f"{OPEN}{asked_ms}ms C > S P. 1:101 ack 1\n{answered_ms}ms S > C P. 1:501 ack 101 win 65535\n")
    assert reported["handshake"] == pytest.approx(100, abs=0.1)
    assert reported["network"] == pytest.approx(100, abs=0.1)
    assert reported.get("peer", 0) == pytest.approx(asked_ms - 100, abs=0.1)
    assert reported["application"] == pytest.approx(20, abs=0.1)


def test_a_server_that_speaks_first_waits_for_the_ack_of_its_syn(tmp_path: Path) -> None:
    """The server can send its greeting only after the client's ACK. So two RTTs before the greeting have the cause handshake."""
    reported = lasted_of_server(tmp_path, f"{OPEN}220ms S > C P. 1:51 ack 1 win 65535\n220.1ms C > S . ack 51\n")
    assert reported["handshake"] == pytest.approx(200, abs=0.1)
    assert reported["application"] == pytest.approx(20, abs=0.1)
