"""Returns the differences that `verify` finds in an exchange, and its explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.verify import verify
from tcptrace_lab.verify.differences import UNEXPLAINED
from tests.support import needs
from tests.support.packets import capture

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.verify.differences import Difference

HANDSHAKE = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    0.010 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    0.011 C > S  .          ack 1  win 502
"""
"""Frames 1 to 3 are a handshake. By tshark, the RTT is 11 ms."""


def differences(folder: Path, text: str) -> dict[str, list[Difference]]:
    """Map each explanation to its differences in the exchange `text`."""
    needs.tshark_4_0()
    done = verify(capture(folder / "exchange.pcap", text), ["tshark"])
    assert done.refused == {}
    assert done.account.differences.get(UNEXPLAINED, []) == []
    return done.account.differences


def reported(folder: Path, text: str, rule: str) -> dict[tuple[int | None, str], str]:
    """Map (frame, item) to the text of the explanation. Only explanations by `rule` are included."""
    return {(one.frame, one.item): one.words for one in differences(folder, text).get(rule, [])}
