"""802.11 frames can be fragments, or they can contain several packets (A-MSDU).

The segments that the engine finds in these frames equal the original segments and those of tshark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import engine, needs, packets
from tests.support.framing import link_headers as headers
from tests.support.framing import links
from tests.support.peers import tshark
from tests.support.peers.comparison import differences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import polars as pl

RAW, WIFI, RADIOTAP, ETHERNET = 101, 105, 127, 1
MORE_FRAGMENTS, RETRY = 4, 8
"""Flags in the header of an 802.11 frame (IEEE 802.11, 9.2.4.1)."""

EXCHANGE = """
    0 C > S S   0:0(0)       win 64240 <mss 1400>
    0 S > C S.  0:0(0)       win 65160 <mss 1400>
    0 C > S P.  1:301(300)
    0 S > C .   1:1201(1200)
    0 S > C P.  1201:1301(100)
    0 C > S .   ack 1301
"""
PACKETS = [frame.data for frame in packets.frames(EXCHANGE, link="raw")]


def _fragments(packet: bytes, sequence: int, count: int = 3, flags: int = 0, **fields: str) -> list[bytes]:
    """Return the fragments of an 802.11 frame that contains `packet` (IEEE 802.11, 10.4)."""
    body = headers.wifi(packet)[24:]
    size = -(-len(body) // count)
    to = headers.TO_DISTRIBUTION_SYSTEM | flags
    return [
        headers.wifi(packet, SC=sequence << 4 | at, FCfield=to | MORE_FRAGMENTS * (at < count - 1), **fields)[:24]
        + body[at * size : (at + 1) * size]
        for at in range(count)
    ]


def _read(path: Path, frames: Sequence[bytes], link_type: int = WIFI) -> engine.Read:
    links.write(path, [(link_type, list(frames))])
    return engine.read(path)


def _sent(
    folder: Path, columns: Sequence[str] = ("seq", "ack", "payload_bytes", "captured_payload_bytes", "flags", "ip_id")
) -> pl.DataFrame:
    return _read(folder / "sent.pcapng", PACKETS, RAW).segments.select(columns)


def _radiotap(frame: bytes) -> bytes:
    """Return the frame with a radiotap header before it.

    The flags of this header say that the frame ends with its checksum.
    """
    return bytes.fromhex("00000900 02000000 10") + headers.fcs(frame)


@pytest.mark.parametrize(("link_type", "wrap"), [(WIFI, bytes), (RADIOTAP, _radiotap)])
@pytest.mark.parametrize("count", [2, 3, 16])
def test_fragments_are_reassembled_in_the_frame_of_the_last(
    count: int, link_type: int, wrap: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    frames = [wrap(part) for at, packet in enumerate(PACKETS) for part in _fragments(packet, 10 + at, count)]
    read = _read(tmp_path / "fragments.pcapng", frames, link_type)
    assert read.problems == []
    assert read.segments["frame"].to_list() == [count * number for number in range(1, len(PACKETS) + 1)]
    sent = _sent(tmp_path)
    assert read.segments.select(sent.columns).equals(sent)
    needs.tshark_4_0()
    assert differences(read.segments, tshark.opinion(tmp_path / "fragments.pcapng").segments) == {}


def test_fragments_of_two_stations_with_one_sequence_number_do_not_mix(tmp_path: Path) -> None:
    one = [part for at, packet in enumerate(PACKETS[:3]) for part in _fragments(packet, at)]
    other = [part for at, packet in enumerate(PACKETS[3:]) for part in _fragments(packet, at, addr2=headers.station(7))]
    frames = [frame for pair in zip(one, other, strict=True) for frame in pair]
    read = _read(tmp_path / "mixed.pcapng", frames)
    assert read.problems == []
    assert sorted(read.segments["payload_bytes"].to_list()) == [0, 0, 0, 100, 300, 1200]
    needs.tshark_4_0()
    assert differences(read.segments, tshark.opinion(tmp_path / "mixed.pcapng").segments) == {}


def test_repeated_fragments_give_no_second_segment(tmp_path: Path) -> None:
    first, middle, last = _fragments(PACKETS[3], 5)
    again = _fragments(PACKETS[3], 5, flags=RETRY)
    read = _read(tmp_path / "repeated.pcapng", [first, again[0], middle, again[1], last, again[2]])
    assert (read.problems, read.segments["frame"].to_list(), read.segments["payload_bytes"].to_list()) == ([], [5], [1200])


def test_a_missing_fragment_is_named_and_only_its_frame_is_lost(tmp_path: Path) -> None:
    whole, broken = _fragments(PACKETS[2], 5), _fragments(PACKETS[3], 6)
    read = _read(tmp_path / "missing.pcapng", [*broken[:2], *whole])
    assert read.segments["payload_bytes"].to_list() == [300]
    [problem] = read.problems
    assert "fragments of an 802.11 frame are missing" in problem["what"]
    assert (problem["frame"], problem["count"], problem["loses_data"]) == (1, 1, True)


def test_an_encrypted_frame_in_fragments_is_named(tmp_path: Path) -> None:
    """The network card has decrypted the fragments, and it has left a check value of unknown length at the end of each fragment."""
    parts = [part[:24] + bytes(4) + part[24:] + b"ICV." for part in _fragments(PACKETS[2], 5, flags=headers.PROTECTED)]
    read = _read(tmp_path / "encrypted.pcapng", [headers.ether(part, 0x2452) for part in parts], ETHERNET)
    [problem] = read.problems
    assert "encrypted or aggregated 802.11 frame in fragments" in problem["what"]
    assert (problem["frame"], problem["count"], problem["loses_data"], read.segments.height) == (1, 3, True, 0)


def _subframe(content: bytes, length: int | None = None) -> bytes:
    """Return one packet of an A-MSDU with its addresses and its length, without padding (IEEE 802.11, 9.3.2.2)."""
    return bytes.fromhex("020000000002 020000000001") + (len(content) if length is None else length).to_bytes(2) + content


def _aggregate(contents: Sequence[bytes], *, end: bytes = b"") -> bytes:
    """Return a QoS frame that contains several packets.

    Each packet except the last is padded to a multiple of four bytes.
    """
    parts = [_subframe(content) for content in contents]
    padded = [part + bytes(-len(part) % 4) for part in parts[:-1]]
    return headers.wifi_qos(PACKETS[0])[:24] + b"\x80\0" + b"".join([*padded, *parts[-1:]]) + end


@pytest.mark.parametrize("groups", [[6], [1, 5], [2, 2, 2], [1, 1, 1, 1, 1, 1]])
def test_every_packet_of_an_aggregate_is_read(groups: list[int], tmp_path: Path) -> None:
    frames, at = [], 0
    for size in groups:
        frames.append(_aggregate([headers.snap(packet) for packet in PACKETS[at : at + size]]))
        at += size
    read = _read(tmp_path / "aggregates.pcapng", frames)
    assert read.problems == []
    sent = _sent(tmp_path)
    assert read.segments.select(sent.columns).equals(sent)
    assert read.segments["frame"].to_list() == [number for number, size in enumerate(groups, 1) for _ in range(size)]
    needs.tshark_4_0()
    theirs = tshark.opinion(tmp_path / "aggregates.pcapng").segments
    assert theirs["tcp_headers"].to_list() == groups
    assert differences(read.segments.unique("frame", keep="first", maintain_order=True), theirs) == {}
    printed = [line["tcp.len"] for line in tshark.frames(tmp_path / "aggregates.pcapng", ["tcp.len"])]
    assert ",".join(printed) == ",".join(map(str, sent["payload_bytes"]))


def test_padding_and_a_checksum_behind_the_last_packet_are_none(tmp_path: Path) -> None:
    for end in (b"\0", bytes(3), b"\1\2\3\4"):
        read = _read(tmp_path / "end.pcapng", [_aggregate([headers.snap(packet) for packet in PACKETS[:2]], end=end)])
        assert (read.problems, read.segments.height) == ([], 2)


def test_a_packet_of_an_aggregate_that_is_not_ip_does_not_hide_the_others(tmp_path: Path) -> None:
    arp = bytes.fromhex("aaaa03 000000 0806") + bytes(28)
    read = _read(tmp_path / "arp.pcapng", [_aggregate([arp, headers.snap(PACKETS[2]), arp, headers.snap(PACKETS[3])])])
    assert (read.problems, read.segments["payload_bytes"].to_list()) == ([], [300, 1200])


def test_a_length_beyond_the_frame_is_named_and_what_precedes_it_is_read(tmp_path: Path) -> None:
    frame = _aggregate([headers.snap(PACKETS[2])])
    frame += bytes(-(len(frame) - 26) % 4) + _subframe(headers.snap(PACKETS[3]), 60_000)
    read = _read(tmp_path / "long.pcapng", [frame])
    assert read.segments["payload_bytes"].to_list() == [300]
    [problem] = read.problems
    assert "A-MSDU subframe header contradict" in problem["what"]


def test_aggregates_within_aggregates_end(tmp_path: Path) -> None:
    """Each A-MSDU contains another A-MSDU as one of its packets.

    This packet has the Ethernet type of overheard 802.11 frames (0x2452).
    """
    frame = _aggregate([headers.snap(PACKETS[2])])
    for _ in range(40):
        frame = _aggregate([bytes.fromhex("aaaa03 000000 2452") + frame, headers.snap(PACKETS[3])])
    read = _read(tmp_path / "deep.pcapng", [frame])
    assert 1 <= read.segments.height <= 40
    assert any("more nested headers" in problem["what"] for problem in read.problems)
