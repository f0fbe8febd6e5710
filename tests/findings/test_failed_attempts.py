"""Connection attempts that fail in the same way are one finding.

The finding on a slow handshake names the lost packet and its direction, or the slow host.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import analyze, verdict
from tcptrace_lab.causes import Confidence
from tcptrace_lab.findings.finding import Finding, Severity
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab import Analysis

S = 1_000_000_000
"""Nanoseconds in a second."""


def analyzed(tmp_path: Path, text: str) -> Analysis:
    return analyze(packets.capture(tmp_path / "attempts.pcap", text))


def slow(analysis: Analysis) -> list[Finding]:
    return [one for one in analysis.findings if one.id == "handshake-slow"]


def attempts(count: int, each: str, *, every_s: float, port: int = 80) -> str:
    """Return `count` connection attempts with the lines `each` (times relative to the attempt's start). Each attempt has its own port."""
    events = []
    hosts = "\n".join(f"host C{n} 10.0.0.1:{40000 + n}\nhost S{n} 10.0.0.2:{port} isn 7000" for n in range(count))
    for n in range(count):
        for line in each.strip().splitlines():
            at, rest = line.split(maxsplit=1)
            events.append((n * every_s + float(at), re.sub(r"^([CS]) > ([CS])", rf"\g<1>{n} > \g<2>{n}", rest)))
    return hosts + "\n" + "\n".join(f"{at:.4f} {rest}" for at, rest in sorted(events))


ASKED = """
    0 C > S S 0:0(0) win 64240 <mss 1460>
    1 C > S S 0:0(0) win 64240 <mss 1460>
    3 C > S S 0:0(0) win 64240 <mss 1460>
"""


def test_nine_attempts_that_nobody_answers_are_one_finding(tmp_path: Path) -> None:
    """Nine attempts last 3 s each, and one starts every 4 s. Together, they take 27 s of the 35 s from the first SYN to the last."""
    analysis = analyzed(tmp_path, attempts(9, ASKED, every_s=4))
    (reported,) = analysis.findings
    assert (reported.id, reported.title) == ("handshake-slow", "9 connection attempts to 10.0.0.2:80 were not answered, for 27 s")
    assert (reported.cost_ns, reported.severity) == (27 * S, Severity.HIGH)
    assert reported.cost_share == pytest.approx(27 / 35)
    assert (reported.conn, reported.from_client, reported.connections, reported.confidence) == (0, True, 9, Confidence.PROVED)
    assert "10.0.0.1 sent its SYN 27 times in 9 attempts, and no answer came" in reported.mechanism
    assert reported.evidence_frames == (1, 2, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 22, 24, 25, 27)
    assert verdict.sentence(analysis) == "9 connection attempts to 10.0.0.2:80 were not answered, for 27 s."


def test_attempts_at_the_same_time_cost_their_time_once(tmp_path: Path) -> None:
    """Six attempts start half a second apart. From 0 to 5.5 s, at least one attempt is in progress."""
    (reported,) = slow(analyzed(tmp_path, attempts(6, ASKED, every_s=0.5)))
    assert (reported.cost_ns, reported.cost_share, reported.connections) == (5_500_000_000, 1.0, 6)


def test_attempts_at_another_port_are_distinguished(tmp_path: Path) -> None:
    other = "\n".join(
        f"host X{n} 10.0.0.1:{50000 + n}\nhost Y{n} 10.0.0.2:443\n{20 + 4 * n} X{n} > Y{n} S 0:0(0)\n{21 + 4 * n} X{n} > Y{n} S 0:0(0)"
        for n in range(2)
    )
    text = attempts(3, ASKED, every_s=4) + "\n" + other
    reported = [(one.title, one.cost_ns) for one in slow(analyzed(tmp_path, text))]
    assert reported == [
        ("3 connection attempts to 10.0.0.2:80 were not answered, for 9 s", 9 * S),
        ("2 connection attempts to 10.0.0.2:443 were not answered, for 2 s", 2 * S),
    ]


def test_refused_attempts_are_one_finding_however_fast(tmp_path: Path) -> None:
    """The client makes five attempts, one per second. Each is refused after 20 ms, so they take 100 ms of 4.02 s."""
    text = attempts(5, "0 C > S S 0:0(0) win 64240\n0.02 S > C R. 0:0(0) ack 1 win 0", every_s=1)
    (reported,) = slow(analyzed(tmp_path, text))
    assert reported.title == "10.0.0.2:80 refused 5 connection attempts, for 100 ms"
    assert (reported.cost_ns, reported.severity) == (S // 10, Severity.LOW)
    assert reported.cost_share == pytest.approx(0.1 / 4.02)
    assert reported.evidence_frames == tuple(range(1, 11))


def test_one_connection_that_is_refused_at_once_is_no_finding(tmp_path: Path) -> None:
    text = attempts(1, "0 C > S S 0:0(0) win 64240\n0.02 S > C R. 0:0(0) ack 1 win 0", every_s=1)
    assert not slow(analyzed(tmp_path, text))


@pytest.mark.parametrize(("by", "severity", "who"), [("S", Severity.LOW, "the server"), ("C", Severity.INFO, "the client")])
def test_connections_reset_before_they_carry_data_are_one_finding(tmp_path: Path, by: str, severity: Severity, who: str) -> None:
    """An overloaded server resets connections before they carry data; the client of a health check does so on purpose."""
    ends = "0.05 S > C R 1:1(0)" if by == "S" else "0.05 C > S R 1:1(0)"
    each = f"0 C > S S 0:0(0) win 64240\n0.02 S > C S. 0:0(0) ack 1 win 64240\n0.021 C > S . ack 1\n{ends}"
    (reported,) = slow(analyzed(tmp_path, attempts(4, each, every_s=1)))
    assert reported.title == "4 connections to 10.0.0.2:80 were reset before they carried data"
    assert (reported.cost_ns, reported.severity) == (None, severity)
    assert f"{who} reset it" in reported.mechanism


def test_a_client_that_goes_on_was_answered_though_the_capture_lacks_it(tmp_path: Path) -> None:
    """The capture has only one direction. The client acknowledges a SYN-ACK that was not captured."""
    text = "0 C > S S 0:0(0) win 64240\n1 C > S S 0:0(0) win 64240\n1.02 C > S . 1:1(0) ack 1\n1.03 C > S P. 1:101 ack 1"
    assert not [one for one in analyzed(tmp_path, text).findings if "Nobody" in one.title]


DATA = """
    {0:.3f} C > S P. 1:101  ack 1
    {1:.3f} S > C .         ack 101
"""


def opened(text: str, at_s: float, round_trip_s: float) -> str:
    return text + DATA.format(at_s, at_s + round_trip_s)


RESENT_SYN = """
    0.000 C > S S  0:0(0)        win 64240 <mss 1460>
    1.000 C > S S  0:0(0)        win 64240 <mss 1460>
    3.000 C > S S  0:0(0)        win 64240 <mss 1460>
    3.020 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    3.020 C > S .         ack 1
"""
RESENT_ANSWER = """
    0.000 C > S S  0:0(0)        win 64240 <mss 1460>
    0.001 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    1.000 C > S S  0:0(0)        win 64240 <mss 1460>
    1.001 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    1.050 C > S .         ack 1
"""
LATE_SYN = """
    0.0000 C > S S  0:0(0)        win 64240 <mss 1460>
    {0:.4f} C > S S  0:0(0)        win 64240 <mss 1460>
    1.0403 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    1.0404 C > S P. 1:101  ack 1
    1.0661 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    1.0662 C > S .         ack 1
    1.1005 S > C .         ack 101
"""
LATE_ANSWER = """
    0.000 C > S S  0:0(0)        win 64240 <mss 1460>
    0.800 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    0.800 C > S .         ack 1
"""
IMPATIENT = """
    0.000 C > S S  0:0(0)        win 64240 <mss 1460>
    1.000 C > S S  0:0(0)        win 64240 <mss 1460>
    1.200 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    1.200 C > S .         ack 1
"""


@pytest.mark.parametrize(
    ("text", "title", "mechanism", "remedy", "cost_ms"),
    [
        (
            opened(RESENT_SYN, 3.03, 0.02),
            "Opening the connection took 3.02 s: the SYN was sent 3 times",
            "No answer arrived for 3 s, until the client retransmitted the SYN; the last SYN was answered after 20 ms.",
            "find what drops or delays the first SYN",
            3020,
        ),
        (
            opened(RESENT_ANSWER, 1.06, 0.001),
            "Opening the connection took 1 s: the SYN-ACK was sent twice",
            "the first SYN-ACK did not reach the client, or the client's ACK did not reach the server",
            "find what drops the SYN-ACK",
            1000,
        ),
        *(
            (
                LATE_SYN.format(again_s),
                "Opening the connection took 1.04 s: the SYN was sent twice",
                "until the client retransmitted the SYN",
                "find what drops or delays the first SYN",
                1040,
            )
            for again_s in (1.006, 1.024)
        ),
        (
            opened(LATE_ANSWER, 0.81, 0.02),
            "The server answered the SYN after 800 ms; the RTT is 20 ms",
            "No SYN was retransmitted, so none was lost",
            "find what answers late",
            800,
        ),
        (
            opened(LATE_ANSWER, 0.81, 0.79),
            "Opening the connection took 800 ms: one RTT of a long path",
            "the RTT of later data was similar",
            "reuse connections",
            800,
        ),
        (
            opened(IMPATIENT, 1.21, 1.19),
            "Opening the connection took 1.2 s: one RTT of a long path",
            "Nothing was lost",
            "reuse connections",
            1200,
        ),
        (
            LATE_ANSWER + "0.801 C > S P. 1:101 ack 1",
            "The answer to the SYN took 800 ms",
            "the answer to the only SYN arrived after 800 ms",
            "ping",
            800,
        ),
    ],
    ids=[
        "syn-lost",
        "answer-lost",
        "both-syns-answered",
        "first-syn-answered-too-soon-for-the-second",
        "far-host-slow",
        "path-long",
        "path-longer-than-the-timer",
        "nothing-to-compare",
    ],
)
def test_a_slow_handshake_says_what_was_slow(tmp_path: Path, text: str, title: str, mechanism: str, remedy: str, cost_ms: int) -> None:
    """The expected times are computed from the times in `text`. The RTT is measured on the data after the handshake."""
    (reported,) = slow(analyzed(tmp_path, text))
    assert reported.title == title
    assert mechanism in reported.mechanism
    assert remedy in reported.remedy[0]
    assert reported.cost_ns == pytest.approx(cost_ms * 1_000_000, abs=2_000_000)
    assert (reported.severity == Severity.INFO) == ("long path" in title), "the length of a path cannot be fixed"


IGNORED = """
    0.0000 C > S S  0:0(0)        win 64240 <mss 1460>
    1.0000 C > S S  0:0(0)        win 64240 <mss 1460>
    1.0001 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    1.0201 C > S .         ack 1
    1.0202 C > S P. 1:101  ack 1
    1.0203 S > C P. 1:101  ack 101
    1.0403 C > S .         ack 101
"""


@pytest.mark.parametrize("loopback", [False, True])
def test_a_server_that_ignores_a_syn_is_named_if_the_capture_was_made_there(tmp_path: Path, *, loopback: bool) -> None:
    """The server answers within 0.1 ms, the client within 20 ms: the capture was made at the server.

    On loopback, both hosts are at the capture point.
    """
    hosts = "host C 127.0.0.1:40000\nhost S 127.0.0.1:80\n" if loopback else ""
    (reported,) = slow(analyzed(tmp_path, hosts + IGNORED))
    assert reported.title == "Opening the connection took 1.02 s: the SYN was sent twice, and the server answered only the last one"
    assert "the server sent no answer for 1 s" in reported.mechanism
    assert "listen queues" in reported.remedy[0]


AT_THE_SERVER = """
    0.0000 C > S S  0:0(0)        win 64240 <mss 1460>
    0.0001 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    0.8001 C > S .         ack 1
    0.8002 C > S P. 1:101  ack 1
    0.8003 S > C .         ack 101
"""


@pytest.mark.parametrize(
    ("behind", "title", "mechanism"),
    [
        (
            "",
            "Opening the connection took 800 ms: the SYN-ACK was ACKed after 800 ms",
            "The server answered the SYN after 100 µs, and nothing was retransmitted",
        ),
        (
            "0.9 S > C P. 1:101 ack 101\n1.7 C > S . ack 101",
            "Opening the connection took 800 ms: one RTT of a long path",
            "the RTT of later data was similar",
        ),
    ],
    ids=["nothing-to-compare", "data-took-as-long"],
)
def test_at_the_server_a_late_first_ack_is_not_called_a_late_answer(tmp_path: Path, behind: str, title: str, mechanism: str) -> None:
    """The SYN-ACK (frame 2) is sent 0.1 ms after the SYN (frame 1), and is ACKed 800 ms later. Frame 4 has the client's data."""
    (reported,) = slow(analyzed(tmp_path, AT_THE_SERVER + behind))
    assert reported.title == title
    assert mechanism in reported.mechanism
    assert reported.severity == Severity.INFO, "neither a path nor a client can be fixed at the server"
    assert reported.evidence_frames == (1, 2, 4)


def test_a_program_that_speaks_long_after_the_handshake_is_not_taken_for_the_handshake(tmp_path: Path) -> None:
    """The SYN-ACK is sent 0.05 ms after the SYN.

    The ACK of the SYN-ACK is not captured, and the first data arrive 15.7 s later. No path has an RTT of 15.7 s.
    """
    text = """
        0.00000 C > S S  0:0(0)        win 65535 <mss 1460>
        0.00005 S > C S. 0:0(0) ack 1  win 64240 <mss 1460>
        15.7000 C > S P. 1:110 ack 1
        15.7001 S > C R  1:1(0)
    """
    analysis = analyzed(tmp_path, text)
    assert not slow(analysis)
    spent = analysis.accounts.collect()
    assert spent.item(0, "client_handshake_ns") == 50_000
    assert spent.item(0, "client_application_ns") == pytest.approx(15.7 * S, rel=0.001)
    assert analysis.to_dict()["connections"][0]["vantage"] == "unknown", "one late answer alone does not tell the place"
