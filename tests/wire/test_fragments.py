"""IP fragments are reassembled as in Linux, with bounded memory. Missing fragments are reported.

The rules of Linux are in `net/ipv4/inet_fragment.c`, `net/ipv4/ip_fragment.c` and `net/ipv6/reassembly.c`. Where tshark follows the same
rule, the test also compares the result with tshark.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import GRE

from tests.support import engine, packets
from tests.support.captures.fragmented import DATA_FRAME, exchange, in_parts
from tests.support.peers import tshark
from tests.support.peers.comparison import differences

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHOLE_BYTES = 1400
SECOND_NS = 10**9


def capture(path: Path, parts: Callable[[list[bytes]], list[bytes]], *, v6: bool = False, step_ns: int = 1000) -> Path:
    """Write a capture of the exchange whose data segment is fragmented, and return its path.

    `parts` reorders, removes or adds fragments. The fragments are `step_ns` apart.
    """
    found: list[packets.Frame] = []
    late_ns = 0
    for number, frame in enumerate(exchange(v6)):
        wanted = parts(in_parts(frame.data)) if number == DATA_FRAME else [frame.data]
        for at, data in enumerate(wanted):
            late_ns += step_ns if at else 0
            found.append(packets.Frame(frame.ts_ns + late_ns, data, len(data)))
    packets.write_pcap(path, found, link="raw")
    return path


def sizes(read: engine.Read) -> list[int]:
    return read.segments["payload_bytes"].to_list()


def problem_words(read: engine.Read) -> list[tuple[Any, ...]]:
    """Return three values of each problem: its frame, how often it occurred, and whether data were lost."""
    return [(problem["frame"], problem["count"], problem["loses_data"]) for problem in read.problems]


ORDERS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "in-order": list,
    "reversed": lambda parts: parts[::-1],
    "last-first": lambda parts: [parts[-1], *parts[:-1]],
    "each-twice": lambda parts: [copy for part in parts[:-1] for copy in (part, part)] + parts[-1:],
}


@pytest.mark.parametrize("v6", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("order", list(ORDERS))
def test_fragments_in_any_order_are_one_segment(order: str, v6: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = capture(tmp_path / "fragments.pcap", ORDERS[order], v6=v6)
    read = engine.read(path)
    assert sizes(read) == [0, 0, WHOLE_BYTES, 0]
    assert differences(read.segments, tshark.opinion(path).segments) == {}
    assert read.problems == []
    assert set(read.segments["layers"]) == ({"ipv6/tcp", "ipv6/fragments/tcp"} if v6 else {"ip/tcp", "ip/fragments/tcp"})


def test_the_segment_is_that_of_the_frame_that_completes_it(tmp_path: Path) -> None:
    path = capture(tmp_path / "fragments.pcap", list)
    assert engine.read(path).segments["frame"].to_list() == tshark.opinion(path).segments["frame"].to_list() == [1, 2, 6, 7]


@pytest.mark.parametrize("v6", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("missing", [0, 1, -1], ids=["first", "middle", "last"])
def test_a_missing_fragment_is_named_and_gives_no_segment(missing: int, v6: bool, tmp_path: Path) -> None:  # noqa: FBT001
    def without(parts: list[bytes]) -> list[bytes]:
        return [part for part in parts if part != parts[missing]]

    path = capture(tmp_path / "fragments.pcap", without, v6=v6)
    read = engine.read(path)
    assert sizes(read) == [0, 0, 0]
    assert problem_words(read) == [(3, 1, True)]
    assert "fragments of an IP packet are missing" in read.problems[0]["what"]
    assert not read.info["complete"]


def overlapping(packet: bytes, start: int, end: int) -> bytes:
    """Return a fragment of an IPv4 packet with the payload bytes from `start` to `end`.

    Its header says that more fragments follow.
    """
    whole = IP(packet)
    header = whole.copy()
    header.remove_payload()
    header.frag, header.flags = start // 8, "MF"
    del header.len, header.chksum
    return bytes(header / bytes(whole.payload)[start:end])


def test_fragments_that_overlap_give_their_packet_up_and_are_named(tmp_path: Path) -> None:
    """A host discards a packet whose fragments overlap. RFC 5722 requires this for IPv6, and Linux does it for IPv4 since 4.19.

    Later fragments do not complete the discarded packet.
    """
    whole = exchange()[DATA_FRAME].data
    path = capture(tmp_path / "fragments.pcap", lambda parts: [parts[0], overlapping(whole, 200, 600), *parts[1:]])
    read = engine.read(path)
    assert sizes(read) == [0, 0, 0]
    assert sorted(problem_words(read)) == [(3, 1, True), (5, 1, True)]
    assert {"overlap" in problem["what"] for problem in read.problems} == {True, False}


def test_a_fragment_within_what_came_is_ignored(tmp_path: Path) -> None:
    """All bytes of the fragment have already arrived, so the fragment is ignored (IPFRAG_DUP in Linux)."""
    whole = exchange()[DATA_FRAME].data
    path = capture(tmp_path / "fragments.pcap", lambda parts: [*parts[:2], overlapping(whole, 200, 600), *parts[2:]])
    read = engine.read(path)
    assert sizes(read) == [0, 0, WHOLE_BYTES, 0]
    assert read.problems == []


@pytest.mark.parametrize(("v6", "patience_s"), [(False, 30), (True, 60)], ids=["ipv4", "ipv6"])
def test_fragments_wait_as_long_as_in_linux(v6: bool, patience_s: int, tmp_path: Path) -> None:  # noqa: FBT001
    """After the first fragment, Linux waits `ipfrag_time` or `ip6frag_time` seconds for the others. The packet has four fragments."""
    in_time = capture(tmp_path / "in-time.pcap", list, v6=v6, step_ns=patience_s * SECOND_NS // 3)
    assert sizes(engine.read(in_time)) == [0, 0, WHOLE_BYTES, 0]
    too_late = engine.read(capture(tmp_path / "too-late.pcap", list, v6=v6, step_ns=patience_s * SECOND_NS // 3 + 1))
    assert sizes(too_late) == [0, 0, 0]
    assert problem_words(too_late) == [(3, 2, True)]  # two incomplete packets: the early fragments and the late ones


def test_fragments_of_other_packets_are_kept_apart(tmp_path: Path) -> None:
    """All fragments of a packet have one identification, source, destination and protocol (RFC 791, 3.2)."""

    def mixed(parts: list[bytes]) -> list[bytes]:
        other = [bytes(replace_fields(part, id=9)) for part in parts]
        return [part for pair in zip(parts, other, strict=True) for part in pair][:-1]

    read = engine.read(capture(tmp_path / "fragments.pcap", mixed))
    assert sizes(read) == [0, 0, WHOLE_BYTES, 0]
    assert problem_words(read) == [(4, 1, True)]


def replace_fields(packet: bytes, **fields: int) -> IP:
    ip = IP(packet)
    for name, value in fields.items():
        setattr(ip, name, value)
    del ip.chksum
    return ip


def test_a_cut_fragment_counts_with_its_full_length(tmp_path: Path) -> None:
    """Each fragment is truncated to 64 bytes. So the first fragment has 40 bytes of headers and 24 bytes of data."""
    path = tmp_path / "fragments.pcap"
    parts = [
        frame for number, packet in enumerate(exchange()) for frame in (in_parts(packet.data) if number == DATA_FRAME else [packet.data])
    ]
    kept = [packets.Frame(packets.BASE_NS + number, part[:64], len(part)) for number, part in enumerate(parts)]
    packets.write_pcap(path, kept, link="raw", snaplen_bytes=64)
    read = engine.read(path)
    assert sizes(read) == [0, 0, WHOLE_BYTES, 0]
    assert read.segments["captured_payload_bytes"].to_list() == [0, 0, 24, 0]


def tunnel(packet: bytes) -> bytes:
    """Return an IPv4 packet with GRE, which contains `packet`."""
    return bytes(IP(src="192.0.2.1", dst="192.0.2.2", id=77) / GRE(proto=0x0800) / packet)


def test_fragments_of_a_tunnel_and_in_a_tunnel_are_one_segment(tmp_path: Path) -> None:
    forms: dict[str, Callable[[bytes], list[bytes]]] = {
        "tunnel-in-fragments": lambda packet: in_parts(tunnel(packet)),
        "fragments-in-tunnel": lambda packet: [tunnel(part) for part in in_parts(packet)],
        "both": lambda packet: [
            bytes(replace_fields(outer, id=100 + number))
            for number, part in enumerate(in_parts(packet))
            for outer in in_parts(tunnel(part))
        ],
    }
    for name, form in forms.items():
        path = tmp_path / f"{name}.pcap"
        frames = exchange()
        parts = form(frames[DATA_FRAME].data)
        sent = [*frames[:DATA_FRAME], *(replace(frames[DATA_FRAME], data=part, wire_bytes=len(part)) for part in parts), frames[-1]]
        packets.write_pcap(path, sent, link="raw")
        read = engine.read(path)
        assert sizes(read) == [0, 0, WHOLE_BYTES, 0], name
        assert differences(read.segments, tshark.opinion(path).segments) == {}, name
        assert read.problems == [], name


MAX_LAYERS = 24
"""Maximum number of headers that the engine removes from one frame.

Ethernet, IP and TCP are three headers. A VLAN type and its tag are two.
"""


def test_the_depth_of_headers_is_bounded_and_said(tmp_path: Path) -> None:
    tags = (MAX_LAYERS - 4) // 2
    for count, expected in ((tags, [100]), (tags + 1, []), (100, [])):
        text = f"0 C > S P. 1:101 ack 1 {{vlan {'/'.join(['7'] * count)}}}"
        read = engine.read_text(tmp_path, text)
        assert sizes(read) == expected, count
        assert ["nested" in problem["what"] for problem in read.problems] == ([] if expected else [True]), count
