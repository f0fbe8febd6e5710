"""A finding whose own count is zero is not reported, because nothing happened."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import tcptrace_lab
from tests.support import needs, packets, verdicts
from tests.support.places import CAPTURES

sys.path.insert(0, str(CAPTURES))

import figures

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.findings.finding import Finding

OPENED = """
    0.0000 C > S S  0:0(0)        win 64240 <mss 1460, sackOK>
    0.0001 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK>
    0.0201 C > S .         ack 1  {id 100}
"""
"""A handshake, captured at the server."""


def losses(path: Path) -> list[Finding]:
    return [one for one in tcptrace_lab.analyze(path).findings if one.causes & {"loss-recovery", "timeout"}]


@pytest.mark.parametrize("path", needs.each(figures.captures(CAPTURES)))
def test_no_finding_counts_nothing(path: Path) -> None:
    assert verdicts.of_nothing(one.to_dict() for one in tcptrace_lab.analyze(path).findings) == []


def test_losses_before_the_capture_point_are_counted_by_what_the_sender_numbered(tmp_path: Path) -> None:
    """Twelve segments arrive, and the next one 400 ms later. IP IDs 113 to 115 are missing, and no captured segment is retransmitted."""
    lines = [
        f"{40 + n}ms C > S . {1 + 1460 * n}:{1461 + 1460 * n} ack 1 {{id {101 + n}}}\n+5us S > C . ack {1461 + 1460 * n}" for n in range(12)
    ]
    lines += ["451ms C > S . 17521:18981 ack 1 {id 116}\n+5us S > C . ack 18981"]
    lines += [
        f"{452 + n}ms C > S . {18981 + 1460 * n}:{20441 + 1460 * n} ack 1 {{id {117 + n}}}\n+5us S > C . ack {20441 + 1460 * n}"
        for n in range(30)
    ]
    (reported,) = losses(packets.capture(tmp_path / "x.pcap", OPENED + "\n".join(lines)))
    assert "its IP IDs skip 3 segments" in reported.mechanism


@pytest.mark.parametrize("answers", ["", "0.020 S > C S. 0:0(0) ack 1 win 65160 <mss 1460, sackOK>"])
def test_pauses_of_a_server_behind_a_syn_that_was_sent_again_are_no_losses(answers: str, tmp_path: Path) -> None:
    """The client repeats its SYN after 1 s. The server's application pauses 500 ms before each answer, and every byte is sent once."""
    lines = [f"+500ms S > C P. {1 + 1000 * n}:{1001 + 1000 * n} ack 101\n+20us C > S . ack {1001 + 1000 * n}" for n in range(4)]
    text = f"""
        0.000 C > S S 0:0(0) win 64240 <mss 1460, sackOK>
        {answers}
        1.000 C > S S 0:0(0) win 64240 <mss 1460, sackOK>
        1.020 S > C S. 0:0(0) ack 1 win 65160 <mss 1460, sackOK>
        1.020 C > S . ack 1
        1.021 C > S P. 1:101 ack 1
        1.041 S > C . ack 101
        """ + "\n".join(lines)
    assert losses(packets.capture(tmp_path / "x.pcap", text)) == []
