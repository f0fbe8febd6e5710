"""A receiver that stops answering is distinguished from a path that loses packets: both cause timeouts, but the remedies differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcptrace_lab
from tcptrace_lab import verdict
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

TRANSFER = """
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460, sackOK>
    0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460, sackOK>
    0.020 C > S  .          ack 1  win 65535
    0.021 C > S  P. 1:501 ack 1
    0.041 S > C  .  ack 501 win 65535
    0.050 C > S  P. 501:1001 ack 1
    0.270 C > S  P. 501:1001 ack 1
    0.710 C > S  P. 501:1001 ack 1
    1.590 C > S  P. 501:1001 ack 1
"""
ANSWER = "1.610 S > C  .  ack 1001 win 65535\n"


@pytest.mark.parametrize(("answer", "stopped"), [("", True), (ANSWER, False)])
def test_only_a_receiver_that_never_answers_again_has_stopped_answering(tmp_path: Path, answer: str, *, stopped: bool) -> None:
    analysis = tcptrace_lab.analyze(packets.capture(tmp_path / "t.pcap", TRANSFER + answer))
    (found,) = (one for one in analysis.findings if one.id in {"timeout", "path-outage"})
    assert ("stopped answering" in found.title) is stopped
    said = verdict.sentence(analysis)
    assert ("which had stopped answering," in said) is stopped
    assert ("a path without packet loss" in said) is not (stopped or found.id == "path-outage")


def test_a_receiver_that_answers_in_between_has_only_lost_packets(tmp_path: Path) -> None:
    """Two losses, each repaired at once by its timer: the path loses packets, and the receiver answers to the end."""
    again = """
    2.000 C > S  P. 1001:1501 ack 1
    2.220 C > S  P. 1001:1501 ack 1
    2.240 S > C  .  ack 1501 win 65535
    """
    analysis = tcptrace_lab.analyze(packets.capture(tmp_path / "t.pcap", TRANSFER + ANSWER + again))
    assert not any("stopped answering" in one.title for one in analysis.findings)
