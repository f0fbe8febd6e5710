"""The engine finds the TCP segment in a frame.

The frames have link headers, VLAN tags, IP options, extension headers and padding, and some are truncated. Expected values follow from each
exchange and from the RFC that a test names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.engine import column, read_text
from tests.support.packets import LINKS

if TYPE_CHECKING:
    from pathlib import Path

V4 = """
    0 C > S S  0:0(0)        win 64240 <mss 1460>
    1 S > C S. 0:0(0)  ack 1 win 65160 <mss 1460>
    2 C > S P. 1:101   ack 1 {id 9, ttl 61}
"""
V6 = """
    host A [2001:db8::1]:40000
    host B [2001:db8::2]:80
    0 A > B S  0:0(0)        win 64240 <mss 1440>
    1 B > A S. 0:0(0)  ack 1 win 65160 <mss 1440>
    2 A > B P. 1:101   ack 1 {ttl 61}
"""


@pytest.mark.parametrize("link", sorted(set(LINKS) - {"ipv6"}))
def test_ipv4_behind_every_link_header(tmp_path: Path, link: str) -> None:
    read = read_text(tmp_path, V4, link=link)
    assert column(read.segments, "payload_bytes") == [0, 0, 100]
    assert column(read.segments, "ttl", 3) == [61]
    assert column(read.segments, "ip_id", 3) == [9]
    assert [(info["id"], info["packets"], info["supported"]) for info in read.info["link_types"]] == [(LINKS[link], 3, True)]
    assert read.connections["client_addr"].to_list() == ["10.0.0.1"]
    assert not read.problems


@pytest.mark.parametrize("link", sorted(set(LINKS) - {"ipv4"}))
def test_ipv6_behind_every_link_header(tmp_path: Path, link: str) -> None:
    read = read_text(tmp_path, V6, link=link)
    assert column(read.segments, "payload_bytes") == [0, 0, 100]
    assert column(read.segments, "ttl", 3) == [61]
    assert column(read.segments, "ip_id") == [None] * 3
    assert read.connections.select("client_addr", "server_addr").row(0) == ("2001:db8::1", "2001:db8::2")
    assert not read.problems


@pytest.mark.parametrize("tags", ["5", "5/6", "1/2/3"])
@pytest.mark.parametrize("link", ["ethernet", "sll"])
def test_vlan_tags_are_stepped_over(tmp_path: Path, link: str, tags: str) -> None:
    read = read_text(tmp_path, f"0 C > S S 0:0(0) {{vlan {tags}}}\n1 C > S P. 1:101 ack 1 {{vlan {tags}}}", link=link)
    assert column(read.segments, "payload_bytes") == [0, 100]
    assert not read.problems


def test_ipv4_options_are_not_payload(tmp_path: Path) -> None:
    """The router alert option has four bytes, so the IPv4 header has six words (RFC 791)."""
    read = read_text(tmp_path, "0 C > S P. 1:101 ack 1 {ipopt 94040000}")
    assert column(read.segments, "payload_bytes") == [100]


def test_ipv6_extension_headers_are_not_payload(tmp_path: Path) -> None:
    """The packets have IPv6 extension headers (RFC 8200, 4). One packet has an atomic fragment header (RFC 6946)."""
    read = read_text(tmp_path, V6 + "3 A > B P. 101:151 ack 1 {ext hop/rt/dst}\n4 A > B P. 151:201 ack 1 {ext frag}")
    assert column(read.segments, "payload_bytes", 4, 5) == [50, 50]
    assert column(read.segments, "seq", 4, 5) == [101, 151]


def test_ethernet_padding_is_not_payload(tmp_path: Path) -> None:
    """A frame of 54 bytes is padded to 60 bytes (IEEE 802.3). The IP length shows where the packet ends."""
    read = read_text(tmp_path, "0 C > S S 0:0(0) {pad 6}\n1 S > C S. 0:0(0) ack 1 {pad 2}\n2 C > S P. 1:3 ack 1 {pad 4}")
    assert column(read.segments, "payload_bytes") == [0, 0, 2]
    assert column(read.segments, "captured_payload_bytes") == [0, 0, 2]
    assert column(read.segments, "kind", 1) == ["new"]


def test_payload_cut_by_the_snap_length_keeps_its_length(tmp_path: Path) -> None:
    """96 bytes are captured: 54 bytes of headers (14 + 20 + 20) and 42 bytes of data."""
    read = read_text(tmp_path, "0 C > S . 1:1461 ack 1\n1 C > S . 1461:1471 ack 1\n2 S > C . 1:1(0) ack 1471", snaplen_bytes=96)
    assert column(read.segments, "payload_bytes") == [1460, 10, 0]
    assert column(read.segments, "captured_payload_bytes") == [42, 10, 0]
    assert column(read.segments, "acked_bytes", 3) == [1470]
    assert (read.info["snaplen_bytes"], read.info["truncated_packets"]) == (96, 1)
    assert read.connections["client_truncated_segments"].to_list() == [1]


def test_options_cut_by_the_snap_length_leave_the_segment(tmp_path: Path) -> None:
    """60 bytes are captured: the fixed headers and six of the twelve bytes of options."""
    read = read_text(tmp_path, "0 C > S P. 1:101 ack 1 <nop, nop, TS val 7 ecr 8>", snaplen_bytes=60)
    assert column(read.segments, "payload_bytes") == [100]
    assert column(read.segments, "captured_payload_bytes") == [0]
    assert column(read.segments, "tsval") == [None]


def test_cut_tcp_header_is_counted_and_named(tmp_path: Path) -> None:
    """44 bytes are captured: Ethernet (14), IP (20), and 10 bytes of TCP.

    These bytes contain the ports and the sequence number, but not the flags.
    """
    read = read_text(tmp_path, "0 C > S P. 1:101 ack 1\n1 C > S P. 101:201 ack 1 {snap 44}\n2 C > S P. 201:301 ack 1")
    assert read.info["packets"] == 3
    assert column(read.segments, "frame") == [1, 3]
    named = [problem for problem in read.problems if problem["frame"] == 2]
    assert [(problem["count"], problem["loses_data"]) for problem in named] == [(1, True)]


def test_data_offset_below_the_fixed_header_is_named(tmp_path: Path) -> None:
    """The data offset must be at least five words, because the fixed TCP header has 20 bytes (RFC 9293, 3.1)."""
    read = read_text(tmp_path, "0 C > S P. 1:101 ack 1\n1 C > S P. 101:201 ack 1 {doff 4}")
    assert [problem["frame"] for problem in read.problems] == [2]


def test_ip_length_zero_means_the_length_of_the_frame(tmp_path: Path) -> None:
    """With segmentation offload, the total length of a packet can be 0, because the network card fills it in later."""
    read = read_text(tmp_path, "0 C > S P. 1:10001 ack 1 {iplen 0}\n1 S > C . 1:1(0) ack 10001")
    assert column(read.segments, "payload_bytes") == [10_000, 0]
    assert column(read.segments, "acked_bytes", 2) == [10_000]


def test_frames_without_tcp_are_numbered_and_skipped(tmp_path: Path) -> None:
    read = read_text(tmp_path, "0 C > S udp 30\n1 C > S S 0:0(0)\n2 S > C udp 5\n3 S > C S. 0:0(0) ack 1")
    assert column(read.segments, "frame") == [2, 4]
    assert (read.info["packets"], read.info["tcp_segments"]) == (4, 2)
    assert not read.problems
