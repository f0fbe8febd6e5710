"""Packets that a capture contains twice.

Either the capture duplicated them (SPAN port, interface "any", two capture points on one path), or the network did.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tests.support import engine, needs, packets, transfer
from tests.support.engine import column, read_text
from tests.support.places import CAPTURES
from tests.support.verdicts import HANDSHAKE, figures, judged, verdicts

if TYPE_CHECKING:
    from pathlib import Path

DUPLICATE_FIGURES = ("capture_duplicates", "network_duplicates")


def test_a_packet_captured_twice_counts_once(tmp_path: Path) -> None:
    """An equal IPv4 identification shows that a SYN, data and an ACK are copies, not retransmissions (RFC 6864, 4.1)."""
    read = read_text(
        tmp_path,
        """
        0.0000 C > S S  0:0(0)        win 64240 <mss 1460, sackOK> {id 7}
        +10us  C > S S  0:0(0)        win 64240 <mss 1460, sackOK> {id 7}
        0.0100 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK> {id 70}
        +10us  S > C S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK> {id 70}
        0.0110 C > S .  1:1(0) ack 1  win 502 {id 8}
        +10us  C > S .  1:1(0) ack 1  win 502 {id 8}
        0.0200 C > S P. 1:1001 ack 1 win 502 {id 9}
        +10us  C > S P. 1:1001 ack 1 win 502 {id 9}
        0.0300 S > C .  1:1(0) ack 1001 win 500 {id 71}
        +10us  S > C .  1:1(0) ack 1001 win 500 {id 71}
        """,
    )
    assert column(read.segments, "kind") == [
        *("new", "capture_duplicate") * 2,
        *("ack", "capture_duplicate"),
        *("new", "capture_duplicate"),
        *("ack", "capture_duplicate"),
    ]
    assert verdicts(read, 8) == [("capture_duplicate", "ip_id", 7, "consistent")]
    names = ("segments", "data_segments", "payload_bytes", "unique_bytes", "retransmitted_segments", "syn_segments", "pure_acks")
    assert figures(read, "client", *names) == (3, 1, 1000, 1000, 0, 1, 1)
    assert figures(read, "server", "segments", "duplicate_acks", "capture_duplicates") == (2, 0, 2)
    assert column(read.segments, "rtt_ns", 3, 9) == [10_000_000, 10_000_000]
    assert read.connections["syn_to_synack_ns"].to_list() == [10_000_000]


def test_a_router_on_the_way_lowers_the_ttl_of_the_second_copy(tmp_path: Path) -> None:
    """The packet was captured on both sides of a router, which decrements the TTL (RFC 1812, 5.3.1)."""
    text = f"{HANDSHAKE}\n0.0200 C > S P. 1:1001 ack 1 {{id 9}}\n0.0203 C > S P. 1:1001 ack 1 {{id 9, ttl 63}}"
    assert judged(tmp_path, text, 5) == [("capture_duplicate", "path", 4, "proved")]


def test_a_trunk_shows_the_second_copy_with_another_vlan(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.0200 C > S P. 1:1001 ack 1 {{id 9}}\n0.0203 C > S P. 1:1001 ack 1 {{id 9, vlan 20}}"
    assert judged(tmp_path, text, 5) == [("capture_duplicate", "path", 4, "proved")]


def test_without_identification_the_timestamp_distinguishes_a_copy_from_a_resend(tmp_path: Path) -> None:
    """IPv6 packets have no IP identification, and some IPv4 packets have identification 0.

    A copy of such a packet has the same bytes and timestamp, and arrives within a quarter of the RTT (2.7 ms).
    """
    text = f"""{HANDSHAKE}
        0.0200 C > S P. 1:1001 ack 1 <TS val 20 ecr 9> {{id 0}}
        0.02%s C > S P. 1:1001 ack 1 <TS val %d ecr 9> {{id 0}}
    """
    assert judged(tmp_path, text % ("02", 20), 5) == [("capture_duplicate", "timestamp", 4, "consistent")]
    assert judged(tmp_path, text % ("02", 21), 5)[0][0] == "retransmit"
    assert judged(tmp_path, text % ("40", 20), 5)[0][0] == "retransmit"


@pytest.mark.parametrize(("again_ms", "kinds"), [(30, ["syn_retransmit", "syn_retransmit"]), (None, ["capture_duplicate"])])
def test_a_syn_that_arrives_late_and_is_answered_again_is_no_copy(tmp_path: Path, again_ms: int | None, kinds: list[str]) -> None:
    """The packets are IPv6, without IP identifications. The RTT is 60 ms, and the capture is made at the server.

    In one case, two SYNs arrive 30 ms apart, and the server sends a SYN-ACK for each. In the other case, one SYN-ACK is captured twice.
    """
    hosts = "host A [2001:db8::1]:40000 isn 1\nhost B [2001:db8::2]:80 isn 9"
    asked = "A > B S 0:0(0) win 64240 <mss 1440>"
    answer = "B > A S. 0:0(0) ack 1 win 64000 <mss 1440>"
    opened = f"0ms {asked}\n0.03ms {answer}"
    again = f"{again_ms}ms {asked}\n{again_ms}.03ms {answer}" if again_ms else f"0.05ms {answer}"
    read = read_text(tmp_path, f"{hosts}\n{opened}\n{again}\n60ms A > B . ack 1 win 502")
    assert column(read.segments, "kind", *range(3, 3 + len(kinds))) == kinds


def test_duplicate_acks_of_a_stack_with_one_identification_for_all_are_no_copies(tmp_path: Path) -> None:
    """If DF is set, the IPv4 identification has no meaning (RFC 6864, 4.1), and some stacks send a constant."""
    text = f"""{HANDSHAKE.replace("win 65160 <mss 1460, sackOK, wscale 7>", "win 65160 <mss 1460, sackOK, wscale 7> {id 5}")}
        0.0200 C > S . 1:1461    ack 1
        0.0201 C > S . 1461:2921 ack 1
        0.0202 C > S . 2921:4381 ack 1
        0.0300 S > C . ack 1 win 509 {{id 5}}
        0.0301 S > C . ack 1 win 509 {{id 5}}
        0.0302 S > C . ack 1 win 509 {{id 5}}
    """
    read = read_text(tmp_path, text)
    assert column(read.segments, "kind", 7, 8, 9) == ["window_update", "duplicate_ack", "duplicate_ack"]
    assert figures(read, "server", *DUPLICATE_FIGURES) == (0, 0)


def test_a_dsack_makes_it_the_network_that_delivered_a_packet_twice(tmp_path: Path) -> None:
    """The D-SACK (RFC 2883, 4.1) shows that the receiver got both packets, so the capture did not duplicate the packet."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.0200 C > S . 1:1461    ack 1 {{id 50}}
        0.0201 C > S . 1461:2921 ack 1 {{id 51}}
        0.0202 C > S . 1461:2921 ack 1 {{id 51}}
        0.0301 S > C . ack 2921 win 509
        0.0302 S > C . ack 2921 win 509 <sack 1461:2921>
        """,
    )
    assert verdicts(read, 6) == [("network_duplicate", "dsack", 8, "proved")]
    assert figures(read, "client", *DUPLICATE_FIGURES, "retransmitted_segments", "payload_bytes") == (0, 1, 0, 2920)


def test_the_same_packet_long_after_itself_was_kept_by_the_network(tmp_path: Path) -> None:
    """The copy is captured 80 ms (8 RTTs) later, too late for a duplicate made by the capture.

    It has the old timestamp, and a retransmission would have a newer one (RFC 7323, 3.2).
    """
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:1001 ack 1 <%s> {{id 50}}\n0.100 C > S P. 1:1001 ack 1 <%s> {{id 50}}"
    assert judged(tmp_path, text % ("TS val 20 ecr 9", "TS val 20 ecr 9"), 5) == [("network_duplicate", "ip_id", 4, "consistent")]
    assert judged(tmp_path, text % ("TS val 20 ecr 9", "TS val 100 ecr 9"), 5)[0][0] == "tail_probe"


def test_a_resend_with_the_identification_of_the_original_is_a_resend(tmp_path: Path) -> None:
    """Some stacks retransmit a packet with its old identification. A copy after 310 ms is a retransmission by timeout (RFC 6298)."""
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:1001 ack 1 {{id 50}}\n0.330 C > S P. 1:1001 ack 1 {{id 50}}"
    assert judged(tmp_path, text, 5) == [("rto_retransmit", "silence", 4, "proved")]


def test_two_points_of_a_slow_path_see_a_packet_far_apart(tmp_path: Path) -> None:
    """One packet is captured twice, 50 ms apart, the second time with a VLAN tag."""
    text = f"{HANDSHAKE}\n0.020 C > S P. 1:1001 ack 1 {{id 50}}\n0.070 C > S P. 1:1001 ack 1 {{id 50, vlan 20}}"
    assert judged(tmp_path, text, 5) == [("capture_duplicate", "path", 4, "proved")]


def _captured_twice(path: Path, folder: Path) -> Path:
    """Return the capture with each packet repeated 2 µs later, as if from an interface and its bridge (made with Wireshark's tools)."""
    later, twice = folder / "later.pcapng", folder / "twice.pcapng"
    subprocess.run([needs.program("editcap"), "-t", "0.000002", path, later], check=True, capture_output=True)
    subprocess.run([needs.program("mergecap"), "-w", twice, path, later], check=True, capture_output=True)
    return twice


def _kinds(read: engine.Read, *, copies: bool) -> list[str]:
    """Return the kinds of all capture duplicates, or of all other segments, in order."""
    return read.segments.filter((pl.col("kind") == "capture_duplicate") == copies)["kind"].to_list()


def _figures(read: engine.Read) -> list[dict[str, Any]]:
    """Return the figures of each connection, except those that change if packets are duplicated.

    Frame numbers, the capture quality and the time of the last packet change. The copy of the last packet is 2 µs later.
    """
    numbered = pl.selectors.contains("frame", "capture_duplicates", "last_ts_ns", "quality_") & ~pl.selectors.contains("frame_bytes")
    return read.connections.select(~numbered).to_dicts()


def test_every_packet_captured_twice_leaves_every_figure_as_it_was(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "once.pcap", transfer.TEXT)
    once, twice = engine.read(path), engine.read(_captured_twice(path, tmp_path))
    assert _kinds(twice, copies=True) == ["capture_duplicate"] * once.segments.height
    assert _kinds(twice, copies=False) == once.segments["kind"].to_list()
    assert _figures(twice) == _figures(once)


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-reordering-at-server", "ethernet-slow-reader", "ethernet-two-way"])
def test_real_transfers_captured_twice_keep_their_figures(tmp_path: Path, name: str) -> None:
    path = CAPTURES / f"{name}.pcapng"
    once, twice = engine.read(path), engine.read(_captured_twice(path, tmp_path))
    assert _kinds(twice, copies=True) == ["capture_duplicate"] * once.segments.height
    assert _kinds(twice, copies=False) == once.segments["kind"].to_list()
    assert _figures(twice) == _figures(once)
