"""TCP is found inside of every encapsulation that the engine removes.

All columns equal those of tshark. Packets that the engine cannot read are reported.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tests.support import engine, needs, packets
from tests.support.framing import link_headers as headers
from tests.support.framing import links
from tests.support.framing.framings import PLAIN, Framing
from tests.support.framing.links import FRAMINGS
from tests.support.peers import tshark
from tests.support.peers.comparison import differences

if TYPE_CHECKING:
    from pathlib import Path


RAW = 101
"""The link type of IP packets without a link header."""


@pytest.fixture(name="every_framing", scope="module")
def _every_framing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("links") / "every-framing.pcapng"
    links.write_all(path)
    return path


@pytest.fixture(name="ours", scope="module")
def _ours(every_framing: Path) -> engine.Read:
    return engine.read(every_framing)


@pytest.mark.parametrize("name", list(FRAMINGS))
def test_tcp_is_found_behind_every_header(name: str, every_framing: Path, ours: engine.Read) -> None:
    needs.tshark_4_0()
    frames = pl.col("frame").is_in(list(links.frames_of(name)))
    mine, theirs = ours.segments.filter(frames), tshark.opinion(every_framing).segments.filter(frames)
    assert theirs["payload_bytes"].to_list() == [0, 0, 100, 3]  # the values of the exchange, so the frames are right
    assert differences(mine, theirs) == {}
    assert mine["captured_payload_bytes"].to_list() == [0, 0, 100, 3]
    if FRAMINGS[name].layers is not None:
        assert mine["layers"].unique().to_list() == [FRAMINGS[name].layers]


NOT_READ_BY_TSHARK = {
    "slip": Framing(8, lambda p: bytes(16) + p, "ip/tcp"),
    "slip-outgoing": Framing(8, lambda p: b"\x01\x45" + bytes(14) + p),
    "slip-ipv6": Framing(8, lambda p: bytes(16) + p, "ipv6/tcp", v6=True),
    "pktap-macos": Framing(149, lambda p: headers.pktap(1, headers.ether(p)), "eth/ip/tcp"),
}
"""Framings that tshark does not read.

These framings are SLIP as libpcap writes it (direction, 15 bytes of header), and PKTAP under macOS's link type 149.
"""


@pytest.mark.parametrize("name", list(NOT_READ_BY_TSHARK))
def test_a_header_that_tshark_does_not_read_hides_what_it_reads_without_that_header(name: str, tmp_path: Path) -> None:
    needs.tshark_4_0()
    framing, path, bare = NOT_READ_BY_TSHARK[name], tmp_path / "framed.pcapng", tmp_path / "bare.pcapng"
    links.write(path, [(framing.link_type, links.exchange_in(framing, 0))])
    links.write(bare, [(RAW, links.exchange_in(Framing(RAW, bytes, v6=framing.v6), 0))])
    read = engine.read(path)
    theirs = tshark.opinion(bare).segments
    assert theirs["payload_bytes"].to_list() == [0, 0, 100, 3]
    assert differences(read.segments, theirs) == {}
    assert read.problems == []
    if framing.layers is not None:
        assert read.segments["layers"].unique().to_list() == [framing.layers]


def test_nothing_is_named_where_everything_is_read(ours: engine.Read) -> None:
    assert ours.problems == []
    assert ours.info["tcp_segments"] == links.EXCHANGE_FRAMES * len(FRAMINGS)
    assert all(link["supported"] for link in ours.info["link_types"])
    assert all(link["name"] != "unknown" for link in ours.info["link_types"])


PACKET = packets.frames("0 C > S P. 1:101 ack 1", link="raw")[0].data
NOT_TCP = {
    "juniper-atm1-management-cell": Framing(137, lambda p: headers.juniper(b"\x80\0\0\0" + p)),
    "juniper-atm2-management-cell": Framing(135, lambda p: headers.juniper(bytes(7) + b"\x70" + p)),
    "sunatm-ilmi": Framing(123, lambda p: headers.sun(5, p)),
    "sunatm-signalling": Framing(123, lambda p: headers.sun(6, p)),
    "802.11-protected": Framing(105, lambda p: headers.decrypted(p, b"\1\2\3\0")),
    "802.11-without-data": Framing(105, lambda p: headers.wifi(p, subtype=4)),
    "kiss-command": Framing(202, lambda p: b"\1" + headers.AX25 + b"\x03\xcc" + p),
    "ax25-net-rom": Framing(3, lambda p: headers.AX25 + b"\x03\xcf" + p),
    "tzsp-keepalive": Framing(128, lambda p: b"\1\4\0\1\1" + headers.ether(p)),
    "macsec-encrypted": Framing(1, lambda p: headers.ether(b"\x0c\0\0\0\0\1\x08\0" + p + bytes(16), 0x88E5)),
    "l2tp-control": Framing(1, lambda p: headers.udp(1701, b"\xc8\2\0\x0c\0\1\0\2\0\0\0\0" + p)),
    "fddi-station-management": Framing(10, lambda p: b"\x41" + bytes(12) + headers.snap(p)),
}
"""Frames that contain a whole TCP packet as data. The engine must find no TCP segment in them."""


@pytest.mark.parametrize("name", list(NOT_TCP))
def test_no_tcp_is_found_where_the_header_says_that_there_is_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "frame.pcapng"
    links.write(path, [(NOT_TCP[name].link_type, [bytes(NOT_TCP[name].wrap(PACKET))])])
    assert tshark.opinion(path).segments.is_empty()
    read = engine.read(path)
    assert (read.info["packets"], read.info["tcp_segments"]) == (1, 0)
    assert not read.loses_data


FRAME = headers.ether(PACKET)
NOT_READ = {
    # The checksum of the first part has half of its bits inverted. The checksum of the second part covers the whole frame (IEEE 802.3br,
    # 99.3).
    "preempted": (
        274,
        [
            b"\x55" * 7 + b"\xe6" + FRAME[:80] + (zlib.crc32(FRAME[:80]) ^ 0xFFFF).to_bytes(4, "little"),
            b"\x55" * 6 + b"\x61\xe6" + FRAME[80:] + zlib.crc32(FRAME).to_bytes(4, "little"),
        ],
    ),
    # The first fragment has the beginning bit set, and the second has the ending bit set (RFC 1990, 3).
    "multilink": (9, [b"\xff\x03\0\x3d\x80\0\0\1" + headers.ppp(PACKET)[:60], b"\xff\x03\0\x3d\x40\0\0\2" + headers.ppp(PACKET)[60:]]),
    # The source route ends with family, offset and length 0 (RFC 1701).
    "source routes": (1, 2 * [headers.outer(47, b"\x40\0\x08\0" + bytes(8) + PACKET)]),
}
"""Frames in which tshark finds TCP and the engine does not. Each value is a pair of link type and frames."""


@pytest.mark.parametrize("name", list(NOT_READ))
def test_what_tshark_reads_and_the_engine_does_not_is_named(name: str, tmp_path: Path) -> None:
    link_type, frames = NOT_READ[name]
    path = tmp_path / "not-read.pcapng"
    links.write(path, [(link_type, frames)])
    assert not tshark.opinion(path).segments.is_empty()
    read = engine.read(path)
    assert read.segments.is_empty()
    [problem] = read.problems
    assert (problem["frame"], problem["count"], problem["loses_data"]) == (1, 2, True)
    assert name in problem["what"]


UNSUPPORTED = {
    "CHAOS": 5,
    "LTALK": 114,
    "MTP3": 141,
    "DOCSIS": 143,
    "BLUETOOTH_HCI_H4": 187,
    "USB_LINUX": 189,
    "CAN20B": 190,
    "IEEE802_15_4_WITHFCS": 195,
    "C_HDLC_WITH_DIR": 205,
    "FRELAY_WITH_DIR": 206,
    "FC_2": 224,
    "NETLINK": 253,
    "DSA_TAG_DSA": 284,
    "unknown": 65_535,
}


@pytest.mark.parametrize("name", list(UNSUPPORTED))
def test_a_link_type_that_is_not_read_is_named_with_its_number(name: str, tmp_path: Path) -> None:
    """The engine names the link type as tcpdump.org's registry does."""
    number = UNSUPPORTED[name]
    path = tmp_path / "unsupported.pcapng"
    links.write(path, [(number, [PACKET, PACKET])])
    read = engine.read(path)
    [problem] = read.problems
    assert problem["what"] == f"link type {number} ({name}) is not supported: the frame is not analyzed"
    assert (problem["frame"], problem["count"], problem["loses_data"]) == (1, 2, True)
    assert [(link["id"], link["supported"]) for link in read.info["link_types"]] == [(number, False)]


@pytest.mark.parametrize("name", list(PLAIN))
def test_a_header_that_the_capture_cut_is_named_or_holds_no_tcp(name: str, tmp_path: Path) -> None:
    """The test truncates the first frame at every length.

    The segment has a row if its fixed header was captured.
    """
    frame = links.exchange_in(PLAIN[name], 0)[2]
    path = tmp_path / "cut.pcap"
    kept = [packets.Frame(packets.BASE_NS, frame[:length], len(frame)) for length in range(len(frame) + 1)]
    packets.write_pcap(path, kept)
    data = bytearray(path.read_bytes())
    data[20:24] = PLAIN[name].link_type.to_bytes(4, "little")
    path.write_bytes(data)
    read = engine.read(path)
    found = read.segments["captured_payload_bytes"].to_list()
    assert found == sorted(found)
    assert found[-1] == 100
    assert set(range(101)) <= set(found)
    assert read.segments["payload_bytes"].unique().to_list() == [100]
    assert sum(problem["count"] for problem in read.problems if problem["loses_data"]) > 0
