"""The reason for each retransmission, in exchanges written by hand. Expected values follow from the RFC that each test names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.engine import column, read_text
from tests.support.verdicts import HANDSHAKE, WITHOUT_SACK, figures, judged, verdicts

if TYPE_CHECKING:
    from pathlib import Path

FLIGHT_OF_6 = """
    0.0200 C > S . 1:1461    ack 1
    0.0201 C > S . 1461:2921 ack 1
    0.0202 C > S . 2921:4381 ack 1
    0.0203 C > S . 4381:5841 ack 1
    0.0204 C > S . 5841:7301 ack 1
    0.0205 C > S . 7301:8761 ack 1
"""
"""Six full segments: frames 4 to 9."""


def test_the_third_duplicate_ack_brings_a_fast_retransmit_and_sack_the_rest_of_the_recovery(tmp_path: Path) -> None:
    """The first and the third segment are lost (RFC 6675, 5).

    Frame 14 is a partial ACK: it covers only some of the outstanding data (RFC 6582, 3.2, step 3).
    """
    text = f"""{HANDSHAKE}{FLIGHT_OF_6}
        0.0302 S > C . ack 1 win 509 <sack 1461:2921>
        0.0303 S > C . ack 1 win 509 <sack 4381:5841, sack 1461:2921>
        0.0304 S > C . ack 1 win 509 <sack 4381:7301, sack 1461:2921>
        0.0305 C > S . 1:1461    ack 1
        0.0405 S > C . ack 2921 win 509 <sack 4381:8761>
        0.0406 C > S . 2921:4381 ack 1
        0.0506 S > C . ack 8761 win 509
    """
    text = text.replace(", sack 1461", " 1461")
    read = read_text(tmp_path, text)
    assert verdicts(read, 10, 13, 14, 15, 16) == [
        ("duplicate_ack", "sack", 2, "proved"),
        ("fast_retransmit", "duplicate_acks", 12, "proved"),
        ("partial_ack", "sequence", 13, "proved"),
        ("recovery_retransmit", "sack", 14, "consistent"),
        ("ack", "sequence", None, "proved"),
    ]
    assert column(read.segments, "retransmit_trigger", 13, 15) == ["fast", "recovery"]
    assert column(read.segments, "transmission", 4, 13, 15) == [1, 2, 2]
    assert figures(read, "client", "retransmitted_segments", "spurious_retransmissions") == (2, 0)


def test_without_sack_a_partial_ack_brings_the_next_resend(tmp_path: Path) -> None:
    """A partial ACK triggers the next retransmission in NewReno (RFC 6582, 3.2, step 3)."""
    text = f"""{WITHOUT_SACK}{FLIGHT_OF_6}
        0.0302 S > C . ack 1 win 509
        0.0303 S > C . ack 1 win 509
        0.0304 S > C . ack 1 win 509
        0.0305 S > C . ack 1 win 509
        0.0305 C > S . 1:1461    ack 1
        0.0405 S > C . ack 2921 win 509
        0.0406 C > S . 2921:4381 ack 1
        0.0506 S > C . ack 8761 win 509
    """
    assert judged(tmp_path, text, 14, 15, 16) == [
        ("fast_retransmit", "duplicate_acks", 13, "proved"),
        ("partial_ack", "sequence", 14, "proved"),
        ("recovery_retransmit", "partial_ack", 15, "consistent"),
    ]


def test_early_retransmit_after_two_duplicate_acks_of_three_segments(tmp_path: Path) -> None:
    """With three segments outstanding, the sender receives at most two duplicate ACKs (RFC 5827, 3.1)."""
    text = f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.0301 S > C . ack 1 win 509 <sack 1461:2921>
        0.0302 S > C . ack 1 win 509 <sack 1461:4381>
        0.0303 C > S . 1:1461    ack 1
    """
    assert judged(tmp_path, text, 9) == [("fast_retransmit", "sack", 8, "consistent")]


def test_rack_resends_what_a_later_segment_overtook_by_a_quarter_round_trip(tmp_path: Path) -> None:
    """RACK waits for a quarter of an RTT (the reordering window) after the SACK of a later segment, then retransmits (RFC 8985, 6.2)."""
    text = f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0301 S > C . ack 1 win 509 <sack 1461:2921>
        0.0326 C > S . 1:1461    ack 1
    """
    assert judged(tmp_path, text, 7) == [("fast_retransmit", "sack", 6, "consistent")]


def test_a_probe_resends_the_last_segment_and_the_timeout_the_first(tmp_path: Path) -> None:
    """After the probe timeout (PTO = 2 SRTT = 20 ms), the probe repeats the last segment (RFC 8985, 7.2 and 7.3).

    A timeout retransmits the first (RFC 6298, 5.4).
    """
    text = f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.0430 C > S . 2921:4381 ack 1
        0.2650 C > S . 1:1461    ack 1
    """
    read = read_text(tmp_path, text)
    assert verdicts(read, 7, 8) == [
        ("tail_probe", "probe_time", 6, "proved"),
        ("rto_retransmit", "silence", 4, "proved"),
    ]
    assert column(read.segments, "released_by", 7, 8) == ["timer", "timer"]


def test_a_probe_for_a_single_segment_waits_for_its_delayed_ack(tmp_path: Path) -> None:
    """With one segment outstanding, the probe timeout is PTO = 2 SRTT + WCDelAckT = 20 + 200 ms (RFC 8985, 7.2).

    The second silence of the sender ends with a retransmission timeout.
    """
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:1001 ack 1\n0.244 C > S P. 1:1001 ack 1\n0.470 C > S P. 1:1001 ack 1"
    assert judged(tmp_path, text, 5, 6) == [
        ("tail_probe", "probe_time", 4, "consistent"),
        ("rto_retransmit", "silence", 5, "proved"),
    ]


def test_timeouts_double(tmp_path: Path) -> None:
    """The timer doubles (RFC 6298, 5.5): 220 ms, 440 ms, 880 ms. Without SACK, a sender sends no tail-loss probes (RFC 8985, 3.1)."""
    text = f"""{WITHOUT_SACK}
        0.020 C > S P. 1:1001 ack 1
        0.240 C > S P. 1:1001 ack 1
        0.680 C > S P. 1:1001 ack 1
        1.560 C > S P. 1:1001 ack 1
    """
    read = read_text(tmp_path, text)
    assert verdicts(read, 5, 6, 7) == [("rto_retransmit", "silence", frame, "proved") for frame in (4, 5, 6)]
    assert column(read.segments, "transmission", 4, 5, 6, 7) == [1, 2, 3, 4]


def test_a_resend_after_a_second_is_a_timeout_also_where_probes_are_possible(tmp_path: Path) -> None:
    """Older stacks use a minimum timeout of 1 s (RFC 6298, 2.4); a tail-loss probe would have been sent after 220 ms."""
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:1001 ack 1\n1.020 C > S P. 1:1001 ack 1"
    assert judged(tmp_path, text, 5) == [("rto_retransmit", "silence", 4, "proved")]


def test_after_a_timeout_acks_bring_the_rest(tmp_path: Path) -> None:
    """After a timeout, the sender retransmits from the first lost byte on (RFC 5681, 3.1 and 4.3)."""
    text = f"""{WITHOUT_SACK}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.2410 C > S . 1:1461    ack 1
        0.2510 S > C . ack 1461 win 509
        0.2511 C > S . 1461:2921 ack 1
        0.2512 C > S . 2921:4381 ack 1
    """
    read = read_text(tmp_path, text)
    assert column(read.segments, "kind", 7, 8, 9, 10) == ["rto_retransmit", "partial_ack", "recovery_retransmit", "recovery_retransmit"]
    assert column(read.segments, "evidence_frame", 9, 10) == [8, 8]


def test_a_timeout_is_no_verdict_sooner_than_any_timer(tmp_path: Path) -> None:
    """The retransmission after 120 ms (12 RTTs) has no known reason.

    No duplicate ACK arrived, probes need SACK, and all known timers run longer.
    """
    text = f"{WITHOUT_SACK}\n0.0200 C > S . 1:1461 ack 1\n0.0201 C > S . 1461:2921 ack 1\n0.1401 C > S . 1:1461 ack 1"
    read = read_text(tmp_path, text)
    assert verdicts(read, 6) == [("retransmit", "sequence", 4, "proved")]
    assert column(read.segments, "retransmit_trigger", 6) == ["unknown"]


def test_over_a_long_path_an_ack_that_comes_late_is_no_timeout(tmp_path: Path) -> None:
    """With an RTT of 600 ms, the third duplicate ACK arrives after 600 ms of silence, and the retransmission follows at once."""
    text = """
        0.000 C > S S  0:0(0)        win 64240 <mss 1460, sackOK>
        0.600 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK>
        0.601 C > S . 1:1461    ack 1
        0.602 C > S . 1461:2921 ack 1
        0.603 C > S . 2921:4381 ack 1
        0.604 C > S . 4381:5841 ack 1
        1.202 S > C . ack 1 <sack 1461:2921>
        1.203 S > C . ack 1 <sack 1461:4381>
        1.204 S > C . ack 1 <sack 1461:5841>
        1.2041 C > S . 1:1461   ack 1
    """
    assert judged(tmp_path, text, 10) == [("fast_retransmit", "duplicate_acks", 9, "proved")]


@pytest.mark.parametrize("waits_s", [(1, 3), (3, 9)])
def test_syn_and_syn_ack_sent_again(tmp_path: Path, waits_s: tuple[int, int]) -> None:
    """The first timeout of a SYN is 1 s, in older stacks 3 s (RFC 6298, 2.1 and 5.7)."""
    first, second = waits_s
    text = f"""
        0 C > S S 0:0(0) <mss 1460>
        {first} C > S S 0:0(0) <mss 1460>
        {second} C > S S 0:0(0) <mss 1460>
        {second}.01 S > C S. 0:0(0) ack 1 <mss 1460>
        {second + 1} S > C S. 0:0(0) ack 1 <mss 1460>
        {second + 1}.001 C > S . ack 1
    """
    read = read_text(tmp_path, text)
    assert verdicts(read, 1, 2, 3, 4, 5) == [
        ("new", "sequence", None, "proved"),
        ("syn_retransmit", "syn", 1, "proved"),
        ("syn_retransmit", "syn", 2, "proved"),
        ("new", "sequence", None, "proved"),
        ("syn_retransmit", "syn", 4, "proved"),
    ]
    assert figures(read, "client", "retransmitted_segments", "retransmitted_bytes") == (2, 0)
    assert column(read.segments, "transmission", 3) == [3]


def test_fin_sent_again_by_its_timer(tmp_path: Path) -> None:
    text = f"{WITHOUT_SACK}\n0.5 C > S F. 1:1(0) ack 1\n0.75 C > S F. 1:1(0) ack 1"
    assert judged(tmp_path, text, 5) == [("rto_retransmit", "silence", 4, "proved")]


def test_resent_although_the_other_side_has_reset_the_connection(tmp_path: Path) -> None:
    """The peer has sent a RST and has no connection any more (RFC 9293, 3.10.7.4). Possibly, the RST has not reached the sender."""
    text = f"{HANDSHAKE}\n0.02 C > S P. 1:101 ack 1\n0.03 S > C R. ack 101 win 0\n0.25 C > S P. 1:101 ack 1"
    assert judged(tmp_path, text, 6) == [("spurious", "acknowledged", 5, "proved")]
    text = f"{HANDSHAKE}\n0.02 C > S P. 1:101 ack 1\n0.03 S > C R 1:1(0) win 0\n0.25 C > S P. 1:101 ack 1"
    assert judged(tmp_path, text, 6) == [("retransmit", "reset", 5, "consistent")]


def test_reneging_a_receiver_gives_up_what_it_had_reported(tmp_path: Path) -> None:
    """SACK reported 1461:4381, but the next ACK has number 1461. So the receiver no longer has this block (RFC 2018, 8)."""
    text = f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.0301 S > C . ack 1 win 509 <sack 1461:2921>
        0.0302 S > C . ack 1 win 509 <sack 1461:4381>
        0.0303 C > S . 1:1461    ack 1
        0.0403 S > C . ack 1461 win 509
        0.0404 C > S . 1461:2921 ack 1
        0.0504 S > C . ack 2921 win 509
        0.0505 C > S . 2921:4381 ack 1
        0.0605 S > C . ack 4381 win 509
    """
    assert judged(tmp_path, text, 9, 11, 13) == [
        ("fast_retransmit", "sack", 8, "consistent"),
        ("recovery_retransmit", "reneging", 10, "consistent"),
        ("recovery_retransmit", "reneging", 10, "consistent"),
    ]
