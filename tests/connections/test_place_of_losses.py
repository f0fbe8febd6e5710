"""Losses are before or after the capture point, or on both sides of it. The exchanges are written by hand, so the place is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import verdict
from tcptrace_lab.analysis import analyze
from tcptrace_lab.connections import loss_before_capture
from tcptrace_lab.report.parts import connection_table
from tests.support import packets
from tests.support.ledgers import judged

if TYPE_CHECKING:
    from pathlib import Path

SACK = ", sackOK"


def opened(*, to_client_ms: int = 50, sack: str = SACK) -> str:
    """Return a handshake. The RTT from the capture point is 50 ms to the server and `to_client_ms` to the client."""
    return f"""
        0ms   C > S S  0:0(0)       win 65535 <mss 1000{sack}>
        50ms S > C S. 0:0(0) ack 1 win 65535 <mss 1000{sack}>
        {50 + to_client_ms}ms C > S .         ack 1 win 65535
        """


SEEN = """
    200ms  C > S P. 1:1001 ack 1
    1200ms C > S P. 1:1001 ack 1
    1250ms S > C .  ack 1001
    """
"""The original passed the capture point, and the retransmit was ACKed."""

UNSEEN = """
    2000ms C > S P. 2001:3001 ack 1
    2050ms S > C .  ack 1001
    3000ms C > S P. 1001:2001 ack 1
    3050ms S > C .  ack 3001
    """
"""The original of the retransmit of 1001:2001 is not in the capture, and the server did not ACK it."""

FIRST = """
    200ms  C > S P. 1:1001 ack 1
    250ms S > C .  ack 1001
    """

PLACES = {
    "after": (opened() + SEEN, loss_before_capture.AFTER),
    "before": (opened() + FIRST + UNSEEN, loss_before_capture.BEFORE),
    "both": (opened() + SEEN + UNSEEN, ""),
    "at the sender": (opened(to_client_ms=0) + SEEN, ""),
    "no losses": (opened() + FIRST, ""),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_originals_show_on_which_side_of_the_capture_point_segments_were_lost(tmp_path: Path, name: str) -> None:
    text, expected = PLACES[name]
    row = judged(packets.capture(tmp_path / "exchange.pcap", text)).connections.collect().row(0, named=True)
    assert loss_before_capture.place(row, "client") == expected


@pytest.mark.parametrize("name", ["after", "before"])
def test_the_headline_names_the_side(tmp_path: Path, name: str) -> None:
    text, expected = PLACES[name]
    sentence = verdict.of(analyze(packets.capture(tmp_path / "exchange.pcap", text))).sentence
    assert f"losses {expected})" in sentence


def test_without_the_acks_the_side_is_unknown(tmp_path: Path) -> None:
    text = "\n".join(line for line in (opened() + SEEN).splitlines() if "S > C" not in line)
    row = judged(packets.capture(tmp_path / "exchange.pcap", text)).connections.collect().row(0, named=True)
    assert loss_before_capture.place(row, "client") == ""


@pytest.mark.parametrize("sack", [SACK, ""])
def test_losses_without_sack_say_so_and_name_it_as_a_remedy(tmp_path: Path, sack: str) -> None:
    path = packets.capture(tmp_path / "exchange.pcap", opened(sack=sack) + SEEN)
    (found,) = (one for one in analyze(path).findings if one.id == "timeout")
    row = judged(path).connections.collect().row(0, named=True)
    words = connection_table.direction_summary(row, "client")
    assert ("does not use SACK" in found.mechanism) is (not sack)
    assert any("enable SACK" in one for one in found.remedy) is (not sack)
    assert "its original in the capture" in words
    assert words.count("no SACK") == (not sack)
