"""ECN: the congestion marks of routers and the senders' window reductions are counted and reported as a finding.

In a direction with many marks, the finding on pauses of the application has only the confidence "possible".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import analyze, verdict
from tcptrace_lab.causes import Confidence
from tests.support import needs, packets
from tests.support.peers import tshark

if TYPE_CHECKING:
    from pathlib import Path

ECN = """
    host C 10.0.0.1:40000 isn 1000
    host S 10.0.0.2:80 isn 5000
    0.000 C > S  SEW 0:0(0)        win 65535 <mss 1460, sackOK>
    0.040 S > C  SE. 0:0(0) ack 1  win 65535 <mss 1460, sackOK>
    0.040 C > S  .          ack 1  win 65535
    0.041 C > S  P.  1:101  ack 1
"""


def rounds(marked: int, count: int = 20) -> str:
    """Return a capture at the receiver: two segments arrive every 0.2 s.

    In the first `marked` rounds, the last segment has a congestion mark, and the next segment has the CWR flag.
    """
    lines = []
    for number in range(count):
        at_s, seq = 0.5 + number / 5, 1 + number * 2920
        reduced = "W" if 0 < number <= marked else ""
        lines += [
            f"{at_s:.3f} S > C {reduced}. {seq}:{seq + 1460} ack 101 {{ecn 2}}",
            f"{at_s + 0.001:.3f} S > C P. {seq + 1460}:{seq + 2920} ack 101 {{ecn {3 if number < marked else 2}}}",
            f"{at_s + 0.001:.3f} C > S {'E' if number < marked else ''}. ack {seq + 2920} win 65535",
        ]
    return "\n".join(lines)


def test_marks_and_reductions_are_counted_for_the_sender(tmp_path: Path) -> None:
    analysis = analyze(packets.capture(tmp_path / "x.pcap", ECN + rounds(4)))
    row = analysis.connections.collect().row(0, named=True)
    names = ("client_ce_segments", "client_cwr_segments", "server_ce_segments", "server_cwr_segments")
    assert [row[name] for name in names] == [0, 0, 4, 4]
    (found,) = (one for one in analysis.findings if one.id == "congestion-marks")
    assert found.title == "ECN: the path marked 4 packets, and the sender reduced its congestion window 4 times"
    assert (found.conn, found.from_client, found.confidence) == (0, False, Confidence.PROVED)
    assert found.evidence_frames == (6, 8, 9, 11, 12, 14, 15, 17)  # each marked segment, and the segment after it


def test_at_the_sender_only_the_reductions_show_the_marks(tmp_path: Path) -> None:
    (found,) = (
        one
        for one in analyze(packets.capture(tmp_path / "x.pcap", ECN + rounds(3).replace("ecn 3", "ecn 2"))).findings
        if one.id == "congestion-marks"
    )
    assert found.title == "ECN: the sender reduced its congestion window 3 times"
    assert "behind the capture point" in found.mechanism


ACCURATE = ECN.replace("SEW", "SEWe").replace("SE.", "SW.") + rounds(3).replace("ecn 3", "ecn 2")


SYN_ACK = "S. 0:0(0) ack 1  win 65535 <mss 1460, sackOK>"
ALL_SEGMENTS = ECN.replace(SYN_ACK.replace("S.", "SE."), SYN_ACK + " {ecn 3}") + rounds(0).replace("ecn 2", "ecn 3")
"""The server refused ECN. A router overwrites the ECN field of all packets of the server."""


@pytest.mark.parametrize("exchange", [ECN + rounds(2), ACCURATE, ALL_SEGMENTS], ids=["two marks", "accurate ECN", "all segments"])
def test_few_marks_and_bits_that_are_no_marks_are_no_finding(exchange: str, tmp_path: Path) -> None:
    """With accurate ECN (RFC 9768), the flags ECE and CWR are bits of a counter, not reports of single marks.

    A SYN cannot be marked.
    """
    assert not [one for one in analyze(packets.capture(tmp_path / "x.pcap", exchange)).findings if one.id == "congestion-marks"]


@pytest.mark.parametrize(("marked", "sure"), [(3, Confidence.CONSISTENT), (4, Confidence.POSSIBLE)])
def test_where_a_tenth_of_the_segments_is_marked_a_pause_is_only_possibly_the_applications(
    marked: int, sure: Confidence, tmp_path: Path
) -> None:
    """The transfer has 40 segments (20 rounds of two), so 4 marked segments are a tenth."""
    analysis = analyze(packets.capture(tmp_path / "x.pcap", ECN + rounds(marked)))
    (found,) = (one for one in analysis.findings if one.id == "application-limited" and not one.from_client)
    assert found.confidence == sure
    assert ("(ECN)" in found.limits) == (sure == Confidence.POSSIBLE)
    sentence = verdict.sentence(analysis)
    assert sentence.startswith("Possibly" if sure == Confidence.POSSIBLE else "Most likely")
    assert ("a queue that marks packets (ECN) looks the same" in sentence) == (sure == Confidence.POSSIBLE)


def test_two_marks_in_a_short_transfer_leave_the_pause_to_the_application(tmp_path: Path) -> None:
    """Two of 12 segments are marked, which is more than a tenth. But a single short queue can cause two marks."""
    found = analyze(packets.capture(tmp_path / "x.pcap", ECN + rounds(2, count=6))).findings
    (limited,) = (one for one in found if one.id == "application-limited" and not one.from_client)
    assert limited.confidence == Confidence.CONSISTENT


@needs.shared_captures
def test_a_real_path_has_the_marks_that_tshark_counts() -> None:
    path = needs.SHARED / "Zious11-wirerust__tcp-ecn-sample.pcap"
    frames = list(tshark.frames(path, ("ip.dsfield.ecn", "tcp.flags.cwr", "tcp.flags.syn")))
    marked = sum(one["ip.dsfield.ecn"] == "3" for one in frames)
    reduced = sum(one["tcp.flags.cwr"] == "1" and one["tcp.flags.syn"] == "0" for one in frames)
    titles = [one.title for one in analyze(path).findings]
    assert f"ECN: the path marked {marked} packets, and the sender reduced its congestion window {reduced} times" in titles
