"""How segments form connections: client and server, stream offsets and window scale, in exchanges written by hand.

Expected values follow from each exchange and from the column meanings in `tcptrace_lab/schema`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.engine import column, read_text
from tests.support.packets import BASE_NS

if TYPE_CHECKING:
    from pathlib import Path

HANDSHAKE = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    0.010 S > C  S.  0:0(0) ack 1  win 65160 <mss 1400, sackOK, wscale 9>
    0.011 C > S  .          ack 1  win 502
"""
"""Frames 1 to 3: a handshake. C shifts its windows by 7, S by 9."""


def test_client_is_who_sent_the_syn(tmp_path: Path) -> None:
    read = read_text(tmp_path, "host A 10.0.0.9:80\nhost B 10.0.0.8:50000\n0 A > B S 0:0(0)\n1 B > A S. 0:0(0) ack 1")
    connection = read.connections.row(0, named=True)
    assert (connection["client_addr"], connection["client_port"]) == ("10.0.0.9", 80)
    assert (connection["server_addr"], connection["server_port"]) == ("10.0.0.8", 50_000)
    assert connection["client_known_by"] == "syn"
    assert column(read.segments, "from_client") == [True, False]


def test_client_is_who_receives_the_syn_ack_when_the_syn_is_missing(tmp_path: Path) -> None:
    read = read_text(tmp_path, "host A 10.0.0.9:80\nhost B 10.0.0.8:50000\n0 B > A S. 0:0(0) ack 1\n1 A > B . 1:1(0) ack 1")
    connection = read.connections.row(0, named=True)
    assert (connection["client_addr"], connection["client_port"], connection["client_known_by"]) == ("10.0.0.9", 80, "syn_ack")
    assert column(read.segments, "from_client") == [False, True]


def test_client_is_the_higher_port_in_mid_stream(tmp_path: Path) -> None:
    read = read_text(tmp_path, "0 S > C P. 1:101 ack 1\n1 C > S . 1:1(0) ack 101")
    connection = read.connections.row(0, named=True)
    assert (connection["client_port"], connection["server_port"], connection["client_known_by"]) == (40_000, 80, "port")
    assert column(read.segments, "from_client") == [False, True]


def test_client_is_who_speaks_first_between_equal_ports(tmp_path: Path) -> None:
    read = read_text(tmp_path, "host A 10.0.0.9:179\nhost B 10.0.0.8:179\n0 A > B P. 1:20 ack 1\n1 B > A . 1:1(0) ack 20")
    connection = read.connections.row(0, named=True)
    assert (connection["client_addr"], connection["client_known_by"]) == ("10.0.0.9", "first")


def test_syn_ack_captured_before_the_syn_is_one_connection_with_the_right_client(tmp_path: Path) -> None:
    read = read_text(
        tmp_path,
        """
        0.000 S > C S. 0:0(0) ack 1
        +1us  C > S S  0:0(0)
        0.010 C > S .  1:1(0) ack 1
        """,
    )
    assert read.connections["client_port"].to_list() == [40_000]
    assert column(read.segments, "from_client") == [False, True, True]
    assert column(read.segments, "seq") == [0, 0, 1]


def test_port_used_again_with_a_new_isn_is_a_new_connection(tmp_path: Path) -> None:
    read = read_text(
        tmp_path,
        f"""
        host C2 10.0.0.1:40000 isn 900000000
        host S2 10.0.0.2:80    isn 800000000
        {HANDSHAKE}
        0.020 C  > S  F. 1:1(0) ack 1
        0.030 S  > C  F. 1:1(0) ack 2
        0.040 C  > S  .  2:2(0) ack 2
        60.00 C2 > S2 S  0:0(0)
        60.01 S2 > C2 S. 0:0(0) ack 1
        60.02 C2 > S2 P. 1:101  ack 1
        """,
    )
    assert column(read.segments, "conn") == [0] * 6 + [1] * 3
    assert column(read.segments, "seq", 7, 8, 9) == [0, 0, 1]
    assert read.connections["closed_by"].to_list()[0] in {"fin", "reuse"}
    assert read.connections["client_isn"].to_list() == [1000, 900_000_000]
    assert read.connections["first_frame"].to_list() == [1, 7]


def test_port_used_again_without_fin_is_a_new_connection(tmp_path: Path) -> None:
    read = read_text(tmp_path, f"host C2 10.0.0.1:40000 isn 900000000\n{HANDSHAKE}\n5 C2 > S S 0:0(0)")
    assert column(read.segments, "conn") == [0, 0, 0, 1]
    assert read.connections["closed_by"].to_list() == ["reuse", "end"]


def test_syn_sent_again_after_a_refusal_is_a_new_connection(tmp_path: Path) -> None:
    """The RST ended the first attempt, so the next SYN begins a new connection although its ISN is the same (Windows tries three times)."""
    read = read_text(tmp_path, "0.0 C > S S 0:0(0)\n0.1 S > C R. 0:0(0) ack 1\n0.6 C > S S 0:0(0)\n0.7 S > C R. 0:0(0) ack 1")
    assert column(read.segments, "conn") == [0, 0, 1, 1]
    assert read.connections["closed_by"].to_list() == ["reset", "reset"]


def test_syn_sent_again_stays_in_its_connection(tmp_path: Path) -> None:
    read = read_text(
        tmp_path,
        """
        0.0 C > S S  0:0(0) <mss 1460>
        1.0 C > S S  0:0(0) <mss 1460>
        3.0 C > S S  0:0(0) <mss 1460>
        3.1 S > C S. 0:0(0) ack 1
        3.2 C > S .  1:1(0) ack 1
        """,
    )
    connection = read.connections.row(0, named=True)
    assert read.connections.height == 1
    assert column(read.segments, "seq") == [0, 0, 0, 0, 1]
    assert (connection["client_syn_segments"], connection["client_retransmitted_segments"]) == (3, 2)
    assert connection["syn_to_synack_ns"] == 100_000_000, "from the last SYN before the SYN-ACK"
    assert connection["synack_to_ack_ns"] == 100_000_000
    assert column(read.segments, "rtt_ns", 4) == [None], "Karn: the SYN was sent three times"


def test_close_is_identified_by_fin_reset_or_the_end(tmp_path: Path) -> None:
    closes = {
        "0.02 C > S F. 1:1(0) ack 1\n0.03 S > C F. 1:1(0) ack 2\n0.04 C > S . 2:2(0) ack 2": "fin",
        "0.02 S > C R. 1:1(0) ack 1": "reset",
        "0.02 C > S F. 1:1(0) ack 1": "end",
        "": "end",
    }
    found = {close: read_text(tmp_path, HANDSHAKE + close).connections["closed_by"][0] for close in closes}
    assert found == closes


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    read = read_text(tmp_path, "0.000000001 C > S S 0:0(0)\n0.123456789 S > C S. 0:0(0) ack 1\n7ns C > S . 1:1(0) ack 1")
    assert column(read.segments, "ts_ns") == [BASE_NS + 1, BASE_NS + 123_456_789, BASE_NS + 7]
    assert column(read.segments, "frame") == [1, 2, 3]


def test_window_scale_of_the_handshake_applies_to_all_but_syns(tmp_path: Path) -> None:
    read = read_text(tmp_path, f"{HANDSHAKE}\n0.02 C > S P. 1:101 ack 1 win 501\n0.03 S > C . 1:1(0) ack 101 win 130")
    assert column(read.segments, "window_bytes") == [64_240, 65_160, 502 << 7, 501 << 7, 130 << 9]
    connection = read.connections.row(0, named=True)
    assert (connection["client_window_scale"], connection["server_window_scale"]) == (7, 9)
    assert (connection["client_max_window_bytes"], connection["server_max_window_bytes"]) == (502 << 7, 130 << 9)
    assert (connection["client_mss_bytes"], connection["server_mss_bytes"]) == (1460, 1400)


def test_window_is_unknown_when_the_handshake_was_not_seen(tmp_path: Path) -> None:
    read = read_text(tmp_path, "0 C > S P. 1:101 ack 1 win 501\n1 S > C . 1:1(0) ack 101 win 130")
    assert column(read.segments, "window_bytes") == [None, None]
    assert column(read.segments, "usable_window_bytes") == [None, None]
    connection = read.connections.row(0, named=True)
    assert (connection["client_window_scale"], connection["server_max_window_bytes"], connection["client_mss_bytes"]) == (None, None, None)


def test_window_scale_is_unknown_when_the_capture_cut_the_options_of_a_syn(tmp_path: Path) -> None:
    """54 captured bytes contain the headers without options, so the options that the SYNs offered are unknown, not absent.

    If a SYN has no options, 54 captured bytes show that it offers none.
    """
    cut = read_text(tmp_path, f"{HANDSHAKE}\n0.02 C > S P. 1:101 ack 1 win 501", snaplen_bytes=54)
    assert column(cut.segments, "window_bytes") == [64_240, 65_160, None, None]
    for name in ("mss_bytes", "window_scale", "sack_permitted", "timestamps"):
        assert cut.connections.select(f"client_{name}", f"server_{name}").row(0) == (None, None)
    whole = read_text(tmp_path, "0 C > S S 0:0(0)\n1 S > C S. 0:0(0) ack 1\n2 C > S . 1:1(0) ack 1 win 501", snaplen_bytes=54)
    assert column(whole.segments, "window_bytes", 3) == [501]
    assert whole.connections.select("client_sack_permitted", "client_timestamps").row(0) == (False, False)


def test_a_later_syn_that_leaves_options_out_takes_back_nothing_of_a_cut_one(tmp_path: Path) -> None:
    """The first SYN was truncated behind the window scale option. The second SYN omits window scale and timestamps.

    The last SYN retransmissions of XNU omit these options. So the client offers window scaling, and its other options are unknown.
    """
    read = read_text(
        tmp_path,
        """
        0 C > S S 0:0(0) win 65535 <mss 1460, nop, wscale 5, nop, nop, TS val 7 ecr 0, sackOK> {snap 66}
        7 C > S S 0:0(0) win 65535 <mss 1460, sackOK>
        """,
    )
    offered = read.connections.select("client_window_scale_offered", "client_timestamps", "client_sack_permitted").row(0)
    assert offered == (5, None, None)


def test_a_syn_captured_whole_shows_what_was_cut_off_its_copy(tmp_path: Path) -> None:
    syn = "C > S S 0:0(0) win 65535 <mss 1460, nop, wscale 5, nop, nop, TS val 7 ecr 0, sackOK>"
    read = read_text(tmp_path, f"0 {syn} {{snap 66}}\n1 {syn}")
    offered = read.connections.select("client_window_scale_offered", "client_timestamps", "client_sack_permitted").row(0)
    assert offered == (5, True, True)


def test_window_of_zero_is_known_without_its_scale(tmp_path: Path) -> None:
    read = read_text(tmp_path, "0 C > S P. 1:101 ack 1 win 501\n1 S > C . 1:1(0) ack 101 win 0")
    assert column(read.segments, "window_bytes") == [None, 0]


@pytest.mark.parametrize(("client", "server"), [("wscale 7", "nop"), ("nop", "nop")])
def test_window_scale_is_zero_when_one_side_did_not_offer_it(tmp_path: Path, client: str, server: str) -> None:
    read = read_text(
        tmp_path,
        f"0 C > S S 0:0(0) win 64240 <{client}>\n1 S > C S. 0:0(0) ack 1 win 65160 <{server}>\n2 C > S . 1:1(0) ack 1 win 502",
    )
    assert column(read.segments, "window_bytes") == [64_240, 65_160, 502]
    connection = read.connections.row(0, named=True)
    assert (connection["client_window_scale"], connection["server_window_scale"]) == (0, 0)


def test_window_scale_above_14_is_used_as_14(tmp_path: Path) -> None:
    """A window shift above 14 is used as 14 (RFC 7323, 2.3)."""
    read = read_text(tmp_path, "0 C > S S 0:0(0) <wscale 15>\n1 S > C S. 0:0(0) ack 1 <wscale 0>\n2 C > S . 1:1(0) ack 1 win 3")
    assert column(read.segments, "window_bytes", 3) == [3 << 14]


def test_offsets_go_on_across_the_end_of_the_sequence_space(tmp_path: Path) -> None:
    read = read_text(
        tmp_path,
        """
        host A 10.0.0.1:40000 isn 4294967290
        0.0 A > S S  0:0(0)
        0.1 S > A S. 0:0(0) ack 1
        0.2 A > S P. 1:1461 ack 1
        0.3 S > A .  1:1(0) ack 1461
        0.4 A > S P. 1461:2921 ack 1
        """,
    )
    assert column(read.segments, "seq") == [0, 0, 1, 1, 1461]
    assert column(read.segments, "ack") == [None, 1, 1, 1461, 1]
    assert column(read.segments, "acked_bytes", 4) == [1460]
    assert column(read.segments, "kind", 3, 5) == ["new", "new"]


def test_offsets_pass_four_gibibytes_more_than_once(tmp_path: Path) -> None:
    """The capture contains one segment for every 1.5 GB of the stream.

    After 8 such segments, sequence numbers have wrapped at 2^32 twice.
    """
    step = 1_500_000_000
    starts = [1 + index * step for index in range(8)]
    lines = [HANDSHAKE]
    for index, start in enumerate(starts, 1):
        lines.append(f"{index}.0 C > S . {start}:{start + 1000} ack 1")
        lines.append(f"{index}.1 S > C . 1:1(0) ack {start + 1000} <sack {start + 2000}:{start + 3000}>")
    read = read_text(tmp_path, "\n".join(lines))
    data, acks = range(4, 20, 2), range(5, 21, 2)
    assert column(read.segments, "seq", *data) == starts
    assert column(read.segments, "ack", *acks) == [start + 1000 for start in starts]
    assert column(read.segments, "sack_blocks", *acks) == [[start + 2000, start + 3000] for start in starts]
    assert set(column(read.segments, "conn")) == {0}
    assert starts[-1] > 2 * 2**32


def test_bytes_from_before_a_mid_stream_start_have_offsets_below_one(tmp_path: Path) -> None:
    read = read_text(
        tmp_path,
        """
        0.0 C > S . 100000:101000 ack 1
        0.1 C > S . 98000:99000   ack 1
        0.2 S > C . 1:1(0)        ack 99000 <sack 100000:101000>
        """,
    )
    assert column(read.segments, "seq") == [1, -1999, 1]
    assert column(read.segments, "ack", 3) == [-999]
    assert column(read.segments, "sack_blocks") == [None, None, [1, 1001]]
    assert read.connections["client_isn"].to_list() == [1000 + 100_000 - 1]


def test_syn_sets_offset_zero_even_behind_a_forged_reset(tmp_path: Path) -> None:
    """The RST has a made-up sequence number; the SYN-ACK after it shows where the stream begins."""
    read = read_text(
        tmp_path,
        """
        0.000 C > S S  0:0(0)
        0.001 S > C R. 3000000:3000000(0) ack 1
        0.010 S > C S. 0:0(0) ack 1
        0.011 C > S .  1:1(0) ack 1
        0.020 S > C P. 1:101  ack 1
        """,
    )
    assert column(read.segments, "conn") == [0] * 5
    assert column(read.segments, "seq", 3, 5) == [0, 1]
    assert column(read.segments, "ack", 4) == [1]
    assert read.connections["server_isn"].to_list() == [5000]


def test_window_stays_unknown_when_only_one_syn_was_seen(tmp_path: Path) -> None:
    """Windows are scaled only if both SYNs have the option, and a SYN-ACK has it only if the SYN had it (RFC 7323, 2.2)."""
    client_only = read_text(tmp_path, "0 C > S S 0:0(0) win 64240 <wscale 7>\n1 C > S . 1:1(0) ack 1 win 502")
    assert column(client_only.segments, "window_bytes") == [64_240, None]
    server_only = read_text(tmp_path, "0 S > C S. 0:0(0) ack 1 win 65160 <wscale 7>\n1 C > S . 1:1(0) ack 1 win 5\n2 S > C . ack 1 win 9")
    assert column(server_only.segments, "window_bytes") == [65_160, None, 9 << 7]


def test_timestamps_ip_id_ttl_and_ecn_are_those_of_the_headers(tmp_path: Path) -> None:
    read = read_text(
        tmp_path,
        """
        0 C > S S  0:0(0)       <TS val 4294967295 ecr 0> {id 65535, ttl 255}
        1 S > C S. 0:0(0) ack 1                           {id 0, ttl 1, ecn 1}
        2 C > S P.e 1:11  ack 1 <TS val 0 ecr 9>          {id 7, ttl 63, ecn 2}
        3 C > S P.EW 11:21 ack 1                          {id 8, ecn 3}
        """,
    )
    assert column(read.segments, "tsval") == [4_294_967_295, None, 0, None]
    assert column(read.segments, "tsecr") == [0, None, 9, None]
    assert column(read.segments, "ip_id") == [65_535, 0, 7, 8]
    assert column(read.segments, "ttl") == [255, 1, 63, 64]
    assert column(read.segments, "ect") == [0, 1, 2, 3]
    assert column(read.segments, "ce") == [False, False, False, True]
    assert column(read.segments, "flags") == [2, 18, 8 + 16 + 256, 8 + 16 + 64 + 128]
