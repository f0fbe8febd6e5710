"""ACKs, probes, and bytes that the capture lacks: exchanges written by hand. Each test names its RFC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.engine import column, read_text
from tests.support.verdicts import HANDSHAKE, figures, judged, verdicts

if TYPE_CHECKING:
    from pathlib import Path


def test_linux_probes_a_closed_window_without_data(tmp_path: Path) -> None:
    """Linux probes a zero window with an empty segment at SND.NXT - 1 (RFC 9293, 3.8.6.1; `tcp_xmit_probe_skb`)."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.02 C > S P. 1:1461 ack 1
        0.03 S > C .  ack 1461 win 0
        0.25 C > S .  1460:1460(0) ack 1
        0.26 S > C .  ack 1461 win 0
        0.70 C > S .  1460:1460(0) ack 1
        0.71 S > C .  ack 1461 win 300
        """,
    )
    assert verdicts(read, 6, 7, 8, 9) == [
        ("zero_window_probe", "window", 5, "proved"),
        ("zero_window_probe_ack", "window", 6, "proved"),
        ("zero_window_probe", "window", 7, "proved"),
        ("window_update", "window", 7, "proved"),
    ]
    assert figures(read, "server", "duplicate_acks", "window_updates") == (0, 1)


def test_a_probe_with_data_that_is_taken_is_answered_by_an_ack_of_it(tmp_path: Path) -> None:
    """The receiver of a probe can accept its byte and still keep the window closed (RFC 9293, 3.8.6.1)."""
    text = f"{HANDSHAKE}\n0.02 C > S P. 1:1461 ack 1\n0.03 S > C . ack 1461 win 0\n0.5 C > S . 1461:1462 ack 1\n0.51 S > C . ack 1462 win 0"
    assert judged(tmp_path, text, 6, 7) == [
        ("zero_window_probe", "window", 5, "proved"),
        ("zero_window_probe_ack", "window", 6, "proved"),
    ]


def test_a_keepalive_names_what_it_repeats_and_its_answer_names_it(tmp_path: Path) -> None:
    """A keepalive repeats a sequence number that was already acknowledged (RFC 9293, 3.8.4)."""
    text = f"""{HANDSHAKE}
        0.02 C > S P. 1:101 ack 1
        0.03 S > C . ack 101 win 509
        60.0 C > S . 100:100(0) ack 1
        60.1 S > C . ack 101 win 509
    """
    assert judged(tmp_path, text, 6, 7) == [("keepalive", "sequence", 5, "proved"), ("keepalive_ack", "sequence", 6, "proved")]


@pytest.mark.parametrize("payload_bytes", [0, 1])
def test_keepalives_of_a_side_that_has_sent_no_data(tmp_path: Path, payload_bytes: int) -> None:
    """RFC 9293, 3.8.4: a keepalive has SEG.SEQ = SND.NXT - 1, here the number of the SYN."""
    text = f"""{HANDSHAKE}
        0.02 S > C P. 1:101 ack 1
        0.03 C > S . ack 101
        60.0 C > S . 0:{payload_bytes}({payload_bytes}) ack 101
        60.1 S > C . 101:101(0) ack 1
    """
    assert judged(tmp_path, text, 6, 7) == [("keepalive", "sequence", 4, "proved"), ("keepalive_ack", "sequence", 6, "proved")]


@pytest.mark.parametrize("payload_bytes", [0, 1])
def test_keepalives_of_a_side_that_has_sent_no_data_since_the_capture_began(tmp_path: Path, payload_bytes: int) -> None:
    """The client's ACK carries SND.NXT, and its keepalive has SND.NXT - 1 (RFC 9293, 3.8.4)."""
    text = f"""
        0.00 S > C P. 5001:5101 ack 801
        0.01 C > S . 801:801(0) ack 5101
        10.0 C > S . 800:{800 + payload_bytes}({payload_bytes}) ack 5101
        10.1 S > C . 5101:5101(0) ack 801
    """
    assert judged(tmp_path, text, 3, 4) == [("keepalive", "sequence", 1, "proved"), ("keepalive_ack", "sequence", 3, "proved")]


def test_keepalives_of_an_idle_connection_miss_no_byte(tmp_path: Path) -> None:
    """The capture begins with an empty keepalive. Its sequence number is one below the peer's ACK number (RFC 9293, 3.8.4)."""
    text = """
        0.00 C > S . 800:800(0) ack 5001
        0.02 S > C . 5001:5001(0) ack 801
        75.0 C > S . 800:800(0) ack 5001
        75.1 S > C . 5001:5001(0) ack 801
    """
    assert judged(tmp_path, text, 3, 4) == [("keepalive", "sequence", 2, "proved"), ("keepalive_ack", "sequence", 3, "proved")]
    read = read_text(tmp_path, text)
    assert figures(read, "client", "keepalives", "not_captured_bytes", "not_captured_holes") == (1, 0, 0)


def test_the_keepalives_of_both_sides_carry_a_byte_where_a_capture_begins_with_them(tmp_path: Path) -> None:
    """Each keepalive of Windows repeats the last byte sent, without PSH (RFC 9293, 3.9.1.2, MUST-61).

    The server answers the client's second keepalive, and sends a keepalive 10 ms later.
    """
    text = """
        0.000 C > S . 800:801(1) ack 5001
        0.001 S > C . 5001:5001(0) ack 801
        30.00 C > S . 800:801(1) ack 5001
        30.01 S > C . 5001:5001(0) ack 801
        30.02 S > C . 5000:5001(1) ack 801
        30.03 C > S . 801:801(0) ack 5001
        40.00 C > S P. 801:901 ack 5001
    """
    assert judged(tmp_path, text, 1, 3, 5, 7) == [
        ("keepalive", "sequence", None, "consistent"),
        ("keepalive", "sequence", 2, "proved"),
        ("keepalive", "sequence", 3, "proved"),
        ("new", "sequence", None, "proved"),
    ]
    read = read_text(tmp_path, text)
    assert figures(read, "client", "keepalives", "unique_bytes", "not_captured_bytes", "retransmitted_segments") == (2, 100, 0, 0)
    assert figures(read, "server", "keepalives", "unique_bytes", "not_captured_bytes", "retransmitted_segments") == (1, 0, 0, 0)


def test_a_single_byte_that_is_pushed_is_data_where_a_capture_begins_with_it(tmp_path: Path) -> None:
    """The first byte has PSH, so it is data, such as a key that a user pressed."""
    text = """
        0.000 C > S P. 800:801(1) ack 5001
        0.001 S > C .  5001:5001(0) ack 801
        30.00 C > S . 800:801(1) ack 5001
    """
    assert judged(tmp_path, text, 1, 3) == [("new", "sequence", None, "proved"), ("keepalive", "sequence", 2, "proved")]


def test_a_single_byte_that_nobody_had_acknowledged_yet_is_data(tmp_path: Path) -> None:
    """The client sends one byte right after an ACK of the peer.

    Possibly, the byte is a window probe. It counts as new data, because no ACK had covered it before.
    """
    text = """
        0.000 S > C . 5001:5001(0) ack 800
        0.001 C > S . 800:801(1) ack 5001
        0.002 C > S P. 801:901 ack 5001
    """
    assert judged(tmp_path, text, 2, 3) == [("new", "sequence", None, "proved"), ("new", "sequence", None, "proved")]


def test_a_byte_that_is_acknowledged_behind_two_acks_was_not_captured(tmp_path: Path) -> None:
    """Twice, the client sends an ACK with sequence number 800.

    The second ACK acknowledges data that the peer sent in between, so neither ACK is a keepalive. Then the peer acknowledges byte 800,
    which no captured segment has.
    """
    text = """
        0.00 C > S . 800:800(0) ack 5001
        0.01 S > C P. 5001:5101 ack 800
        0.02 C > S . 800:800(0) ack 5101
        0.30 S > C . 5101:5101(0) ack 801
    """
    assert figures(read_text(tmp_path, text), "client", "not_captured_bytes", "not_captured_holes") == (1, 1)


def test_a_keepalive_repeats_a_byte_that_was_not_captured(tmp_path: Path) -> None:
    """The capture contains the ACK of the request, but not the request.

    The sender of the request sends a keepalive 45 s later (RFC 9293, 3.8.4).
    """
    text = f"""{HANDSHAKE}
        0.03 S > C P. 1:1001 ack 382
        0.04 C > S . 382:382(0) ack 1001
        45.0 C > S . 381:381(0) ack 1001
        45.1 S > C . 1001:1001(0) ack 382
    """
    assert judged(tmp_path, text, 6, 7) == [("keepalive", "sequence", 4, "consistent"), ("keepalive_ack", "sequence", 6, "proved")]


def test_an_ack_from_before_a_byte_that_was_not_captured_is_no_keepalive(tmp_path: Path) -> None:
    """A segment that was not captured overtook the ACK in the middle of an exchange.

    This ACK is no keepalive, because a keepalive would follow a silence.
    """
    text = f"""{HANDSHAKE}
        0.03 S > C P. 1:1001 ack 382
        0.04 C > S . 381:381(0) ack 1001
    """
    assert judged(tmp_path, text, 5)[0][0] == "ack"


def test_the_byte_before_the_capture_began_again_at_once_is_no_keepalive(tmp_path: Path) -> None:
    """The sender retransmits one byte because its ACK was lost after the capture point. A keepalive would follow a silence of seconds."""
    text = """
        0.00 S > C P. 5001:5002 ack 801
        0.01 C > S . 801:801(0) ack 5002
        0.22 C > S P. 800:801(1) ack 5002
    """
    assert judged(tmp_path, text, 3)[0][0] == "spurious"


def test_one_byte_again_at_once_is_a_resend_and_no_keepalive(tmp_path: Path) -> None:
    """The sender retransmits one byte because its ACK was lost after the capture point.

    A keepalive would follow a silence of seconds (RFC 9293, 3.8.4).
    """
    text = f"""{HANDSHAKE}
        0.02 C > S P. 1:11 ack 1
        0.03 S > C . ack 11
        0.04 C > S P. 11:12 ack 1
        0.05 S > C . ack 12
        0.28 C > S P. 11:12 ack 1
    """
    assert judged(tmp_path, text, 8) == [("spurious", "acknowledged", 7, "proved")]


def test_duplicate_acks_are_known_by_number_or_by_sack(tmp_path: Path) -> None:
    """A duplicate ACK repeats the last ACK number and window (RFC 5681, 2).

    With SACK, an ACK with new blocks is a duplicate ACK even if the window changes (RFC 6675, 2).
    """
    text = f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.0300 S > C . ack 1 win 509
        0.0301 S > C . ack 1 win 509
        0.0302 S > C . ack 1 win 600 <sack 1461:4381>
    """
    assert judged(tmp_path, text, 7, 8, 9) == [
        ("window_update", "window", 2, "proved"),
        ("duplicate_ack", "sequence", 7, "proved"),
        ("duplicate_ack", "sack", 8, "proved"),
    ]


def test_bytes_that_are_acknowledged_and_never_seen_were_not_captured(tmp_path: Path) -> None:
    """The receiver acknowledges bytes 1461:2921 and 4381:5841, but no captured segment has these bytes: the capture missed the segments."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.0300 S > C . ack 1461
        0.0301 S > C . ack 4381
        0.0310 S > C . ack 5841
        0.0400 C > S . 5841:7301 ack 1
        0.0500 S > C . ack 7301
        """,
    )
    assert column(read.segments, "acked_unseen_bytes", 6, 7, 8, 10) == [0, 1460, 1460, 0]
    names = ("not_captured_bytes", "not_captured_holes", "retransmitted_segments", "out_of_order_segments", "unique_bytes")
    assert figures(read, "client", *names) == (2920, 2, 0, 0, 4380)


def test_bytes_that_are_lost_are_resent_and_not_missing(tmp_path: Path) -> None:
    """The capture is made next to the receiver: it lacks the lost original, but has the retransmission."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.0203 S > C . ack 1461 <sack 2921:4381>
        0.0700 C > S . 1461:2921 ack 1
        0.0701 S > C . ack 4381
        """,
    )
    assert figures(read, "client", "not_captured_bytes", "not_captured_holes", "retransmitted_segments") == (0, 0, 1)
    assert column(read.segments, "acked_unseen_bytes", 8) == [0]


def test_data_captured_behind_its_ack_is_not_missing(tmp_path: Path) -> None:
    """A capture from several queues can record an ACK before the data that it acknowledges.

    The ACK's row counts the late bytes as unseen, but the connection's count of missing bytes does not include them.
    """
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0300 S > C . ack 2921
        0.0301 C > S . 1461:2921 ack 1
        0.0400 S > C . ack 2921 win 500
        """,
    )
    assert column(read.segments, "acked_unseen_bytes", 5, 7) == [1460, 0]
    assert figures(read, "client", "not_captured_bytes", "not_captured_holes", "unique_bytes") == (0, 0, 2920)


def test_of_a_direction_that_was_not_captured_nothing_is_said_to_be_missing(tmp_path: Path) -> None:
    """The capture contains only the ACKs of the receiver."""
    read = read_text(tmp_path, "0.01 S > C . 1:1(0) ack 1461\n0.02 S > C . 1:1(0) ack 2921\n0.03 S > C . 1:1(0) ack 2921")
    assert column(read.segments, "acked_unseen_bytes") == [None, None, None]
    assert read.connections["client_not_captured_bytes"].to_list() == read.connections["server_not_captured_bytes"].to_list() == [0]


def test_only_data_captured_a_silence_is_a_possible_timeout(tmp_path: Path) -> None:
    """Without ACKs, it is unknown which bytes the receiver has. The length of the silence fits a retransmission timeout (RFC 6298)."""
    text = "0.000 C > S . 1:1461 ack 1\n0.001 C > S . 1461:2921 ack 1\n0.300 C > S . 1:1461 ack 1"
    assert judged(tmp_path, text, 3) == [("rto_retransmit", "silence", 1, "possible")]


def test_a_capture_that_starts_in_mid_stream_takes_nothing_for_lost_that_came_before(tmp_path: Path) -> None:
    """The capture begins with ACKs of data sent before its start, and a segment from the middle of the flight."""
    read = read_text(
        tmp_path,
        """
        host A 10.0.0.1:40000 isn 77
        host B 10.0.0.2:80 isn 99
        0.000 B > A . 1:1(0) ack 100001
        0.001 A > B . 130001:131461 ack 1
        0.002 B > A . 1:1(0) ack 110001
        0.020 B > A . 1:1(0) ack 131461
        0.021 A > B . 131461:132921 ack 1
        """,
    )
    assert column(read.segments, "kind") == ["ack", "new", "ack", "ack", "new"]
    names = ("not_captured_bytes", "retransmitted_segments", "out_of_order_segments")
    side = "client" if read.connections["client_port"].item() == 40_000 else "server"
    assert figures(read, side, *names) == (0, 0, 0)
