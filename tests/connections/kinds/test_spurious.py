"""Spurious retransmissions, and late packets that look like retransmissions, in exchanges written by hand. Each test names its RFC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.engine import column, read_text
from tests.support.verdicts import AT_SERVER, HANDSHAKE, WITHOUT_SACK, figures, judged, verdicts

if TYPE_CHECKING:
    from pathlib import Path

STAMPED = """
    0.000 C > S S  0:0(0)        win 64240 <mss 1460, TS val 1000 ecr 0>
    0.010 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, TS val 7000 ecr 1000>
    0.011 C > S .         ack 1  win 64240 <TS val 1011 ecr 7000>
"""
"""Frames 1 to 3: a handshake without SACK. The timestamp clocks tick every millisecond."""


def test_a_dsack_proves_the_probe_before_it_needless(tmp_path: Path) -> None:
    """The first SACK block lies below the ACK, so it is a D-SACK (RFC 2883, 4.1). The sender probed only because the ACK was delayed."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0450 C > S . 1461:2921 ack 1
        0.0455 S > C . ack 2921 win 509
        0.0550 S > C . ack 2921 win 509 <sack 1461:2921>
        """,
    )
    assert verdicts(read, 6) == [("spurious", "dsack", 8, "proved")]
    assert column(read.segments, "retransmit_trigger", 6) == ["tail_probe"]
    assert column(read.segments, "dsack", 7, 8) == [False, True]
    assert figures(read, "client", "retransmitted_segments", "spurious_retransmissions") == (1, 1)


def test_a_dsack_inside_the_second_block(tmp_path: Path) -> None:
    """The first SACK block is a D-SACK because it lies within the second (RFC 2883, 4.2)."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.0430 C > S . 2921:4381 ack 1
        0.0530 S > C . ack 1 win 509 <sack 2921:4381 1461:4381>
        """,
    )
    assert verdicts(read, 7) == [("spurious", "dsack", 8, "proved")]
    assert column(read.segments, "dsack", 8) == [True]


def test_a_timestamp_echo_proves_a_timeout_needless(tmp_path: Path) -> None:
    """The ACK echoes the timestamp of the original (1020), not of the retransmission (1250). This is Eifel detection (RFC 3522, 3.2)."""
    read = read_text(
        tmp_path,
        f"""{STAMPED}
        0.020 C > S P. 1:1001 ack 1 <TS val 1020 ecr 7000>
        0.250 C > S P. 1:1001 ack 1 <TS val 1250 ecr 7000>
        0.268 S > C .  ack 1001 win 64000 <TS val 7260 ecr 1020>
        """,
    )
    assert verdicts(read, 5) == [("spurious", "timestamp", 6, "proved")]
    assert column(read.segments, "retransmit_trigger", 5) == ["timeout"]


def test_a_timestamp_echo_of_the_resend_leaves_it_needed(tmp_path: Path) -> None:
    """The ACK echoes the timestamp of the retransmission (RFC 3522, 3.2), although the clock wrapped in between (RFC 7323, 5.2)."""
    text = f"""{STAMPED}
        0.020 C > S P. 1:1001 ack 1 <TS val 4294967290 ecr 7000>
        0.250 C > S P. 1:1001 ack 1 <TS val 224 ecr 7000>
        0.268 S > C .  ack 1001 win 64000 <TS val 7260 ecr 224>
    """
    assert judged(tmp_path, text, 5) == [("rto_retransmit", "silence", 4, "proved")]


def test_an_echo_of_0_says_nothing_of_the_original(tmp_path: Path) -> None:
    """A host that has no timestamp to echo sends 0 (RFC 7323, 3.2). So this SYN-ACK does not show which of the two SYNs it answers."""
    read = read_text(
        tmp_path,
        """
        0.000 C > S S  0:0(0)        win 64240 <mss 1460, TS val 1000 ecr 0>
        1.000 C > S S  0:0(0)        win 64240 <mss 1460, TS val 2000 ecr 0>
        1.010 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, TS val 0 ecr 0>
        """,
    )
    assert column(read.segments, "kind", 2) == ["syn_retransmit"]
    assert figures(read, "client", "spurious_retransmissions") == (0,)


def test_an_ack_sooner_than_the_shortest_round_trip_was_let_go_by_the_original(tmp_path: Path) -> None:
    """The ACK arrives 2 ms after the retransmission, but the round trip is 10 ms.

    Without SACK and timestamps, only the early arrival shows that the ACK is for the original.
    """
    text = f"{WITHOUT_SACK}\n0.020 C > S P. 1:1001 ack 1\n0.245 C > S P. 1:1001 ack 1\n0.247 S > C . ack 1001 win 500"
    assert judged(tmp_path, text, 5) == [("spurious", "rtt", 6, "consistent")]
    text = text.replace("0.247", "0.256")
    assert judged(tmp_path, text, 5) == [("rto_retransmit", "silence", 4, "proved")]


def test_resent_after_its_ack_was_captured(tmp_path: Path) -> None:
    """The captured ACK was lost on the way to the sender, or was still in transit when the sender retransmitted."""
    read = read_text(tmp_path, f"{WITHOUT_SACK}\n0.02 C > S P. 1:1001 ack 1\n0.03 S > C . ack 1001 win 500\n0.25 C > S P. 1:1001 ack 1")
    assert verdicts(read, 6) == [("spurious", "acknowledged", 5, "proved")]
    assert column(read.segments, "retransmit_trigger", 6) == ["timeout"]
    assert figures(read, "client", "retransmitted_segments", "spurious_retransmissions", "unique_bytes") == (1, 1, 1000)


def test_resent_although_sack_had_reported_it(tmp_path: Path) -> None:
    """After a timeout, a sender is allowed to ignore what SACK reported earlier (RFC 2018, 5.1)."""
    text = f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0301 S > C . ack 1 win 509 <sack 1461:2921>
        0.2700 C > S . 1:1461    ack 1
        0.2701 C > S . 1461:2921 ack 1
    """
    assert judged(tmp_path, text, 7, 8) == [
        ("rto_retransmit", "silence", 4, "proved"),
        ("spurious", "sack", 6, "consistent"),
    ]


def test_next_to_the_receiver_an_older_timestamp_shows_a_late_packet(tmp_path: Path) -> None:
    """The timestamp is taken when the segment is sent (RFC 7323, 3.2). The segment arrives 40 ms (2 RTTs) late and is no retransmission."""
    text = f"""{AT_SERVER}
        0.100 C > S . 1:1461    ack 1 <TS val 100 ecr 1>
        0.102 C > S . 2921:4381 ack 1 <TS val 102 ecr 1>
        0.140 C > S . 1461:2921 ack 1 <TS val 101 ecr 1>
    """
    read = read_text(tmp_path, text)
    assert verdicts(read, 6) == [("out_of_order", "timestamp", 5, "proved")]
    assert figures(read, "client", "out_of_order_segments", "retransmitted_segments", "not_captured_bytes") == (1, 0, 0)


def test_next_to_the_receiver_a_newer_timestamp_shows_a_resend_of_what_was_lost_before(tmp_path: Path) -> None:
    text = f"""{AT_SERVER}
        0.100 C > S . 1:1461    ack 1 <TS val 100 ecr 1>
        0.101 C > S . 2921:4381 ack 1 <TS val 101 ecr 1>
        0.121 C > S . 1461:2921 ack 1 <TS val 121 ecr 1>
    """
    read = read_text(tmp_path, text)
    assert verdicts(read, 6) == [("retransmit", "timestamp", 5, "proved")]
    assert figures(read, "client", "retransmitted_segments", "retransmitted_bytes", "unique_bytes") == (1, 1460, 4380)
    assert column(read.segments, "transmission", 6) == [2]


def test_ip_identifications_show_where_timestamps_do_not(tmp_path: Path) -> None:
    """RFC 6864, 4.1 requires no order of IP identifications, but many hosts increment them by one per packet."""
    text = f"""{AT_SERVER}
        0.100 C > S . 1:1461    ack 1 {{id 100}}
        0.101 C > S . 2921:4381 ack 1 {{id 102}}
        0.131 C > S . 1461:2921 ack 1 {{id %d}}
    """
    assert judged(tmp_path, text % 101, 6) == [("out_of_order", "ip_id", 5, "consistent")]
    assert judged(tmp_path, text % 103, 6) == [("retransmit", "ip_id", 5, "consistent")]


@pytest.mark.parametrize(
    ("first", "third", "second", "kind", "evidence"),
    [
        ("<TS val 4294967294 ecr 1> {id 0}", "<TS val 1 ecr 1> {id 0}", "<TS val 4294967295 ecr 1> {id 0}", "out_of_order", "timestamp"),
        ("<TS val 4294967294 ecr 1> {id 0}", "<TS val 4294967295 ecr 1> {id 0}", "<TS val 30 ecr 1> {id 0}", "retransmit", "timestamp"),
        ("{id 65534}", "{id 1}", "{id 65535}", "out_of_order", "ip_id"),
        ("{id 65534}", "{id 65535}", "{id 1}", "retransmit", "ip_id"),
    ],
)
def test_timestamps_and_identifications_that_wrap_distinguish_late_from_resent(
    first: str, third: str, second: str, kind: str, evidence: str, tmp_path: Path
) -> None:
    """Timestamps are compared modulo 2^32 (RFC 7323, 5.2), IP identifications modulo 2^16 (RFC 791, 3.1)."""
    text = f"""{AT_SERVER}
        0.100 C > S . 1:1461    ack 1 {first}
        0.101 C > S . 2921:4381 ack 1 {third}
        0.131 C > S . 1461:2921 ack 1 {second}
    """
    assert judged(tmp_path, text, 6)[0][:3] == (kind, evidence, 5)


def test_sooner_than_the_sender_can_know_of_the_hole_it_is_late(tmp_path: Path) -> None:
    """The packets are IPv6 without timestamps.

    A segment fills a hole 12 ms after the hole appeared. A retransmission would take at least 20 ms (an RTT).
    """
    hosts = "host A [2001:db8::1]:40000 isn 1\nhost B [2001:db8::2]:80 isn 9\n"
    text = f"""{hosts}{AT_SERVER.replace("C", "A").replace("S >", "B >").replace("> S", "> B")}
        0.100 A > B . 1:1461    ack 1
        0.101 A > B . 2921:4381 ack 1
        0.%d A > B . 1461:2921 ack 1
    """
    assert judged(tmp_path, text % 113, 6) == [("out_of_order", "rtt", 5, "consistent")]
    assert judged(tmp_path, text % 122, 6) == [("retransmit", "time", 5, "possible")]


def test_an_original_behind_its_resend_proves_that_needless(tmp_path: Path) -> None:
    """The capture is made next to the receiver.

    The path delays a segment by more than an RTT, and meanwhile the sender retransmits it. The original arrives after the retransmission.
    """
    read = read_text(
        tmp_path,
        f"""{AT_SERVER}
        0.100 C > S . 1:1461    ack 1 <TS val 100 ecr 1>
        0.101 C > S . 2921:4381 ack 1 <TS val 101 ecr 1>
        0.122 C > S . 1461:2921 ack 1 <TS val 121 ecr 1>
        0.150 C > S . 1461:2921 ack 1 <TS val 100 ecr 1>
        """,
    )
    assert verdicts(read, 6, 7) == [
        ("spurious", "timestamp", 7, "proved"),
        ("out_of_order", "timestamp", 6, "proved"),
    ]
    names = ("retransmitted_segments", "spurious_retransmissions", "out_of_order_segments", "unique_bytes")
    assert figures(read, "client", *names) == (1, 1, 1, 4380)


def test_numbers_wrap_in_the_middle_of_a_recovery(tmp_path: Path) -> None:
    """The ISN is 2,000 below 2^32, so sequence numbers wrap (RFC 9293, 3.4)."""
    text = """
        host A 10.0.0.1:40000 isn 4294965296
        host B 10.0.0.2:80 isn 4294967295
        0.000 A > B S  0:0(0)        win 64240 <mss 1460, sackOK>
        0.010 B > A S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK>
        0.011 A > B . ack 1
        0.020 A > B . 1:1461    ack 1
        0.021 A > B . 1461:2921 ack 1
        0.022 A > B . 2921:4381 ack 1
        0.023 A > B . 4381:5841 ack 1
        0.031 B > A . ack 1 <sack 1461:2921>
        0.032 B > A . ack 1 <sack 1461:4381>
        0.033 B > A . ack 1 <sack 1461:5841>
        0.034 A > B . 1:1461    ack 1
        0.044 B > A . ack 5841 <sack 1:1461>
    """
    read = read_text(tmp_path, text)
    assert verdicts(read, 11) == [("spurious", "dsack", 12, "proved")]
    assert figures(read, "client", "unique_bytes", "retransmitted_bytes", "not_captured_bytes") == (5840, 1460, 0)
