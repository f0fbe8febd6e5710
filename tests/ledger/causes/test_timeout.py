"""A timer retransmits a single segment: the segment was lost, or the receiver delayed the ACK for longer than the timer.

Linux retransmits after at least 200 ms, but lwIP delays an ACK by up to 250 ms. Without SACK and timestamps, the retransmission seems to
have caused the ACK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import analyze
from tcptrace_lab.causes import Confidence
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.findings.finding import Finding


def requests(options: str, timer_ms: int) -> str:
    """Return three requests, each retransmitted by the timer.

    1 ms after the retransmission, the server's answer arrives and acknowledges the request.
    """
    lines = [
        f"0ms   C > S S  0:0(0)        win 64240 <mss 1460{options}>",
        f"1ms   S > C S. 0:0(0) ack 1  win 65535 <mss 1460{options}>",
        "1.1ms C > S .         ack 1  win 64240",
    ]
    at_ms, sent = 2, 1
    for answer in range(3):
        request = f"C > S P. {sent}:{sent + 100} ack {1 + 10 * answer}"
        lines += [f"{at_ms}ms {request}", f"{at_ms + timer_ms}ms {request}"]
        at_ms, sent = at_ms + timer_ms + 1, sent + 100
        lines.append(f"{at_ms}ms S > C P. {1 + 10 * answer}:{11 + 10 * answer} ack {sent} win 65535")
        at_ms += 1
    return "\n".join(lines)


def timeout(tmp_path: Path, text: str) -> Finding:
    (found,) = (one for one in analyze([packets.capture(tmp_path / "exchange.pcap", text)]).findings if one.id == "timeout")
    return found


def test_without_sack_and_timestamps_a_delayed_ack_looks_like_a_loss(tmp_path: Path) -> None:
    found = timeout(tmp_path, requests("", 201))
    assert found.cost_ns == pytest.approx(3 * 201_000_000, abs=3_000_000)
    assert found.confidence == Confidence.POSSIBLE
    assert "a timeout looks the same if the receiver only delays its ACK for longer than the RTO" in found.limits
    assert any("if nothing is lost" in one for one in found.remedy)


@pytest.mark.parametrize(("options", "timer_ms"), [(", sackOK", 300), ("", 1_500)], ids=["dsack-would-tell", "no-ack-is-delayed-so-long"])
def test_a_loss_is_more_than_possible_where_the_ack_cannot_have_been_delayed_unseen(tmp_path: Path, options: str, timer_ms: int) -> None:
    """The loss is not proved, because possibly, only the answer is late (docs/how-it-decides.md, 4.3)."""
    found = timeout(tmp_path, requests(options, timer_ms))
    assert found.confidence == Confidence.CONSISTENT
    assert "looks the same" not in found.limits
