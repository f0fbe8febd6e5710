"""If segments are too large for the path, they never arrive, however often they are sent. Smaller segments do arrive.

Packet loss hits segments of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import analyze, verdict
from tcptrace_lab.causes import Confidence
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab import Analysis
    from tcptrace_lab.findings.finding import Finding

OPENED = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1460>
    0.020 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460>
    0.020 C > S  .          ack 1  win 64240
    0.030 C > S  P.  1:201  ack 1
    0.050 S > C  .          ack 201
    0.060 C > S  .   201:1661   ack 1
    0.060 C > S  .   1661:3121  ack 1
"""
"""A handshake, a request of 200 bytes that arrives, and two full segments that do not arrive."""

BLACK_HOLE = (
    OPENED
    + """
    0.360 C > S  .   201:1661   ack 1
    0.500 S > C  .          ack 201
    0.960 C > S  .   201:1661   ack 1
    2.160 C > S  .   201:1661   ack 1
"""
)


def analyzed(tmp_path: Path, text: str) -> Analysis:
    return analyze(packets.capture(tmp_path / "path.pcap", text))


def timeouts(analysis: Analysis) -> Finding:
    (reported,) = [one for one in analysis.findings if one.id == "timeout"]
    return reported


def test_a_smaller_segment_that_gets_through_shows_a_path_mtu_black_hole(tmp_path: Path) -> None:
    """A segment of 1,460 bytes is sent four times; then the sender probes with 1,024 bytes (as Linux does).

    The probe is acknowledged 20 ms later, and the sender continues with this size. The sender waits 0.3, 0.6, 1.2 and 2.4 s for its
    retransmission timer.
    """
    analysis = analyzed(
        tmp_path,
        BLACK_HOLE
        + """
    4.560 C > S  .   201:1225   ack 1
    4.580 S > C  .          ack 1225
    4.581 C > S  .   1225:2249  ack 1
    4.601 S > C  .          ack 2249
    4.602 C > S  P.  2249:3121  ack 1
    4.622 S > C  .          ack 3121
    """,
    )
    reported = timeouts(analysis)
    assert (
        reported.title == "Retransmission timeouts (RTO) cost 4.5 s in 4 waits, the longest 2.4 s: segments of 1.46 kB do not pass the path"
    )
    assert (
        "The sender sent the same bytes 4 times in segments of 1.46 kB, and none of these segments was ACKed. "
        "Segments of up to 1.02 kB were ACKed" in reported.mechanism
    )
    assert reported.remedy[0].startswith("let ICMP through")
    assert reported.confidence == Confidence.CONSISTENT
    assert "segments that are too large for the path" in verdict.sentence(analysis)


def test_a_hole_that_nothing_gets_through_is_only_possibly_one_of_size(tmp_path: Path) -> None:
    reported = timeouts(analyzed(tmp_path, BLACK_HOLE))
    assert "segments of 1.46 kB do not pass the path" in reported.title
    assert reported.confidence == Confidence.POSSIBLE


def told_of_mtu(request_bytes: int, after: str = "") -> str:
    """Return a capture in which three full segments are lost.

    3 ms after the loss, before any timer expires, the lost bytes are sent in segments of 1,452 bytes and acknowledged.
    """
    start = 1 + request_bytes
    full = [f"0.060 C > S . {start + 1460 * n}:{start + 1460 * (n + 1)} ack 1" for n in range(3)]
    cut = [
        line
        for n in range(3)
        for line in (
            f"{0.063 + 0.03 * n:.3f} C > S . {start + 1452 * n}:{start + 1452 * (n + 1)} ack 1",
            f"{0.083 + 0.03 * n:.3f} S > C . ack {start + 1452 * (n + 1)}",
        )
    ]
    opened = OPENED.replace("1:201", f"1:{start}").replace("ack 201", f"ack {start}").split("    0.060")[0]
    return "\n".join([opened, *full, *cut, after.format(*(start + 1452 * 3 + 1460 * n for n in range(2)))])


@pytest.mark.parametrize(
    ("request_bytes", "after", "found"),
    [(200, "", True), (1460, "", False), (200, "0.200 C > S . {0}:{1} ack 1\n0.220 S > C . ack {1}", False)],
    ids=["no full segment gets through", "one did before", "one does afterwards"],
)
def test_a_sender_that_cuts_its_segments_smaller_has_learned_the_path_mtu(
    tmp_path: Path, request_bytes: int, after: str, *, found: bool
) -> None:
    """An ICMP message makes the sender use smaller segments at once. The capture need not contain the ICMP message."""
    analysis = analyzed(tmp_path, told_of_mtu(request_bytes, after))
    losses = [one for one in analysis.findings if one.id in {"loss", "timeout"}]
    assert losses
    assert any("segments of 1.46 kB do not pass the path" in one.title for one in losses) is found
    assert (
        any(
            "once in segments of 1.46 kB, and none of these segments was ACKed. Segments of up to 1.45 kB were" in one.mechanism
            for one in losses
        )
        is found
    )


def test_a_segment_that_gets_through_at_last_at_its_size_was_lost_by_chance(tmp_path: Path) -> None:
    reported = timeouts(analyzed(tmp_path, BLACK_HOLE + "2.180 S > C . ack 1661\n2.181 C > S . 1661:3121 ack 1\n2.201 S > C . ack 3121"))
    assert "do not get through" not in reported.title
    assert reported.confidence == Confidence.CONSISTENT


def test_full_segments_that_got_through_before_show_that_size_is_not_why(tmp_path: Path) -> None:
    text = BLACK_HOLE.replace("1:201  ack 1", "1:1461 ack 1")
    for old, new in (("201:1661", "1461:2921"), ("1661:3121", "2921:4381"), ("ack 201", "ack 1461")):
        text = text.replace(old, new)
    assert "do not get through" not in timeouts(analyzed(tmp_path, text)).title


def test_a_host_that_falls_silent_shows_nothing_of_sizes(tmp_path: Path) -> None:
    """Without the answer at 0.500 s, nothing more arrives from the server."""
    text = BLACK_HOLE.replace("    0.500 S > C  .          ack 201\n", "")
    assert "do not get through" not in timeouts(analyzed(tmp_path, text)).title
