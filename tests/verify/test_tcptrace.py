"""Each test shows one known difference of tcptrace in an exchange, and a rule that explains the difference with numbers.

tcptrace itself reads each exchange. A test fails if tcptrace prints something other than the rule says, or if a difference is unexplained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.verify import verify
from tcptrace_lab.verify.differences import UNEXPLAINED
from tests.support import needs
from tests.support.packets import capture

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.verify import Verification

HANDSHAKE = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    0.010 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    0.011 C > S  .          ack 1  win 502
"""

CLOSE = """
    9.000 C > S F. ack 1
    9.010 S > C F. ack 9000
"""


def held(folder: Path, text: str) -> Verification:
    """Compare our figures of the exchange `text` with those of tcptrace. Fail if a difference is unexplained."""
    needs.program("tcptrace")
    done = verify(capture(folder / "exchange.pcap", text), ["tcptrace"])
    assert done.refused == {}
    assert done.account.differences.get(UNEXPLAINED, []) == []
    return done


def reported(folder: Path, text: str, rule: str) -> dict[tuple[str, bool | None], tuple[object, object, str]]:
    """Return the differences that `rule` explains.

    The key is the figure and whether the client sent the direction. The value is our value, tcptrace's value, and the explanation.
    """
    listed = held(folder, text).account.differences.get(rule, [])
    return {(one.item, one.from_client): (one.ours, one.theirs, one.words) for one in listed}


def test_figures_that_mean_the_same_are_equal(tmp_path: Path) -> None:
    done = held(tmp_path, f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.030 S > C . ack 101 win 500")
    different = {item for (_, item), count in done.account.counts.items() if count.equal != count.compared}
    assert not different & {
        "total_packets",
        "actual_data_bytes",
        "unique_bytes_sent",
        "RTT_samples",
        "RTT_min",
        "RTT_max",
        "pure_acks_sent",
    }


def test_constant_identifications_are_hardware_duplicates_to_tcptrace(tmp_path: Path) -> None:
    """All IP IDs are 7, which RFC 6864, 4, allows for packets that are not fragmented.

    TCP timestamps show that the frames are retransmits, not copies made by the capture.
    """
    handshake = HANDSHAKE.replace("wscale 7", "wscale 7, TS val 1 ecr 0")
    text = f"""{handshake}
        0.020 C > S P. 1:101 ack 1 <nop, nop, TS val 20 ecr 1> {{id 7}}
        0.520 C > S P. 1:101 ack 1 <nop, nop, TS val 520 ecr 1> {{id 7}}
        0.530 S > C . ack 101 win 500
        """
    found = reported(tmp_path, text, "tcptrace-constant-ids")
    ours, theirs, words = found["hardware_dups", True]
    assert (ours, theirs) == (0, "1")
    assert "1 packet with the sequence number and IP ID of one of the last eight" in words


def test_a_packet_that_comes_again_and_again_is_remembered_once_by_tcptrace(tmp_path: Path) -> None:
    """The memory of tcptrace has room for eight packets. A packet that comes repeatedly takes the room of one.

    So seven other packets do not displace it.
    """
    others = "\n".join(f"0.03{at} C > S . ack 1 win {500 - at} {{id {20 + at}}}" for at in range(7))
    text = f"""{HANDSHAKE}
        0.020 C > S P. 1:101 ack 1 {{id 7}}
        0.021 C > S P. 1:101 ack 1 {{id 7}}
        0.022 C > S P. 1:101 ack 1 {{id 7}}
        0.023 C > S P. 1:101 ack 1 {{id 7}}
        {others}
        0.040 C > S P. 1:101 ack 1 {{id 7}}
    """
    found = reported(tmp_path, text, "tcptrace-constant-ids")
    assert found["hardware_dups", True][1] == "4"


def test_a_clock_that_goes_back_by_more_than_it_went_on_leaves_tcptrace_no_time(tmp_path: Path) -> None:
    """The client's timestamps run backwards from 2 s to 1.5 s, so tcptrace has no duration for a rate.

    tcptrace-lab divides by the time between the lowest and the highest timestamp. Its rate is 100 bytes in 1 s.
    """
    text = """
        2.000 C > S  S   0:0(0)        win 64240
        2.010 S > C  S.  0:0(0) ack 1  win 65160
        2.020 C > S  .          ack 1  win 502
        2.300 C > S  P.  1:101  ack 1  win 502
        1.300 S > C  .   ack 101       win 500
        1.500 C > S  F.  101:101(0) ack 1 win 502
    """
    found = reported(tmp_path, text, "tcptrace-shows-no-rate")
    assert found["throughput", True][:2] == (100.0, "NA")
    assert found["wavg_owin", True][1] == "NA"
    assert "the last packet is 500,000 µs before that of the first" in found["wavg_owin", True][2]


def test_what_is_outstanding_holds_for_no_time_where_the_clock_goes_back(tmp_path: Path) -> None:
    """101 bytes are outstanding while the clock runs back from 1 s to 0.5 s. tcptrace counts this as no time.

    From 0.5 s to 2 s, the 101 bytes count for 1.5 s. The mean is (1 · 1 + 101 · 1.5) / 4 bytes, truncated.
    """
    text = """
        0.000 C > S  S   0:0(0)        win 64240
        0.000 S > C  S.  0:0(0) ack 1  win 65160
        0.000 C > S  .          ack 1  win 502
        1.000 C > S  P.  1:101  ack 1  win 502
        1.001 S > C  .   ack 101       win 500
        0.500 C > S  P.  101:201 ack 1 win 502
        2.000 C > S  P.  201:301 ack 1 win 502
        4.000 S > C  .   ack 301       win 500
        """
    assert reported(tmp_path, text, "tcptrace-outstanding")["wavg_owin", True][1] == str(int((1 * 1 + 101 * 1.5) / 4))


def test_a_number_in_another_quarter_is_no_late_one_behind_it_to_tcptrace(tmp_path: Path) -> None:
    """A damaged bit makes the sequence number of frame 5 too high by 2^30.

    For tcptrace-lab, the data after frame 5 are therefore below the highest sequence number.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S P. 1:101   ack 1
        0.021 C > S P. {1 + (1 << 30)}:{101 + (1 << 30)} ack 1
        0.022 C > S P. 101:201 ack 1
        0.023 C > S P. 201:301 ack 1
        0.030 S > C .  ack 301 win 500
    """
    words = reported(tmp_path, text, "tcptrace-quarters")
    assert words
    assert all("the stream spans 2 quarters" in words for _, _, words in words.values())


def test_data_of_a_header_longer_than_its_packet_is_less_than_nothing_to_tcptrace(tmp_path: Path) -> None:
    """According to its length field, the TCP header has 40 bytes. The packet has only 20 bytes for it.

    For tcptrace, this segment has -20 bytes of data, so it is not a pure ACK.
    """
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.030 S > C . ack 101 win 500 {{doff 10}}\n0.031 S > C . ack 101 win 501"
    assert reported(tmp_path, text, "tcptrace-believes-headers")["pure_acks_sent", False][:2] == (2, "1")


def test_mean_size_is_a_byte_less_to_tcptrace(tmp_path: Path) -> None:
    """One segment carries 100 bytes, so the mean size is 100 bytes. tcptrace computes 100 / 1.001 and truncates the result."""
    found = reported(tmp_path, f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.030 S > C . ack 101 win 500", "tcptrace-mean-size")
    assert found["avg_segm_size", True][:2] == (100, "99")


def test_mss_above_32767_wraps_to_tcptrace(tmp_path: Path) -> None:
    """On loopback, Linux has an MSS of 65495 bytes. tcptrace prints 65495 - 65536 + 2^32 = 4294967255."""
    found = reported(tmp_path, HANDSHAKE.replace("1460", "65495"), "tcptrace-wraps-mss")
    assert found["mss_requested", True][:2] == (65495, "4294967255")


def test_late_segment_and_resent_one(tmp_path: Path) -> None:
    """A segment that fills a gap is out of order to tcptrace, even if it is a retransmit after 800 ms.

    Here, the original was lost before the capture point.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1001    ack 1 {{id 100}}
        0.021 C > S . 2001:3001 ack 1 {{id 102}}
        0.821 C > S . 1001:2001 ack 1 {{id 103}}
        0.831 S > C . ack 3001  win 500
        """
    found = reported(tmp_path, text, "tcptrace-resends")
    ours, theirs, words = found["outoforder_pkts", True]
    assert (ours, theirs) == (0, "1")
    assert "tcptrace counts 0 retransmitted segments, 1 out of order" in words


def test_full_size_of_a_syn(tmp_path: Path) -> None:
    """The SYN counts as a segment of 2^32 bytes in tcptrace.

    So no data segment counts as full-sized, and none gives an RTT sample of full-sized segments.
    """
    found = reported(tmp_path, f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.045 S > C . ack 101 win 500", "tcptrace-full-size")
    assert found["RTT_full_sz_max", True][1] == "10.0"
    assert "4,294,967,296 bytes" in found["RTT_full_sz_max", True][2]


def test_windows_without_handshake_are_taken_as_they_are(tmp_path: Path) -> None:
    found = reported(tmp_path, "0.0 C > S P. 1:101 ack 1 win 502\n0.1 S > C . ack 101 win 509", "tcptrace-takes-windows-as-they-are")
    assert found["max_win_adv", True][:2] == (None, "502")


def test_idle_time_goes_to_the_end_of_the_capture(tmp_path: Path) -> None:
    """The first connection is not closed. The capture continues for 5 s with another connection."""
    text = f"""{HANDSHAKE}
        host D 10.0.0.3:40000 isn 7000
        host T 10.0.0.2:80 isn 9000
        5.011 D > T S 0:0(0)
        """
    found = reported(tmp_path, text, "tcptrace-open-connections")
    ours, theirs, words = found["idletime_max", True]
    assert (ours, theirs) == (11.0, "5000.0")
    assert "5,000.0 ms after its last segment" in words


def test_segments_in_a_tunnel_of_tags_are_not_read(tmp_path: Path) -> None:
    done = held(tmp_path, "\n".join(f"{line} {{vlan 5/6/7}}" for line in HANDSHAKE.strip().splitlines()))
    assert [(one.item, one.ours, one.theirs) for one in done.account.differences["tcptrace-follows-no-tunnels"]] == [("connections", 1, 0)]


def test_probes_with_data_go_into_a_closed_window(tmp_path: Path) -> None:
    """Bytes are already in transit when the window closes. tcptrace counts them as window probes."""
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1001    ack 1
        0.030 S > C . ack 1001  win 0
        0.031 C > S . 1001:2001 ack 1
        0.041 S > C . ack 2001  win 500
        """
    found = reported(tmp_path, text, "tcptrace-probes")
    assert found["zwnd_probe_pkts", True][:2] == (0, "1")
    assert found["unique_bytes_sent", True][:2] == (2000, "1000")


def test_what_is_outstanding_is_a_byte_more_to_tcptrace(tmp_path: Path) -> None:
    """The client acknowledges the SYN-ACK and then sends 100 bytes. tcptrace counts 101 outstanding bytes.

    While only the pure ACK has been sent, tcptrace counts 1 outstanding byte, and tcptrace-lab counts none.
    """
    found = reported(tmp_path, f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.030 S > C . ack 101 win 500", "tcptrace-outstanding")
    assert found["max_owin", True][:2] == (100, "101")
    assert found["min_non-zero_owin", True][1] == "1"
    assert "2 samples" in found["max_owin", True][2]


def test_sample_of_what_is_outstanding_lasts_until_the_next(tmp_path: Path) -> None:
    """100 bytes are sent at 1 s and acknowledged at once. For tcptrace, 101 bytes stay outstanding until its next sample at 3 s.

    Before 1 s, tcptrace counts 1 outstanding byte. So the mean over 4 s is (1 · 1 + 101 · 2) / 4 bytes, truncated.
    """
    text = """
        0.000 C > S  S   0:0(0)        win 64240
        0.000 S > C  S.  0:0(0) ack 1  win 65160
        0.000 C > S  .          ack 1  win 502
        1.000 C > S  P.  1:101  ack 1  win 502
        1.001 S > C  .   ack 101       win 500
        3.000 C > S  P.  101:201 ack 1 win 502
        4.000 S > C  .   ack 201       win 500
        """
    assert reported(tmp_path, text, "tcptrace-outstanding")["wavg_owin", True][1] == str(int((1 * 1 + 101 * 2) / 4))


def test_repeated_acks_are_duplicates_to_tcptrace_with_nothing_outstanding(tmp_path: Path) -> None:
    """A repeated ACK is a duplicate ACK only if data are outstanding (RFC 5681, 2).

    tcptrace counts it in any case, and counts three in a row as one event. Data between the ACKs restart tcptrace's count.
    """
    quiet = "\n".join(f"0.04{digit} S > C . ack 101 win 500" for digit in range(3))
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.030 S > C . ack 101 win 500\n{quiet}"
    found = reported(tmp_path, text, "tcptrace-repeated-acks")
    assert found["duplicate_acks", True][:2] == (0, "3")
    assert found["triple_dupacks", True][:2] == (0, "1")
    parted = text.replace("0.041 S > C . ack 101 win 500", "0.041 S > C P. 1:11 ack 101 win 500")
    assert ("triple_dupacks", True) not in reported(tmp_path, parted, "tcptrace-repeated-acks")


def test_acks_of_a_side_that_sent_but_its_syn_are_no_duplicates_to_tcptrace(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.012 C > S . ack 1 win 502\n0.013 C > S . ack 1 win 502"
    found = held(tmp_path, text).account.counts
    assert found["tcptrace", "duplicate_acks"].equal == 2


def test_repeated_acks_of_unknown_windows_are_not_distinguished(tmp_path: Path) -> None:
    """No SYN was captured, so tcptrace-lab does not know the windows.

    tcptrace uses the unscaled windows of 500 and 501 from the headers. The window changes once, so tcptrace counts one of two repeated
    ACKs.
    """
    text = """
        0.000 C > S P. 1:101   ack 1   win 502
        0.010 S > C .  ack 101         win 500
        0.011 S > C .  ack 101         win 501
        0.012 S > C .  ack 101         win 501
        0.020 S > C P. 1:11    ack 101 win 501
        """
    ours, theirs, words = reported(tmp_path, text, "tcptrace-repeated-acks-as-they-are")["duplicate_acks", True]
    assert (ours, theirs) == (0, "1")
    assert "out of 2 without data" in words


def test_first_flight_is_counted_in_mid_stream_too(tmp_path: Path) -> None:
    found = reported(tmp_path, "0.0 C > S P. 1:101 ack 1 win 502\n0.1 S > C . ack 101 win 509", "tcptrace-first-flight")
    assert found["initial_window_bytes", True][:2] == (None, "100")
    assert "no SYN of this side was captured" in found["initial_window_bytes", True][2]


def test_stream_ends_at_the_last_segment_of_a_connection_with_a_reset(tmp_path: Path) -> None:
    """The FIN has the sequence number 101, and the RST has 102. tcptrace computes the length of the stream as 102 - 0 - 1 = 101 bytes."""
    text = f"""{HANDSHAKE}
        0.020 C > S P. 1:101   ack 1
        0.021 C > S F. 101:101 ack 1
        0.030 S > C .  ack 102 win 500
        0.040 C > S R. 102:102 ack 1
        """
    found = reported(tmp_path, text, "tcptrace-stream")
    assert found["ttl_stream_length", True][:2] == (100, "101")
    assert found["missed_data", True][:2] == (0, "1")


def test_scale_that_was_only_asked_for_is_shown_by_tcptrace(tmp_path: Path) -> None:
    """No SYN-ACK answers the SYN, so no window scale is in use.

    tcptrace prints the scale that the SYN offers.
    """
    text = "0.0 C > S S 0:0(0) win 64240 <mss 1460, wscale 7>\n1.0 C > S S 0:0(0) win 64240 <mss 1460, wscale 7>"
    ours, theirs, _ = reported(tmp_path, text, "tcptrace-scale")["adv_wind_scale", True]
    assert (ours, theirs) == (None, "7")


def test_a_segment_between_the_syns_makes_tcptrace_forget_the_scale(tmp_path: Path) -> None:
    """The SYN-ACK is captured late, after an ACK.

    The ACK is not a SYN, so tcptrace forgets the scale of the client's SYN.
    """
    text = """
        0.000 C > S S  0:0(0)       win 64240 <mss 1460, nop, wscale 7>
        0.011 C > S .  1:1(0) ack 1 win 502
        0.012 S > C S. 0:0(0) ack 1 win 65160 <mss 1460, nop, wscale 7>
        0.020 C > S .  1:1(0) ack 1 win 503
        0.030 S > C .  1:1(0) ack 1 win 501
    """
    found = reported(tmp_path, text, "tcptrace-wants-syns-first")
    assert found["min_win_adv", True][:2] == (503 << 7, "503")


def test_probes_are_counted_by_tcptrace_where_the_scale_is_unknown(tmp_path: Path) -> None:
    """The window scale is unknown, but a window of 0 is 0 at any scale.

    tcptrace counts all data after a window of 0 as probes, even data that were already in flight.
    """
    text = """
        0.000 S > C . 1:1(0)    ack 1    win 0
        0.001 C > S . 1:1461    ack 1    win 500
        0.002 C > S . 1461:2921 ack 1    win 500
        0.100 S > C . 1:1(0)    ack 2921 win 600
    """
    found = reported(tmp_path, text, "tcptrace-probes")
    assert found["zwnd_probe_pkts", True][1] == "2"
    assert found["zwnd_probe_bytes", True][1] == "2920"


def test_less_than_nothing_outstanding_for_seconds_overflows_in_tcptrace(tmp_path: Path) -> None:
    """The ACK is captured before the data that it acknowledges.

    In tcptrace, 1561 - 3000 + 2^64 bytes are then outstanding for 1.96 s.
    """
    text = f"""{HANDSHAKE}
        0.020 S > C P. 1:1461    ack 1
        5.030 C > S .  1:1(0)    ack 3001
        5.040 S > C P. 1461:1561 ack 1
        7.000 S > C P. 1561:3001 ack 1
        9.000 C > S F. 1:1(0)    ack 3001
    """
    assert "exceed 64 bits" in reported(tmp_path, text, "tcptrace-counts-below-0")["wavg_owin", False][2]


def test_a_second_syn_gives_tcptrace_the_scale_that_it_had_forgotten(tmp_path: Path) -> None:
    """The second SYN makes tcptrace scale windows again. For tcptrace, the windows are 500, 501 × 128 and 502 × 128 bytes."""
    text = """
        0.000 C > S S  0:0(0)       win 64240 <mss 1460, nop, wscale 7>
        0.011 C > S .  1:1(0) ack 1 win 502
        0.012 S > C S. 0:0(0) ack 1 win 65160 <mss 1460, nop, wscale 7>
        0.020 C > S .  1:1(0) ack 1 win 500
        0.021 C > S S  0:0(0)       win 0     <mss 1460, nop, wscale 7>
        0.022 S > C .  1:1(0) ack 1 win 501
        0.030 C > S .  1:1(0) ack 1 win 501
        0.040 C > S .  1:1(0) ack 1 win 502
    """
    assert reported(tmp_path, text, "tcptrace-windows")["min_win_adv", True][:2] == (500 << 7, "500")


def test_the_byte_of_a_keepalive_that_comes_first_is_new_to_it(tmp_path: Path) -> None:
    """The first frame is a keepalive. Its byte was sent before the capture began (RFC 9293, 3.8.4)."""
    text = """
        0.00 C > S . 800:801(1) ack 5001
        0.02 S > C . 5001:5001(0) ack 801
        1.00 C > S P. 801:901 ack 5001
        1.02 S > C . 5001:5001(0) ack 901
    """
    found = reported(tmp_path, text, "tcptrace-takes-the-byte-of-a-first-keepalive")
    ours, theirs, _ = found["unique_bytes_sent", True]
    assert (str(ours), str(theirs)) == ("100", "101")
