"""What tcptrace is known to do otherwise: exchanges in which it really does, and the explanation with its numbers.

tcptrace itself lists each exchange; a test fails if it prints something else than the rule says, or if anything is left unexplained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tshark
from packets import capture

from tcptrace_lab.verify import verify
from tcptrace_lab.verify.differences import UNEXPLAINED

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
    """The exchange `text` held against tcptrace; nothing is left unexplained."""
    tshark.needed("tcptrace")
    done = verify(capture(folder / "exchange.pcap", text), ["tcptrace"])
    assert done.refused == {}
    assert done.account.differences.get(UNEXPLAINED, []) == []
    return done


def told(folder: Path, text: str, rule: str) -> dict[tuple[str, bool | None], tuple[object, object, str]]:
    """Of one rule: (figure, from client) → ours, tcptrace's, words."""
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
    """RFC 6864, 4: the identification of a packet that is not fragmented may be anything, here 7. TCP timestamps tell a resend."""
    handshake = HANDSHAKE.replace("wscale 7", "wscale 7, TS val 1 ecr 0")
    text = f"""{handshake}
        0.020 C > S P. 1:101 ack 1 <nop, nop, TS val 20 ecr 1> {{id 7}}
        0.520 C > S P. 1:101 ack 1 <nop, nop, TS val 520 ecr 1> {{id 7}}
        0.530 S > C . ack 101 win 500
        """
    found = told(tmp_path, text, "tcptrace-constant-ids")
    ours, theirs, words = found["hardware_dups", True]
    assert (ours, theirs) == (0, "1")
    assert "1 packet with number and IP identification of one of the eight before" in words


def test_mean_size_is_a_byte_less_to_tcptrace(tmp_path: Path) -> None:
    """100 bytes in 1 segment: 100 / 1.001, cut."""
    found = told(tmp_path, f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.030 S > C . ack 101 win 500", "tcptrace-mean-size")
    assert found["avg_segm_size", True][:2] == (100, "99")


def test_mss_above_32767_wraps_to_tcptrace(tmp_path: Path) -> None:
    """65495 is the MSS of Linux on loopback: 65495 - 65536 + 2^32 = 4294967255."""
    found = told(tmp_path, HANDSHAKE.replace("1460", "65495"), "tcptrace-wraps-mss")
    assert found["mss_requested", True][:2] == (65495, "4294967255")


def test_late_segment_and_resent_one(tmp_path: Path) -> None:
    """What fills a gap is out of order to tcptrace, be it a resend after 800 ms: here of bytes lost before the capture point."""
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1001    ack 1 {{id 100}}
        0.021 C > S . 2001:3001 ack 1 {{id 102}}
        0.821 C > S . 1001:2001 ack 1 {{id 103}}
        0.831 S > C . ack 3001  win 500
        """
    found = told(tmp_path, text, "tcptrace-resends")
    ours, theirs, words = found["outoforder_pkts", True]
    assert (ours, theirs) == (0, "1")
    assert "by its rules 0 resent segments, 1 out of order" in words


def test_full_size_of_a_syn(tmp_path: Path) -> None:
    """A SYN is one sequence number: to tcptrace 2^32 bytes, so that no sample of data is full-sized."""
    found = told(tmp_path, f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1\n0.045 S > C . ack 101 win 500", "tcptrace-full-size")
    assert found["RTT_full_sz_max", True][1] == "10.0"
    assert "4,294,967,296 bytes" in found["RTT_full_sz_max", True][2]


def test_windows_without_handshake_are_taken_as_they_are(tmp_path: Path) -> None:
    found = told(tmp_path, "0.0 C > S P. 1:101 ack 1 win 502\n0.1 S > C . ack 101 win 509", "tcptrace-takes-windows-as-they-are")
    assert found["max_win_adv", True][:2] == (None, "502")


def test_idle_time_goes_to_the_end_of_the_capture(tmp_path: Path) -> None:
    """The first connection is not closed; the capture goes on with another one for 5 s."""
    text = f"""{HANDSHAKE}
        host D 10.0.0.3:40000 isn 7000
        host T 10.0.0.2:80 isn 9000
        5.011 D > T S 0:0(0)
        """
    found = told(tmp_path, text, "tcptrace-open-connections")
    ours, theirs, words = found["idletime_max", True]
    assert (ours, theirs) == (11.0, "5000.0")
    assert "5,000.0 ms behind its last segment" in words


def test_segments_in_a_tunnel_of_tags_are_not_read(tmp_path: Path) -> None:
    done = held(tmp_path, "\n".join(f"{line} {{vlan 5/6/7}}" for line in HANDSHAKE.strip().splitlines()))
    assert [(one.item, one.ours, one.theirs) for one in done.account.differences["tcptrace-follows-no-tunnels"]] == [("connections", 1, 0)]


def test_probes_with_data_go_into_a_closed_window(tmp_path: Path) -> None:
    """Bytes that were on their way when the window shut are probes to tcptrace."""
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1001    ack 1
        0.030 S > C . ack 1001  win 0
        0.031 C > S . 1001:2001 ack 1
        0.041 S > C . ack 2001  win 500
        """
    found = told(tmp_path, text, "tcptrace-probes")
    assert found["zwnd_probe_pkts", True][:2] == (0, "1")
    assert found["unique_bytes_sent", True][:2] == (2000, "1000")
