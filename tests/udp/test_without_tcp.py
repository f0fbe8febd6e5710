"""If a capture has no TCP, the summary, the terminal output and the page describe what it contains instead."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tcptrace_lab import analyze, report, verdict
from tcptrace_lab.connections import capture_quality
from tests.support import packets
from tests.support.command import tcptrace_lab
from tests.support.pages.html_pages import Page

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = """
    host A 10.0.0.1:53000
    host B 10.0.0.3:53
    host E [2001:db8::1]:5000
    host F [2001:db8::2]:6000
"""


def call(count: int = 100, *, pause_s: float = 1.0) -> str:
    """Return a call of `count` datagrams of 160 bytes, 20 ms apart, with a pause in the middle."""
    return HOSTS + "\n".join(f"{number * 0.02 + (pause_s if number >= count // 2 else 0):.3f} A > B udp 160" for number in range(count))


CALL = "10.0.0.1:53000 → 10.0.0.3:53: 16 kB at 43 kb/s, longest pause 1.02 s (median gap 20 ms)"
"""The expected line for 100 datagrams of 160 bytes.

These datagrams have 128,000 bits. They take 99 · 20 ms + 1 s = 2.98 s, which gives 42,953 b/s.
"""


def test_one_flow_is_reported_with_its_rate_and_its_longest_pause(tmp_path: Path) -> None:
    reported = verdict.sentence(analyze(packets.capture(tmp_path / "call.pcap", call())))
    assert reported == f"This capture contains no TCP connection; it contains 100 UDP datagrams in 1 flow, {CALL}."


def test_of_several_flows_the_largest_is_reported(tmp_path: Path) -> None:
    text = call() + "\n+1ms E > F udp 40\n+1ms F > E udp 40"
    reported = verdict.sentence(analyze(packets.capture(tmp_path / "calls.pcap", text)))
    assert reported == f"This capture contains no TCP connection; it contains 102 UDP datagrams in 2 flows; the largest is {CALL}."


def test_an_even_flow_has_a_gap_and_no_pause(tmp_path: Path) -> None:
    reported = verdict.sentence(analyze(packets.capture(tmp_path / "call.pcap", call(pause_s=0.0))))
    assert "longest gap 20 ms (median gap 20 ms)" in reported


def test_a_single_datagram_over_ipv6_has_no_rate_and_no_gap(tmp_path: Path) -> None:
    reported = verdict.sentence(analyze(packets.capture(tmp_path / "one.pcap", HOSTS + "0.000 E > F udp 40")))
    assert reported.endswith("in 1 flow, [2001:db8::1]:5000 → [2001:db8::2]:6000: 40 B.")


def test_a_capture_of_other_protocols_and_an_empty_one_say_so(tmp_path: Path) -> None:
    """The first capture has only an ARP request. The second has only a file header."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
    arp = b"\xff" * 6 + b"\x02" * 6 + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20)
    other, empty = tmp_path / "arp.pcap", tmp_path / "empty.pcap"
    other.write_bytes(head + struct.pack("<IIII", 1, 0, len(arp), len(arp)) + arp)
    empty.write_bytes(head)
    assert verdict.sentence(analyze(other)) == "This capture contains no TCP connection, and no UDP."
    assert verdict.sentence(analyze(empty)) == "This capture contains no TCP connection: it is empty."


def test_a_snaplen_that_cuts_tcp_headers_is_named(tmp_path: Path) -> None:
    """Each of three segments is truncated to 40 bytes.

    Ethernet and IPv4 take 34 bytes, so only 6 of the 20 bytes of the TCP header are left.
    """
    whole = packets.capture(tmp_path / "whole.pcap", "0 C > S S 0:0(0)\n0.1 S > C S. 0:0(0) ack 1\n0.2 C > S . ack 1").read_bytes()
    cut, at = whole[:24], 24
    while at < len(whole):
        seconds, fraction, captured, on_wire = struct.unpack_from("<IIII", whole, at)
        cut += struct.pack("<IIII", seconds, fraction, 40, on_wire) + whole[at + 16 : at + 56]
        at += 16 + captured
    (tmp_path / "cut.pcap").write_bytes(cut)
    analysis = analyze(tmp_path / "cut.pcap")
    assert verdict.sentence(analysis) == (
        "This capture contains no TCP connection that can be read: the snaplen truncates the headers of 3 packets; "
        "capture at least 128 bytes of each."
    )
    assert "headers complete" not in capture_quality.line(analysis.capture["quality"])


def test_the_terminal_lists_the_flows(tmp_path: Path) -> None:
    done = tcptrace_lab("analyze", packets.capture(tmp_path / "call.pcap", call()), folder=tmp_path)
    lines = done.stdout.decode().splitlines()
    (row,) = (line for line in lines if line.startswith("10.0.0.1:53000"))
    assert row.split() == ["10.0.0.1:53000", "10.0.0.3:53", "16", "kB", "0", "B", "43", "kb/s", "20", "ms", "1.02", "s", "0"]
    assert all(len(line) <= 80 for line in lines)


def test_the_terminal_shortens_addresses_and_no_figure(tmp_path: Path) -> None:
    """The terminal omits the middle of a long address and keeps the whole port.

    Datagrams over IPv6 have no IP ID, so it is unknown whether any are missing.
    """
    hosts = "host G [2001:db8:1111:2222::3333]:50001\nhost H [2001:db8:4444::5555]:5060\n"
    text = hosts + "\n".join(f"{number * 0.02:.3f} G > H udp 160" for number in range(100))
    done = tcptrace_lab("analyze", packets.capture(tmp_path / "call.pcap", text), folder=tmp_path)
    lines = done.stdout.decode().splitlines()
    (row,) = (line for line in lines if "]:5060" in line and "…" in line)
    client, server, *figures = row.split()
    assert client.endswith("]:50001")
    assert server.endswith("]:5060")
    assert "…" in client
    assert " ".join(figures) == "16 kB 0 B 64.6 kb/s 20 ms 20 ms –"
    assert all(len(line) <= 80 for line in lines)


def parts(page: Page) -> set[str | None]:
    return {attributes.get("id") for tag, attributes in page.elements if tag == "section"}


def test_the_page_is_about_udp_and_has_no_empty_parts_on_tcp(tmp_path: Path) -> None:
    page = Page(report.render(report.data(analyze(packets.capture(tmp_path / "call.pcap", call())))))
    assert "UDP report" in page.text
    assert "TCP report" not in page.text
    assert not {"connections", "over-time", "findings", "definitions"} & parts(page)
    assert {"udp", "capture"} <= parts(page)
    links = {attributes.get("href") for tag, attributes in page.elements if tag == "a"}
    assert not links & {"#connections", "#over-time", "#definitions"}


def test_a_page_with_tcp_stays_a_tcp_report(tmp_path: Path) -> None:
    text = call() + "\n4.000 C > S S 0:0(0) win 65535\n4.010 S > C S. 0:0(0) ack 1 win 65535\n4.011 C > S . ack 1"
    page = Page(report.render(report.data(analyze(packets.capture(tmp_path / "both.pcap", text)))))
    assert "TCP report" in page.text
    assert {"udp", "connections", "over-time"} <= parts(page)
