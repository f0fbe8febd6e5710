"""Compressed TCP/IP headers on PPP links (RFC 1144) are rebuilt without error, or counted as undecoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tests.support import engine, needs, packets
from tests.support.framing import links
from tests.support.framing.van_jacobson import COMPRESSED, UNCOMPRESSED, Compressor
from tests.support.peers import tshark
from tests.support.peers.comparison import differences

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RAW, PPP, PPP_WITH_DIRECTION = 101, 9, 204
GOOD = 1
"""The checksum status that tshark gives to a correct checksum."""

EXCHANGE = """
    host A 10.0.0.1:1023
    host B 10.0.0.2:513
    host C 10.0.0.1:40000
    host D 10.0.0.2:80
    0 A > B S   0:0(0)  win 4096 <mss 536>
    0 B > A S.  0:0(0)  win 4096 <mss 536>
    0 A > B .
    0 C > D S   0:0(0)  win 8192 <mss 536, sackOK>
    0 D > C S.  0:0(0)  win 8192 <mss 536, sackOK>
    0 C > D .
    0 A > B P.  1:2(1)
    0 B > A P.  1:2(1)  win 4095
    0 A > B P.  2:3(1)  win 4096
    0 B > A P.  2:3(1)  win 4096
    0 A > B P.  3:4(1)
    0 C > D P.  1:101(100)
    0 D > C .   1:537(536)
    0 D > C .   537:1073(536)
    0 D > C .   1073:1609(536)
    0 C > D .   ack 1073 win 7000
    0 B > A PU. 3:4(1) {id 900}
    0 D > C .   1609:2145(536)
    0 C > D .   ack 2145 win 8192
    0 D > C .   2145:2681(536) {id 7}
    0 D > C P.  2681:2700(19)  {id 8}
    0 D > C P.  2681:2700(19)  {id 9}
    0 D > C .   2700:3236(536) {id 10}
    0 A > B .
    0 C > D .   ack 2681 <sack 2700:3236>
    0 C > D .   ack 3236
    0 C > D F.  101:101(0)
    0 D > C F.  3236:3236(0)
    0 C > D .
"""
"""A terminal session with echoed characters, and another transfer.

Among the segments are special cases of the method, urgent data, a retransmission, options and jumps of the IP ID.
"""

PACKETS = [frame.data for frame in packets.frames(EXCHANGE, link="raw")]
SENDERS = [packet[12:16] == b"\x0a\0\0\x01" for packet in PACKETS]
"""For each packet, whether the capturing host (10.0.0.1) sent it."""


def _compressed() -> list[tuple[int, bytes]]:
    """Return two values for each packet: its PPP protocol number, and its frame with the direction byte."""
    lines = {True: Compressor(), False: Compressor()}
    forms = [lines[sent].compress(packet) for packet, sent in zip(PACKETS, SENDERS, strict=True)]
    return [(number, bytes((sent,)) + b"\xff\x03\0" + bytes((number,)) + body) for (number, body), sent in zip(forms, SENDERS, strict=True)]


def _read(path: Path, frames: Sequence[bytes], link_type: int = PPP_WITH_DIRECTION) -> engine.Read:
    links.write(path, [(link_type, list(frames))])
    return engine.read(path)


def _undecoded(read: engine.Read) -> tuple[int | None, int]:
    """Return the first undecoded frame, and the number of undecoded frames."""
    [problem] = read.problems
    assert problem["loses_data"]
    assert "Van Jacobson's method" in problem["what"]
    return problem["frame"], problem["count"]


def test_rebuilt_segments_equal_those_that_were_sent_and_tsharks(tmp_path: Path) -> None:
    """Some headers are rebuilt wrongly by tshark 4.0, and its own checksum test fails for them.

    These are the headers of data after a whole header, and the headers of urgent data.
    """
    numbers, frames = zip(*_compressed(), strict=True)
    assert (numbers.count(COMPRESSED), numbers.count(UNCOMPRESSED)) == (16, 7)
    ours = _read(tmp_path / "compressed.pcapng", frames)
    assert ours.problems == []
    sent = _read(tmp_path / "sent.pcapng", PACKETS, RAW).segments
    for column in sent.columns:
        if column not in {"frame_bytes", "layers"}:
            assert ours.segments[column].equals(sent[column]), column
    assert ours.segments["layers"].unique().sort().to_list() == ["ppp/ip/tcp", "ppp/vj/ip/tcp"]
    needs.tshark_4_0()
    right = tshark.opinion(tmp_path / "compressed.pcapng").segments.filter(pl.col("checksum") == GOOD)
    assert right.filter(pl.col("protocols").str.contains("vjc")).height >= numbers.count(COMPRESSED) // 2
    assert differences(ours.segments.filter(pl.col("frame").is_in(right["frame"].to_list())), right) == {}


@pytest.mark.parametrize(
    ("lost", "based"),
    [
        (12, [13, 14, 16, 17, 19, 20]),  # the next segment goes to the wrong connection, so it is lost too
        (13, [14, 17, 19, 20]),
        (15, [18]),
    ],
)
def test_after_a_loss_a_connection_waits_for_a_whole_header(lost: int, based: list[int], tmp_path: Path) -> None:
    """`based` lists the compressed segments that follow the lost frame, up to the next whole header."""
    frames = [frame for _, frame in _compressed()]
    read = _read(tmp_path / "loss.pcapng", frames[:lost] + frames[lost + 1 :])
    assert _undecoded(read) == (based[0], len(based))  # one earlier frame is missing, so an index in `frames` is a frame number
    assert read.segments["frame"].to_list() == [at for at in range(1, len(frames)) if at not in based]


def test_a_segment_with_a_damaged_byte_is_not_one(tmp_path: Path) -> None:
    frames = [frame for _, frame in _compressed()]
    frames[13] = frames[13][:-1] + b"?"
    read = _read(tmp_path / "damaged.pcapng", frames)
    undecoded = [14, 15, 18, 20, 21]  # the damaged segment and those that depend on it
    assert _undecoded(read) == (undecoded[0], len(undecoded))
    assert read.segments["frame"].to_list() == [number for number in range(1, len(frames) + 1) if number not in undecoded]


def test_without_direction_only_whole_headers_are_read_as_by_tshark(tmp_path: Path) -> None:
    """The checksum stays equal if the addresses, ports and sequence numbers of two hosts are swapped.

    So the checksum does not show the direction.
    """
    forms = _compressed()
    read = _read(tmp_path / "ppp.pcapng", [frame[1:] for _, frame in forms], PPP)
    first = next(at for at, (number, _) in enumerate(forms, 1) if number == COMPRESSED)
    assert _undecoded(read) == (first, sum(number == COMPRESSED for number, _ in forms))
    needs.tshark_4_0()
    assert differences(read.segments, tshark.opinion(tmp_path / "ppp.pcapng").segments) == {}


def test_a_segment_that_snaplen_truncates_cannot_be_confirmed(tmp_path: Path) -> None:
    forms = _compressed()
    path = tmp_path / "cut.pcap"
    packets.write_pcap(path, [packets.Frame(packets.BASE_NS + at, frame[:300], len(frame)) for at, (_, frame) in enumerate(forms)])
    data = bytearray(path.read_bytes())
    data[20:24] = PPP_WITH_DIRECTION.to_bytes(4, "little")
    path.write_bytes(data)
    read = engine.read(path)
    kept = 12  # frames before two long segments; the first of these has a whole header
    assert [number for number, _ in forms[kept : kept + 2]] == [UNCOMPRESSED, COMPRESSED]
    assert _undecoded(read)[0] == kept + 2
    assert read.segments["frame"].to_list()[: kept + 1] == list(range(1, kept + 2))
