"""The kind of each segment: new, retransmitted, out of order, duplicate ACK, probe, window update or reset.

The exchanges are written by hand. Expected values follow from the column meanings in `tcptrace_lab/schema` and the RFC that a test names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.schema import RESENT
from tests.support.engine import column, read_text

if TYPE_CHECKING:
    from pathlib import Path

HANDSHAKE = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    0.010 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    0.011 C > S  .          ack 1  win 502
"""
"""Frames 1 to 3: a handshake with an RTT of 10 ms, captured next to the client. Both sides shift their windows by 7."""


def kinds(folder: Path, text: str, *frames: int) -> list[str]:
    """Return the kinds of `frames` in an exchange that consists of the handshake and `text`."""
    return column(read_text(folder, HANDSHAKE + text).segments, "kind", *frames)


def test_plain_transfer_is_new_data_and_acks(tmp_path: Path) -> None:
    found = kinds(tmp_path, "0.020 C > S P. 1:1461 ack 1\n0.030 S > C . ack 1461 win 500\n0.031 S > C P. 1:11 ack 1461", 3, 4, 5, 6)
    assert found == ["ack", "new", "ack", "new"]


def test_segment_sent_again_after_a_silence_is_resent(tmp_path: Path) -> None:
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S P. 1:1461 ack 1
        0.520 C > S P. 1:1461 ack 1
        0.530 S > C .  ack 1461 win 500
        """,
    )
    assert column(read.segments, "kind", 4) == ["new"]
    assert column(read.segments, "kind", 5)[0] in RESENT
    connection = read.connections.row(0, named=True)
    assert (connection["client_retransmitted_segments"], connection["client_retransmitted_bytes"]) == (1, 1460)
    assert (connection["client_payload_bytes"], connection["client_unique_bytes"]) == (2920, 1460)


def test_segment_sent_again_after_three_duplicate_acks_is_resent(tmp_path: Path) -> None:
    """The first of five segments is lost behind the capture point, and three duplicate ACKs cause its retransmission (RFC 5681, 3.2)."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.0203 C > S . 4381:5841 ack 1
        0.0301 S > C . ack 1 win 509 <sack 1461:2921>
        0.0302 S > C . ack 1 win 509 <sack 1461:4381>
        0.0303 S > C . ack 1 win 509 <sack 1461:5841>
        0.0304 C > S . 1:1461 ack 1
        0.0404 S > C . ack 5841 win 509
        """,
    )
    assert column(read.segments, "kind", 8, 9, 10) == ["duplicate_ack"] * 3
    assert column(read.segments, "kind", 11)[0] in {"retransmit", "fast_retransmit"}
    assert column(read.segments, "sack_blocks", 8, 9, 10) == [[1461, 2921], [1461, 4381], [1461, 5841]]
    assert column(read.segments, "rtt_ns", 12) == [None], "Karn: 1:1461 was sent twice"
    assert read.connections["server_duplicate_acks"].to_list() == [3]


def test_syn_ack_and_fin_sent_again_are_resent(tmp_path: Path) -> None:
    read = read_text(
        tmp_path,
        """
        0.0 C > S S  0:0(0)
        0.1 S > C S. 0:0(0) ack 1
        1.1 S > C S. 0:0(0) ack 1
        1.2 C > S .  1:1(0) ack 1
        2.0 C > S F. 1:1(0) ack 1
        4.0 C > S F. 1:1(0) ack 1
        """,
    )
    found = column(read.segments, "kind")
    assert found[2] in RESENT
    assert found[5] in RESENT
    connection = read.connections.row(0, named=True)
    assert (connection["client_retransmitted_segments"], connection["server_retransmitted_segments"]) == (1, 1)
    assert (connection["client_fin_segments"], connection["client_retransmitted_bytes"]) == (2, 0)


def test_segments_that_change_places_are_out_of_order_and_not_resent(tmp_path: Path) -> None:
    """The IP identifications show the order in which the segments were sent. The segments arrive 50 µs apart; the RTT is 10 ms."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1 {{id 100}}
        +50us C > S . 2921:4381 ack 1 {{id 102}}
        +50us C > S . 1461:2921 ack 1 {{id 101}}
        +50us C > S . 4381:5841 ack 1 {{id 103}}
        """,
    )
    assert column(read.segments, "kind", 4, 5, 6, 7) == ["new", "new", "out_of_order", "new"]
    connection = read.connections.row(0, named=True)
    assert (connection["client_out_of_order_segments"], connection["client_retransmitted_segments"]) == (1, 0)
    assert connection["client_unique_bytes"] == 5840


def test_segment_that_brings_old_and_new_bytes_is_resent(tmp_path: Path) -> None:
    """The sender retransmits 1:1461 together with new bytes, as 1:2921 (RFC 9293 allows a sender to repacketize)."""
    read = read_text(tmp_path, f"{HANDSHAKE}\n0.02 C > S . 1:1461 ack 1\n0.52 C > S . 1:2921 ack 1")
    assert column(read.segments, "kind", 5)[0] in RESENT
    assert read.connections["client_unique_bytes"].to_list() == [2920]
    assert read.connections["client_payload_bytes"].to_list() == [4380]


def test_ack_repeated_while_nothing_is_outstanding_is_no_duplicate_ack(tmp_path: Path) -> None:
    """An ACK is a duplicate only if its receiver has outstanding data (RFC 5681, 2 (a))."""
    assert kinds(tmp_path, "0.020 S > C . ack 1 win 509\n0.021 S > C . ack 1 win 509", 4, 5)[1] != "duplicate_ack"


def test_ack_repeated_with_data_is_no_duplicate_ack(tmp_path: Path) -> None:
    """A duplicate ACK carries no data (RFC 5681, 2 (b))."""
    found = kinds(tmp_path, "0.020 C > S P. 1:1461 ack 1\n0.021 S > C P. 1:11 ack 1 win 509", 5)
    assert found == ["new"]


def test_ack_repeated_with_another_window_is_a_window_update(tmp_path: Path) -> None:
    """The advertised window of a duplicate ACK equals the window of the last ACK (RFC 5681, 2 (e))."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S P. 1:1461 ack 1
        0.030 S > C .  ack 1461 win 490
        0.040 C > S P. 1461:2921 ack 1
        0.045 S > C .  ack 1461 win 600
        """,
    )
    assert column(read.segments, "kind", 7) == ["window_update"]
    assert read.connections["server_window_updates"].to_list() == [1]


def test_keepalive_and_its_answer(tmp_path: Path) -> None:
    """RFC 9293, 3.8.4: a keepalive has SEG.SEQ = SND.NXT - 1, and no data or one garbage byte."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.02 C > S P. 1:101 ack 1
        0.03 S > C .  ack 101 win 509
        60.0 C > S .  100:100(0) ack 1
        60.1 S > C .  ack 101 win 509
        120s C > S .  100:101(1) ack 1
        """,
    )
    assert column(read.segments, "kind", 6, 7, 8) == ["keepalive", "keepalive_ack", "keepalive"]
    connection = read.connections.row(0, named=True)
    assert (connection["client_keepalives"], connection["client_retransmitted_segments"]) == (2, 0)


def test_zero_window_probes_and_the_update_that_opens_it(tmp_path: Path) -> None:
    """The sender probes a zero window repeatedly with one byte of new data (RFC 9293, 3.8.6.1)."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.02 C > S P. 1:1461 ack 1
        0.03 S > C .  ack 1461 win 0
        0.50 C > S .  1461:1462 ack 1
        0.51 S > C .  ack 1461 win 0
        1.50 C > S .  1461:1462 ack 1
        1.51 S > C .  ack 1461 win 0
        2.00 S > C .  ack 1461 win 500
        2.01 C > S .  1461:2921 ack 1
        """,
    )
    assert column(read.segments, "kind", 6, 8) == ["zero_window_probe"] * 2
    assert column(read.segments, "kind", 10) == ["window_update"]
    assert column(read.segments, "window_bytes", 5, 7, 9, 10) == [0, 0, 0, 500 << 7]
    connection = read.connections.row(0, named=True)
    assert (connection["client_zero_window_probes"], connection["server_zero_window_advertisements"]) == (2, 3)
    assert (connection["server_window_updates"], connection["server_min_window_bytes"]) == (1, 0)


def test_reset_is_a_reset_with_or_without_data(tmp_path: Path) -> None:
    read = read_text(tmp_path, f"{HANDSHAKE}\n0.02 C > S P. 1:101 ack 1\n0.03 S > C R. 1:1(0) ack 101 win 0\n0.04 S > C R 1:20 win 0")
    assert column(read.segments, "kind", 5, 6) == ["reset", "reset"]
    connection = read.connections.row(0, named=True)
    assert (connection["server_rst_segments"], connection["server_zero_window_advertisements"]) == (2, 0)
    assert connection["closed_by"] == "reset"
