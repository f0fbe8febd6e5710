"""Each test shows one known difference of tshark in an exchange, and the explanation of the difference with its numbers.

tshark itself analyzes each exchange. A test fails if tshark prints something other than the rule says, or if a difference is unexplained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.verify import verify
from tcptrace_lab.verify.differences import UNEXPLAINED
from tests.support import needs
from tests.support.packets import capture
from tests.support.peers import tshark
from tests.support.peers.explanations import HANDSHAKE, differences, reported

if TYPE_CHECKING:
    from pathlib import Path


FOUR_AND_A_HOLE = """
    0.0200 C > S . 1:1461    ack 1
    0.0201 C > S . 1461:2921 ack 1
    0.0202 C > S . 2921:4381 ack 1
    0.0203 C > S . 4381:5841 ack 1
    0.0300 S > C . ack 1461  win 509
"""
"""Frames 4 to 8 of an exchange. The second segment is lost behind the capture point."""


def test_plain_transfer_is_reported_alike(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:1461 ack 1\n0.030 S > C . ack 1461 win 500\n0.031 S > C P. 1:11 ack 1461\n0.032 C > S . ack 11"
    assert differences(tmp_path, text) == {}


def test_fast_retransmission_within_the_round_trip_is_late_to_tshark(tmp_path: Path) -> None:
    """Three duplicate ACKs cause a fast retransmit (RFC 5681, 3.2).

    tshark calls it out of order, because new data were sent only 0.1 ms earlier. tshark would call it fast if it counted two repeated ACKs.
    """
    text = f"""{HANDSHAKE}{FOUR_AND_A_HOLE}
        0.0301 S > C . ack 1461 win 509 <sack 2921:4381>
        0.0302 S > C . ack 1461 win 512 <sack 2921:5841>
        0.0303 S > C . ack 1461 win 515 <sack 2921:7301>
        0.0304 C > S . 5841:7301 ack 1
        0.0305 C > S . 1461:2921 ack 1
        """
    found = reported(tmp_path, text, "tshark-reorders-by-time")
    assert {(13, "retransmission"), (13, "out_of_order")} <= set(found)
    assert "100 µs after the highest sequence number" in found[13, "retransmission"]
    assert "11 ms" in found[13, "retransmission"]


def test_late_segment_after_the_round_trip_is_resent_to_tshark(tmp_path: Path) -> None:
    """Segment 1461:2921 arrives 40 ms after segment 2921:4381. The IP IDs show that it was sent earlier, so it is out of order.

    tshark calls it a retransmit, because 40 ms are longer than the handshake of 11 ms.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1 {{id 100}}
        0.021 C > S . 2921:4381 ack 1 {{id 102}}
        0.061 C > S . 1461:2921 ack 1 {{id 101}}
        """
    found = reported(tmp_path, text, "tshark-resends-by-time")
    assert set(found) == {(6, "out_of_order"), (6, "retransmission")}
    assert "40 ms after the highest sequence number" in found[6, "retransmission"]


def test_resend_below_the_last_ack_is_spurious_to_tshark(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:1461 ack 1\n0.030 S > C . ack 1461 win 500\n0.300 C > S P. 1:1461 ack 1"
    found = differences(tmp_path, text)
    verdicts = {one.item for rule in found.values() for one in rule if one.frame == 6 and one.theirs is True}
    assert verdicts <= {"spurious_retransmission"}, "we may prove it spurious, too"


def test_fast_retransmission_by_sack_is_a_plain_one_to_tshark(tmp_path: Path) -> None:
    """SACK blocks cover three segments after the hole, so the sender retransmits the lost segment (RFC 6675, 4).

    The windows of the ACKs differ, so tshark counts no repeated ACK.
    """
    text = f"""{HANDSHAKE}{FOUR_AND_A_HOLE}
        0.0301 S > C . ack 1461 win 510 <sack 2921:4381>
        0.0302 S > C . ack 1461 win 511 <sack 2921:5841>
        0.0303 C > S . 5841:7301 ack 1
        0.0401 S > C . ack 1461 win 512 <sack 2921:7301>
        0.0601 C > S . 1461:2921 ack 1
        """
    found = reported(tmp_path, text, "tshark-fast-needs-haste")
    assert set(found) == {(13, "fast_retransmission")}
    assert "tshark counts 0 repeated ACKs and requires 2; it ignores SACK blocks" in found[13, "fast_retransmission"]


def test_fast_retransmission_after_20_ms_is_a_plain_one_to_tshark(tmp_path: Path) -> None:
    text = f"""{HANDSHAKE}{FOUR_AND_A_HOLE}
        0.0301 S > C . ack 1461 win 509
        0.0302 S > C . ack 1461 win 509
        0.0303 S > C . ack 1461 win 509
        0.0513 C > S . 1461:2921 ack 1
        """
    found = reported(tmp_path, text, "tshark-fast-needs-haste")
    assert "21 ms before, and tshark calls a retransmission fast only less than 20 ms after" in found[12, "fast_retransmission"]


def test_a_second_repair_behind_repeated_acks_is_a_fast_one_to_tshark_only(tmp_path: Path) -> None:
    """The segments that begin at 1461 and 4381 are lost.

    Three repetitions of the partial ACK cause the retransmission of 4381 (RFC 5681). The partial ACK alone does not cause it.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1461     ack 1
        0.020 C > S . 2921:4381  ack 1
        0.020 C > S . 5841:7301  ack 1
        0.020 C > S . 7301:8761  ack 1
        0.020 C > S . 8761:10221 ack 1
        0.0301 S > C . ack 1461 win 509
        0.0302 S > C . ack 1461 win 509
        0.0303 S > C . ack 1461 win 509
        0.0304 S > C . ack 1461 win 509
        0.0305 S > C . ack 1461 win 509
        0.0306 C > S . 1461:2921 ack 1
        0.0306 C > S . 10221:11681 ack 1
        0.0306 C > S . 11681:13141 ack 1
        0.0306 C > S . 13141:14601 ack 1
        0.0406 S > C . ack 4381 win 509
        0.0407 S > C . ack 4381 win 509
        0.0408 S > C . ack 4381 win 509
        0.0409 S > C . ack 4381 win 509
        0.0410 C > S . 4381:5841 ack 1
        """
    found = reported(tmp_path, text, "ours-tells-repairs-apart")
    assert set(found) == {(22, "fast_retransmission")}
    assert "follows 3 repeated ACKs within 100 µs" in found[22, "fast_retransmission"]


def test_repeated_ack_with_sack_and_another_window_is_a_window_update_to_tshark(tmp_path: Path) -> None:
    """An ACK with a new SACK block is a duplicate ACK, even if its window differs (RFC 6675, 2)."""
    text = f"{HANDSHAKE}{FOUR_AND_A_HOLE}\n0.0301 S > C . ack 1461 win 515 <sack 2921:4381>"
    found = reported(tmp_path, text, "tshark-ignores-sack")
    assert set(found) == {(9, "duplicate_ack"), (9, "window_update")}
    assert "SACK block 2,921 to 4,381" in found[9, "duplicate_ack"]


def test_ack_repeated_with_nothing_outstanding_is_a_duplicate_to_tshark(tmp_path: Path) -> None:
    """A repeated ACK is a duplicate ACK only if data are outstanding (RFC 5681, 2, condition a)."""
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.030 S > C . ack 101 win 509\n0.031 S > C . ack 101 win 509"
    found = reported(tmp_path, text, "tshark-repeats-count-without-data")
    assert set(found) == {(6, "duplicate_ack")}
    assert "ACK 101" in found[6, "duplicate_ack"]


def test_repeated_ack_with_a_closed_window_is_no_duplicate_to_tshark(tmp_path: Path) -> None:
    text = f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0300 S > C . ack 1461 win 0
        0.0310 S > C . ack 1461 win 0
        """
    assert set(reported(tmp_path, text, "tshark-counts-no-duplicates-of-closed-windows")) == {(7, "duplicate_ack")}


def test_round_trip_of_a_resent_segment_is_measured_by_tshark(tmp_path: Path) -> None:
    """A segment is sent twice, and it is unknown which copy the ACK answers. By Karn's rule, the ACK gives no RTT sample.

    tshark measures the RTT from the first copy, 510 ms before the ACK.
    """
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:1461 ack 1\n0.520 C > S P. 1:1461 ack 1\n0.530 S > C .  ack 1461 win 500"
    found = reported(tmp_path, text, "tshark-ignores-karn")
    assert set(found) == {(6, "ack_rtt_ns")}
    assert "tshark measures 510 ms from frame 4, but frame 5" in found[6, "ack_rtt_ns"]


def test_round_trip_behind_a_late_segment_is_measured_by_tshark(tmp_path: Path) -> None:
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1 {{id 100}}
        0.021 C > S . 2921:4381 ack 1 {{id 102}}
        0.022 C > S . 1461:2921 ack 1 {{id 101}}
        0.031 S > C . ack 4381 win 500
        """
    found = reported(tmp_path, text, "tshark-ignores-late-segments")
    assert "tshark measures 10 ms from frame 5, but the later frame 6 (out of order)" in found[7, "ack_rtt_ns"]


def test_sacked_bytes_are_not_in_flight_to_tshark(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}{FOUR_AND_A_HOLE}\n0.0301 S > C . ack 1461 win 509 <sack 2921:4381>\n0.0303 C > S . 5841:7301 ack 1"
    found = reported(tmp_path, text, "tshark-takes-off-sacked-bytes")
    assert "SACK blocks cover 1,460 bytes of the 5,840 in flight" in found[10, "bytes_in_flight"]


def test_bytes_in_flight_stop_after_a_hole_to_tshark(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.020 C > S . 1:1461 ack 1\n0.021 C > S . 2921:4381 ack 1"
    assert set(reported(tmp_path, text, "tshark-stops-counting-after-a-hole")) == {(5, "bytes_in_flight")}


def test_bytes_in_flight_are_known_to_tshark_before_any_ack(tmp_path: Path) -> None:
    text = "0.000 C > S P. 1:101 ack 1 win 500\n0.001 C > S P. 101:201 ack 1"
    found = reported(tmp_path, text, "tshark-counts-without-ack")
    assert "tshark counts all 200 bytes" in found[2, "bytes_in_flight"]


def test_keepalives_of_a_connection_that_was_idle_before_are_repeated_acks_to_tshark(tmp_path: Path) -> None:
    text = """
        0.00 C > S . 800:800(0) ack 5001
        0.02 S > C . 5001:5001(0) ack 801
        75.0 C > S . 800:800(0) ack 5001
        75.1 S > C . 5001:5001(0) ack 801
    """
    assert set(reported(tmp_path, text, "tshark-sees-no-probe-of-unseen-bytes")) == {(3, "keep_alive"), (3, "duplicate_ack")}
    assert set(reported(tmp_path, text, "tshark-answers-what-it-saw")) == {(4, "keep_alive_ack"), (4, "duplicate_ack")}
    found = reported(tmp_path, text, "tshark-misses-first-keepalives")
    assert set(found) == {(2, "ack_lost_segment")}
    assert "this ACK 2 is one above its number" in found[2, "ack_lost_segment"]


def test_a_keepalive_with_a_byte_that_comes_first_is_data_to_tshark(tmp_path: Path) -> None:
    text = """
        0.00 C > S . 800:801(1) ack 5001
        0.02 S > C . 5001:5001(0) ack 801
        75.0 C > S . 800:801(1) ack 5001
        75.1 S > C . 5001:5001(0) ack 801
    """
    assert set(reported(tmp_path, text, "tshark-sees-no-keepalive-that-is-first")) == {(1, "keep_alive")}


def test_probe_of_a_closed_window_is_a_keepalive_to_tshark(tmp_path: Path) -> None:
    """Linux probes a zero window with an empty segment. Its sequence number is one below the next one (SND.NXT - 1).

    RFC 9293, 3.8.6.1, does not specify the form of a probe.
    """
    text = f"""{HANDSHAKE}
        0.02 C > S P. 1:1461 ack 1
        0.03 S > C .  ack 1461 win 0
        0.50 C > S .  1460:1460(0) ack 1
        0.51 S > C .  ack 1461 win 0
        """
    found = reported(tmp_path, text, "tshark-keepalive-is-a-place")
    assert set(found) >= {(6, "keep_alive"), (6, "zero_window_probe")}
    assert "the window is closed" in found[6, "keep_alive"]


def test_acks_of_unseen_bytes(tmp_path: Path) -> None:
    """The segments 1461:2921 and 4381:5841 are not in the capture.

    tshark follows the stream only up to the first hole.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1
        0.021 C > S . 2921:4381 ack 1
        0.031 S > C . ack 4381  win 500
        0.032 S > C . ack 5841  win 500
        """
    found = reported(tmp_path, text, "tshark-loses-count-behind-a-hole")
    assert (
        "this segment acknowledges 4,381; the capture has bytes of the peer up to 4,381, but without a gap only up to 1,461"
        in found[6, "ack_lost_segment"]
    )


def test_empty_segment_beyond_the_highest_number_is_a_hole_to_tshark(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.020 C > S . 1:1461 ack 1\n0.021 C > S . 2921:2921(0) ack 1"
    found = reported(tmp_path, text, "tshark-tells-holes-of-empty-segments")
    assert "its sequence number 2,921 is above 1,461" in found[5, "lost_segment"]


def test_windows_are_scaled_by_one_syn_to_tshark(tmp_path: Path) -> None:
    text = "0.00 C > S S 0:0(0) win 64240 <mss 1460, wscale 7>\n0.02 C > S . 1:1(0) ack 1 win 500\n0.03 C > S P. 1:11 ack 1 win 500"
    found = reported(tmp_path, text, "tshark-scales-by-one-syn")
    assert set(found) == {(2, "window_known"), (3, "window_known")}
    assert "1 of the two SYNs was captured before this segment; tshark multiplies the window by 128" in found[2, "window_known"]


def test_same_number_after_a_reset_is_the_old_stream_to_tshark(tmp_path: Path) -> None:
    """A RST refuses the first connection, and the second SYN opens a new one (RFC 9293, 3.10.7.4).

    By chance, both SYNs have equal sequence numbers.
    """
    text = "0.0 C > S S 0:0(0) win 500\n0.1 S > C R. 0:0(0) ack 1 win 0\n0.5 C > S S 0:0(0) win 500\n0.6 S > C R. 0:0(0) ack 1 win 0"
    found = reported(tmp_path, text, "tshark-joins-same-numbers")
    assert {(3, "conn"), (4, "conn"), (3, "reused_ports")} <= set(found)
    assert "which a reset had ended" in found[3, "conn"]


def test_cut_options_hide_tsharks_analysis(tmp_path: Path) -> None:
    """The headers have 66 bytes, but only 60 bytes are captured."""
    needs.tshark_4_0()
    text = """
        0.00 C > S P. 1:11  ack 1  win 9 <nop, nop, TS val 1 ecr 1>
        0.01 S > C .        ack 11 win 9 <nop, nop, TS val 1 ecr 1>
        0.02 C > S P. 11:21 ack 1  win 9 <nop, nop, TS val 2 ecr 1>
        """
    done = verify(capture(tmp_path / "cut.pcap", text, snaplen_bytes=60), ["tshark"])
    assert done.account.differences.get(UNEXPLAINED, []) == []
    found = {(one.frame, one.item) for one in done.account.differences["tshark-tells-no-cut-headers"]}
    assert {(2, "ack_rtt_ns"), (3, "bytes_in_flight")} <= found


TIMEOUT = f"""{HANDSHAKE}
    0.020 C > S . 1:1461    ack 1
    0.021 C > S . 1461:2921 ack 1
    0.031 S > C . ack 1461  win 509
    1.262 C > S . 1461:2921 ack 1
    1.272 S > C . ack 2921  win 509
"""
"""Frame 7 is sent 1,241 ms after frame 5, when the timer retransmits the second segment (RFC 6298)."""


def test_retransmission_timeout_is_reported_alike(tmp_path: Path) -> None:
    needs.tshark_4_0()
    done = verify(capture(tmp_path / "timeout.pcap", TIMEOUT), ["tshark"])
    items = {one.item for listed in done.account.differences.values() for one in listed}
    assert not items & {"rto_ns", "rto_frame"}
    row = tshark.opinion(tmp_path / "timeout.pcap").segments.row(6, named=True)
    assert (row["rto_ns"], row["rto_frame"]) == (1_241_000_000, 5)


def test_timeout_of_a_second_segment_is_counted_from_the_first_by_tshark(tmp_path: Path) -> None:
    """Two segments are lost. The timer retransmits the first one after 220 ms.

    The second segment is retransmitted during the recovery, and not by a timeout of its own.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1
        0.021 C > S . 1461:2921 ack 1
        0.241 C > S . 1:1461    ack 1
        0.251 S > C . ack 1461  win 509
        0.252 C > S . 1461:2921 ack 1
        0.262 S > C . ack 2921  win 509
        """
    found = reported(tmp_path, text, "tshark-times-all-resends")
    assert "tshark counts 231 ms from frame 5" in found[8, "rto_ns"]
    assert "retransmitted by recovery" in found[8, "rto_ns"]


def test_completeness_is_reported_alike_of_a_whole_connection(tmp_path: Path) -> None:
    """The connection is complete: it has SYN (1), SYN-ACK (2), ACK (4), data (8) and FIN (16).

    The completeness is the sum of these numbers.

    Both programs agree on all six compared values.
    """
    needs.tshark_4_0()
    text = f"""{HANDSHAKE}
        0.02 C > S P. 1:11  ack 1
        0.03 S > C .        ack 11
        0.04 C > S F. 11:11 ack 1
        0.05 S > C F. 1:1   ack 12
        0.06 C > S .        ack 2
        """
    done = verify(capture(tmp_path / "whole.pcap", text), ["tshark"])
    count = done.account.counts["tshark", "completeness"]
    assert (count.compared, count.equal) == (6, 6)
    assert tshark.opinion(tmp_path / "whole.pcap").segments["completeness"].to_list()[-1] == 1 + 2 + 4 + 8 + 16


def test_first_segment_of_a_stream_counts_for_tshark_only_if_it_is_a_syn(tmp_path: Path) -> None:
    found = reported(tmp_path, "0.0 C > S P. 1:101 ack 1 win 502\n0.1 S > C . ack 101 win 509", "tshark-counts-what-it-expects")
    assert "tshark does not count DATA" in found[2, "completeness"]


def test_ack_of_a_reset_opens_a_connection_to_tshark(tmp_path: Path) -> None:
    """A RST refuses a SYN, and a second RST follows.

    tshark takes the acknowledgment in the RST for the ACK of a SYN-ACK.
    """
    text = "0.0 C > S S 0:0(0) win 64240\n0.1 S > C R. 0:0(0) ack 1 win 0\n0.2 S > C R. 0:0(0) ack 1 win 0"
    found = reported(tmp_path, text, "tshark-counts-acks-of-resets")
    assert "tshark counts the ACK of a RST" in found[3, "completeness"]


def test_numbers_below_the_first_one_are_large_to_tshark(tmp_path: Path) -> None:
    """The FIN is captured before the data that precede it.

    tshark counts bytes from the FIN's number, so the data have negative numbers. Only the FIN itself then counts as in flight.
    """
    text = "0.000 S > C F. 1342:1342(0) ack 1\n0.001 S > C P. 1001:1342 ack 1"
    found = reported(tmp_path, text, "tshark-counts-from-the-first")
    assert "tshark numbers this direction from 0; lower bytes are in flight" in found[2, "bytes_in_flight"]


def test_a_syn_ack_in_mid_stream_moves_the_zero_of_tshark(tmp_path: Path) -> None:
    """The SYN-ACK is captured after other segments of its connection.

    From then on, tshark counts bytes from the SYN-ACK. tcptrace-lab continues to count from the first segment.
    """
    text = """
        0.000 S > C .  3001:4449 ack 137
        0.001 C > S .  137:137(0) ack 4449
        0.010 S > C S. 0:0(0) ack 1 win 14480 <mss 1460>
        0.011 C > S .  137:137(0) ack 4449
    """
    found = reported(tmp_path, text, "tshark-counts-from-late-syn-acks")
    assert {(3, "seq"), (4, "ack")} <= found.keys()
    assert all("frame 3 is a SYN-ACK after other segments of its side" in words for words in found.values())


def test_a_syn_again_makes_tshark_scale_what_the_syn_ack_refused(tmp_path: Path) -> None:
    """The SYN-ACK has no window scale, so no window is scaled (RFC 7323, 2.2)."""
    handshake = """
        {0}.000 C > S S  0:0(0)       win 65535 <mss 1460, wscale 5>
        {0}.010 S > C S. 0:0(0) ack 1 win 4380  <mss 1460>
        {0}.011 C > S .         ack 1 win 65535
    """
    found = reported(tmp_path, handshake.format(0) + handshake.format(3), "tshark-scales-anew")
    assert "the SYN was repeated in frame 4" in found[6, "window_bytes"]
    assert "multiplies by 32" in found[6, "window_bytes"]


def test_the_number_of_a_reset_is_sent_data_to_tshark(tmp_path: Path) -> None:
    """A RST overtakes data that were sent before it.

    In the capture, these data appear only after the RST.
    """
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:606 ack 1\n0.030 S > C R. 22:22(0) ack 606\n0.050 S > C P. 1:22 ack 606"
    found = reported(tmp_path, text, "tshark-counts-numbers-of-resets")
    assert "frame 5 is a RST with a higher sequence number" in found[6, "retransmission"]


def test_a_segment_seen_later_by_the_files_times_lets_the_ack_go(tmp_path: Path) -> None:
    """The timestamps are not in capture order. The ACK answers two segments.

    The segment that is captured last has the earlier timestamp.
    """
    text = f"""{HANDSHAKE}
        0.0205 C > S . 1:1461    ack 1
        0.0200 C > S . 1461:2921 ack 1
        0.0300 S > C . ack 2921 win 509
    """
    found = reported(tmp_path, text, "tshark-takes-times-in-order")
    assert "tshark measures 10 ms from frame 5, but the ACK also covers frame 4" in found[6, "ack_rtt_ns"]
    assert "500 µs later" in found[6, "ack_rtt_ns"]


def test_a_window_that_shuts_is_no_update_to_tshark(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.020 C > S . 1:1461 ack 1\n0.030 S > C . ack 1461 win 1\n0.040 S > C . ack 1461 win 0"
    found = reported(tmp_path, text, "tshark-tells-no-update-to-0")
    assert "this segment repeats ACK 1,461 with a zero window" in found[6, "window_update"]


def test_one_below_the_highest_with_the_other_side_not_captured_may_be_anything(tmp_path: Path) -> None:
    text = "0.000 C > S P. 1:101 ack 1 win 500\n30.000 C > S . 100:100(0) ack 1 win 500"
    found = reported(tmp_path, text, "tshark-keepalive-is-a-place")
    assert "the peer was not captured" in found[2, "keep_alive"]


def test_a_window_of_zero_has_an_edge_without_its_scale(tmp_path: Path) -> None:
    """No SYN was captured, so the window scale is unknown. A window of 0 is 0 at any scale.

    The retransmitted data end exactly at the edge of the window.
    """
    text = "0.000 S > C P. 1:1001 ack 1 win 500\n0.010 C > S . 1:1(0) ack 1001 win 0\n1.000 S > C P. 1:1001 ack 1 win 500"
    found = reported(tmp_path, text, "tshark-knows-no-edge-without-scale")
    assert "a zero window ends at its ACK 1,001 whatever the scale" in found[3, "window_full"]


def test_a_probe_below_what_was_sent_is_none_to_tshark(tmp_path: Path) -> None:
    """The receiver shrinks its window (RFC 9293, 3.8.6).

    The sequence number of the probe is one below the ACK, and 1,460 below the highest number that was sent.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S .  1:1461    ack 1
        0.021 C > S P. 1461:2921 ack 1
        0.030 S > C .  ack 1461 win 0
        0.500 C > S .  1460:1460(0) ack 1
        0.510 S > C .  ack 1461 win 0
    """
    found = reported(tmp_path, text, "tshark-probes-at-the-highest-number")
    assert "tshark expects a probe one below 2,921" in found[7, "zero_window_probe"]


def test_a_duplicate_ack_one_below_the_highest_is_a_keepalive_to_tshark(tmp_path: Path) -> None:
    """A damaged bit makes the sequence number of frame 6 too high by one. Frame 7 acknowledges the wrong number."""
    text = f"""{HANDSHAKE}
        0.020 S > C P. 1:1001    ack 1
        0.021 S > C P. 1001:2001 ack 1
        0.030 C > S .  2:2(0)    ack 1
        0.031 S > C P. 2001:3001 ack 2
        0.040 C > S .  1:1(0)    ack 1 <nop, nop, sack 2001:3001>
    """
    assert "because of what the peer sent" in reported(tmp_path, text, "tshark-keepalive-is-a-place")[8, "keep_alive"]


def test_data_of_a_reset_leaves_a_hole_to_us_only(tmp_path: Path) -> None:
    """The RST has 100 bytes of text about the reset, which are not data (RFC 9293, 3.10.7).

    For tcptrace-lab, these bytes are missing from the stream, so the data after the RST begin after a hole.
    """
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.021 C > S R. 101:201 ack 1\n0.022 C > S P. 201:301 ack 1"
    assert (
        "frame 5 is a RST with a higher sequence number" in reported(tmp_path, text, "tshark-sees-no-hole-behind-resets")[6, "lost_segment"]
    )


def test_a_clock_that_goes_back_more_than_a_round_trip_makes_none_late_to_tshark(tmp_path: Path) -> None:
    """The timestamps run backwards, so the handshake takes -10 ms. tshark reads this as a very long time.

    By its timestamp, the retransmit comes 20 ms before the segment with the highest sequence number. For tshark, -20 ms are a shorter time
    than -10 ms.
    """
    text = """
        0.100 C > S S  0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
        0.095 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
        0.090 C > S .         ack 1  win 502
        0.080 C > S P. 1:101    ack 1
        0.079 C > S P. 101:201  ack 1
        0.059 C > S P. 1:101    ack 1
        0.050 S > C .  ack 201  win 500
    """
    assert (6, "out_of_order") in reported(tmp_path, text, "tshark-reorders-by-time")


def test_an_ack_behind_a_reset_is_held_against_its_window_by_tshark(tmp_path: Path) -> None:
    """A RST does not change the window (RFC 9293, 3.10.7.4). So the ACKs before and after the RST have equal windows.

    tshark compares the second ACK with the window of the RST.
    """
    text = f"""{HANDSHAKE}
        0.015 S > C .  1:1(0) ack 1 win 509
        0.020 S > C R. 1:1(0) ack 1 win 0
        0.030 S > C .  1:1(0) ack 1 win 509
    """
    found = reported(tmp_path, text, "tshark-compares-with-resets")
    assert "the previous segment of this direction is a RST" in found[6, "window_update"]


def test_the_ack_of_a_reset_is_the_answer_to_tshark(tmp_path: Path) -> None:
    """A RST acknowledges more bytes than the capture has.

    tcptrace-lab takes its RTT sample from the ACK after the RST. For tshark, this ACK acknowledges nothing new.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S P. 1:101    ack 1
        0.030 S > C R. 1:1(0)   ack 201 win 0
        0.031 C > S P. 101:201  ack 1
        0.032 S > C .  1:1(0)   ack 101 win 509
    """
    found = reported(tmp_path, text, "tshark-takes-answers-of-resets")
    assert "an earlier RST acknowledged 201" in found[7, "ack_rtt_ns"]


def test_more_than_half_of_the_numbers_ahead_is_back_to_tshark(tmp_path: Path) -> None:
    """The capture misses nearly 2^31 bytes after byte 1,461. An ACK then acknowledges 2^29 bytes more.

    For tshark, a number that is higher by more than 2^31 is a lower one (RFC 9293, 3.4).
    """
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1461 ack 1
        0.040 C > S . {(1 << 31) - 100}:{1 << 31} ack 1
        0.060 S > C . ack {(1 << 31) + (1 << 29)} win 509
    """
    found = reported(tmp_path, text, "tshark-sees-no-more-than-half")
    assert "more than 2^31 bytes beyond 1,461" in found[6, "ack_lost_segment"]


def test_copies_of_an_ack_make_a_resend_fast_to_tshark(tmp_path: Path) -> None:
    """The capture has three copies of an ACK with one IP ID.

    tshark counts two of them as repeated ACKs. tcptrace-lab counts none.
    """
    text = f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1
        0.0300 S > C . 1:1(0)    ack 1461 win 509 {{id 7}}
        0.0300 S > C . 1:1(0)    ack 1461 win 509 {{id 7}}
        0.0300 S > C . 1:1(0)    ack 1461 win 509 {{id 7}}
        0.0301 C > S . 1461:2921 ack 1
        0.0401 C > S . 1461:2921 ack 1
    """
    found = reported(tmp_path, text, "tshark-counts-all-repeats")
    assert "tshark counts 2 repeated ACKs, of which tcptrace-lab counts 0 as duplicates" in found[9, "fast_retransmission"]
