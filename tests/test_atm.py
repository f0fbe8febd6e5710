"""TCP over ATM: real captures rewritten in every form show tshark and the engine the same TCP, and a lost cell hits the right segment."""

from __future__ import annotations

import functools
import os
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpkt.pcap
import engine
import packets
import polars as pl
import pytest
import tshark
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP

from tcptrace_lab import atm
from tcptrace_lab.atm import AtmForm
from tcptrace_lab.errors import CaptureUnreadable, NotACapture, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CAPTURES = Path(__file__).parent.parent / "captures"
NAMES = (
    "atm9180-loss.pcap",
    "atm9180-nagle-on.pcapng",
    "atm9188-loss.pcapng",
    "cooked-bulk.pcapng",
    "cooked-v2-bulk.pcapng",
    "ethernet-ipv6-bulk.pcapng",
    "ethernet-tail-loss.pcapng",
    "loopback-nagle-on.pcapng",
    "raw-bulk.pcapng",
)
VPI, VCI = 3, 1077

LINK_COLUMNS = {"layers", "vpi", "vci", "cells"}
"""What a segment's link decides; all else is TCP's and IP's."""
CUT_COLUMNS = {"captured_payload_bytes"}
"""The captures are cut to headers; converted, they hold zeros in place of what was cut."""
FRAME_COLUMNS = ("frame", "released_by_frame")

WITNESSED_AS = {AtmForm.RFC1483_VCMUX: 101, AtmForm.FORE_IP: 101, AtmForm.CLIP: 100}
"""Forms that tshark 4.0 does not open: it wants LLC in ATM_RFC1483 and IP in ATM_CLIP. The bytes behind the link type it reads as RAW or
as ATM_RFC1483."""
TELLING_CHANNEL = {AtmForm.SUNATM} | {form for form in AtmForm if form.endswith(("aal5", "cells"))}
ON_ATM = {form for form in AtmForm if not form.endswith(("-eth", "-pos"))}


@dataclass(frozen=True, slots=True)
class Conversion:
    """A capture of `captures/` and what became of it."""

    source: Path
    target: Path
    form: AtmForm
    done: atm.Converted


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, AtmForm], Conversion]:
    """Capture's name and form → the conversion, done once."""
    folder = tmp_path_factory.mktemp("atm")

    @functools.cache
    def convert(name: str, form: AtmForm) -> Conversion:
        source = CAPTURES / name
        target = folder / f"{name}.{form}{'.erf' if form.is_bare else '.pcap'}"
        return Conversion(source, target, form, atm.convert(source, target, form, vpi=VPI, vci=VCI))

    return convert


every_capture = pytest.mark.parametrize("name", NAMES)
every_form = pytest.mark.parametrize("form", list(AtmForm))

# What tshark sees.

TCP_FIELDS = ("frame.time_epoch", "tcp.stream", "tcp.seq", "tcp.ack", "tcp.len", "tcp.flags", "tcp.window_size_value", "ip.id", "ip.ttl")


def tshark_rows(path: Path, fields: Sequence[str]) -> list[tuple[str, ...]]:
    """The fields of each frame, as tshark prints them."""
    command = [tshark.needed(), "-n", "-r", str(path), "-T", "fields", "-E", "separator=/t"]
    for preference in tshark.PREFERENCES:
        command += ["-o", preference]
    for name in fields:
        command += ["-e", name]
    with tempfile.TemporaryDirectory() as no_settings:
        environment = os.environ | {"WIRESHARK_CONFIG_DIR": no_settings}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def tcp_rows(path: Path) -> list[tuple[str, ...]]:
    """What tshark says of each TCP segment, and that it finds nothing malformed."""
    rows = tshark_rows(path, (*TCP_FIELDS, "_ws.malformed"))
    assert [row for row in rows if row[-1]] == []
    return [row for row in rows if row[1]]


@functools.cache
def source_rows(name: str) -> list[tuple[str, ...]]:
    return tcp_rows(CAPTURES / name)


def under_link_type(path: Path, link_type: int) -> Path:
    """The pcap file with another link type in its header."""
    data = bytearray(path.read_bytes())
    data[20:24] = struct.pack("<I", link_type)
    other = path.with_suffix(f".{link_type}.pcap")
    other.write_bytes(data)
    return other


@every_form
@every_capture
def test_tshark_sees_the_same_tcp_in_every_form(converted: Callable[[str, AtmForm], Conversion], name: str, form: AtmForm) -> None:
    path = converted(name, form).target
    if form.is_cells:
        path = reassembled(path, bare=form.is_bare)
    elif form in WITNESSED_AS:
        path = under_link_type(path, WITNESSED_AS[form])
    assert tcp_rows(path) == source_rows(name)


@pytest.mark.parametrize("form", sorted(TELLING_CHANNEL))
def test_tshark_sees_the_channel_in_every_frame(converted: Callable[[str, AtmForm], Conversion], form: AtmForm) -> None:
    conversion = converted("atm9180-nagle-on.pcapng", form)
    rows = tshark_rows(conversion.target, ("atm.vpi", "atm.vci", "atm.payload_type"))
    assert {row[:2] for row in rows} == {(str(VPI), str(VCI))}
    if form.is_cells:
        assert len(rows) == conversion.done.cells
        assert sum(int(row[2], 0) == 1 for row in rows) == conversion.done.packets


@pytest.mark.parametrize("form", [AtmForm.ERF_AAL5, AtmForm.ERF_FILE_AAL5])
def test_tshark_finds_trailer_and_crc_right(converted: Callable[[str, AtmForm], Conversion], form: AtmForm) -> None:
    conversion = converted("atm9188-loss.pcapng", form)
    command = [tshark.needed(), "-n", "-r", str(conversion.target), "-V"]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert words.count("AAL5 CRC: ") == words.count(" (correct)\n") == conversion.done.packets
    ip_bytes = [int(row[0]) for row in tshark_rows(conversion.source, ("ip.len",))]
    assert [int(row[0]) for row in tshark_rows(conversion.target, ("atm.aal5t_len",))] == [length + 8 for length in ip_bytes]


@pytest.mark.parametrize("form", [AtmForm.ERF_ETH, AtmForm.ERF_FILE_ETH])
def test_tshark_finds_the_ethernet_fcs_right(converted: Callable[[str, AtmForm], Conversion], form: AtmForm) -> None:
    conversion = converted("raw-bulk.pcapng", form)
    command = [tshark.needed(), "-n", "-r", str(conversion.target), "-o", "eth.check_fcs:TRUE", "-Y", "eth.fcs.status == Good"]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(words.splitlines()) == conversion.done.packets


def test_forms_without_a_header_of_their_own_differ_in_the_link_type_alone(converted: Callable[[str, AtmForm], Conversion]) -> None:
    def kept(form: AtmForm) -> tuple[bytes, bytes]:
        data = converted("raw-bulk.pcapng", form).target.read_bytes()
        return data[20:24], data[:20] + data[24:]

    assert kept(AtmForm.FORE_IP) == kept(AtmForm.RFC1483_VCMUX)
    assert kept(AtmForm.CLIP_VCMUX)[1] == kept(AtmForm.RFC1483_VCMUX)[1]
    assert kept(AtmForm.CLIP)[1] == kept(AtmForm.RFC1483_LLC)[1]


# What the engine sees.


@functools.cache
def source_read(name: str) -> engine.Read:
    return engine.read(CAPTURES / name)


def expected_segments(name: str, form: AtmForm, target: Path) -> pl.DataFrame:
    """The segments of the original with the columns that change."""
    segments = source_read(name).segments.drop(LINK_COLUMNS).with_columns(captured_payload_bytes="payload_bytes")
    if not form.is_cells:
        return segments
    # A PDU's frame is that of its last cell. The captures hold nothing but IP, so frame n is the n-th PDU.
    ends = [number for number, cell in enumerate(cell_records(target, bare=form.is_bare), 1) if ends_pdu(cell)]
    frames = {str(number): end for number, end in enumerate(ends, 1)}
    return segments.with_columns(pl.col(column).cast(pl.String).replace_strict(frames, return_dtype=pl.UInt64) for column in FRAME_COLUMNS)


@every_form
@every_capture
def test_engine_sees_the_same_segments_in_every_form(converted: Callable[[str, AtmForm], Conversion], name: str, form: AtmForm) -> None:
    conversion = converted(name, form)
    ours = engine.read(conversion.target)
    assert ours.problems == []
    expected = expected_segments(name, form, conversion.target)
    differing = [column for column in expected.columns if not expected[column].equals(ours.segments[column], null_equal=True)]
    assert (ours.segments.height, differing) == (expected.height, [])


@every_form
def test_engine_tells_channel_and_cells(converted: Callable[[str, AtmForm], Conversion], form: AtmForm) -> None:
    """Cells are counted where they are captured and reckoned from the length where only the PDU is; what nobody told is null."""
    conversion = converted("atm9188-loss.pcapng", form)
    segments = engine.read(conversion.target).segments
    channel = (VPI, VCI) if form in TELLING_CHANNEL else (None, None)
    assert segments.select("vpi", "vci").unique().rows() == [channel]
    before_ip = {AtmForm.RFC1483_BRIDGED: 24, AtmForm.RFC1483_VCMUX: 0, AtmForm.CLIP_VCMUX: 0, AtmForm.FORE_IP: 0}.get(form, 8)
    ip_bytes = [int(row[0]) for row in tshark_rows(conversion.source, ("ip.len",))]
    counted = [(length + before_ip + 8 + 47) // 48 for length in ip_bytes]
    assert segments["cells"].to_list() == (counted if form in ON_ATM else [None] * len(ip_bytes))


# Cells and PDUs.


def cell_records(path: Path, *, bare: bool) -> list[bytes]:
    """The ERF records of a file of cells, in order, without stuffing."""
    if not bare:
        with path.open("rb") as file:
            return [bytes(data) for _, data in dpkt.pcap.Reader(file)]
    data, records = path.read_bytes(), []
    while data:
        record_bytes, wire_bytes = int.from_bytes(data[10:12], "big"), int.from_bytes(data[14:16], "big")
        records.append(data[: 16 + wire_bytes])
        data = data[record_bytes:]
    return records


def ends_pdu(record: bytes) -> bool:
    return record[19] & 0x02 != 0


def payload_of(pdu: bytes) -> bytes:
    """What a PDU carries. The CRC is zlib's CRC-32 with the bits of each byte, and of the result, the other way round."""
    mirrored = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
    assert int(f"{zlib.crc32(pdu[:-4].translate(mirrored)):032b}"[::-1], 2) == int.from_bytes(pdu[-4:], "big")
    assert pdu[-8:-6] == b"\0\0"
    length = int.from_bytes(pdu[-6:-4], "big")
    assert set(pdu[length:-8]) <= {0}
    assert len(pdu) - length < 8 + 48
    return pdu[:length]


def reassembled(path: Path, *, bare: bool) -> Path:
    """The PDUs of a file of cells as a capture of link type ATM_RFC1483, each at the time of its last cell, as ERF tells it."""
    target, pdu = path.with_suffix(".whole.pcap"), b""
    with target.open("wb") as file:
        file.write(bytes(dpkt.pcap.LEFileHdr(magic=dpkt.pcap.TCPDUMP_MAGIC_NANO, snaplen=packets.SNAPLEN_BYTES, linktype=100)))
        for record in cell_records(path, bare=bare):
            pdu += record[20:]
            if ends_pdu(record):
                fraction, seconds = struct.unpack_from("<II", record)
                payload, pdu = payload_of(pdu), b""
                file.write(struct.pack("<IIII", seconds, (fraction * 10**9) >> 32, len(payload), len(payload)) + payload)
    return target


@given(payload=st.binary(max_size=4000) | st.integers(0, 65_535).map(bytes), vpi=st.integers(0, 255), vci=st.integers(0, 65_535))
def test_any_payload_comes_back_from_its_cells(payload: bytes, vpi: int, vci: int) -> None:
    cells = atm.atm_cells(payload, vpi, vci)
    assert len(cells) == atm.cells(len(payload))
    assert payload_of(b"".join(cell[4:] for cell in cells)) == payload
    headers = [int.from_bytes(cell[:4], "big") for cell in cells]
    assert {(header >> 20, header >> 4 & 0xFFFF) for header in headers} == {(vpi, vci)}
    assert [header & 0xF for header in headers] == [0] * (len(cells) - 1) + [2]
    assert {len(cell) for cell in cells} == {52}


def test_crc_of_the_check_string() -> None:
    """CRC-32/BZIP2, which AAL5's is, in the catalogue of parametrised CRC algorithms."""
    assert atm.crc32(b"123456789") == 0xFC89_1918


def test_cells_of_a_pdu_lie_back_to_back_at_the_rate_of_oc3c(converted: Callable[[str, AtmForm], Conversion]) -> None:
    """424 bits at 149.76 Mb/s are 2831.19658 ns, 191 times that 540,758.5 ns; the last cell has the packet's time."""
    conversion = converted("atm9188-loss.pcapng", AtmForm.ERF_CELLS)
    with conversion.target.open("rb") as file:
        times_ns = [int(time * 10**9) for time, _ in dpkt.pcap.Reader(file)]
    sent_ns = source_read(conversion.source.name).segments["ts_ns"].to_list()
    assert times_ns[:4] == [sent_ns[0] - 2831, sent_ns[0], sent_ns[1] - 2831, sent_ns[1]]
    first, last = pdu_cells(conversion.source.name)[LOST_FROM]
    assert (last - first, times_ns[first], times_ns[last]) == (191, sent_ns[LOST_FROM] - 540_758, sent_ns[LOST_FROM])


# Cells that the line lost.

LOSSY = "atm9188-loss.pcapng"
LOST_FROM = 20
"""A segment of 9148 bytes: its row in the segments table, its packet counted from 0. The next is as long."""
SMALL = "atm9180-nagle-on.pcapng"
IPV6 = "ethernet-ipv6-bulk.pcapng"
HEADER_COLUMNS = ("conn", "from_client", "seq", "ack", "payload_bytes", "flags", "ip_id", "ttl")
"""What the first cell holds, of IPv4 behind LLC/SNAP: 20 bytes of IP header and 20 of TCP's, no options."""


@functools.cache
def pdu_cells(name: str) -> list[tuple[int, int]]:
    """First and last cell of each packet, by tshark's IP lengths."""
    ranges, first = [], 0
    for v4_bytes, v6_payload_bytes in tshark_rows(CAPTURES / name, ("ip.len", "ipv6.plen")):
        ip_bytes = int(v4_bytes) if v4_bytes else int(v6_payload_bytes) + 40
        cells = (ip_bytes + 8 + 8 + 47) // 48
        ranges.append((first, first + cells - 1))
        first += cells
    return ranges


def read_without(cell: int, name: str = LOSSY) -> engine.Read:
    """The capture as cells, of which one was lost."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "lossy.pcap"
        done = atm.convert(CAPTURES / name, target, AtmForm.ERF_CELLS, lose_cells=[cell])
        assert done.cells == pdu_cells(name)[-1][1] + 1
        return engine.read(target)


def assert_damaged(rows: Sequence[int], lossy: engine.Read, *, without: Sequence[int] = (), name: str = LOSSY) -> None:
    """The segments are those of the original, without some rows; those of `rows` alone are marked. Rows count from 0 in the original."""
    original = source_read(name).segments.with_row_index("row").filter(~pl.col("row").is_in(list(without)))
    headers = lossy.segments.select(HEADER_COLUMNS)
    assert headers.equals(original.select(HEADER_COLUMNS), null_equal=True)
    assert original.filter(lossy.segments["kind"] == "link_damaged")["row"].to_list() == list(rows)


@pytest.mark.parametrize("behind_first", [1, 95, 190], ids=["second", "middle", "last but one"])
def test_a_lost_cell_damages_its_segment_and_no_other(behind_first: int) -> None:
    lossy = read_without(pdu_cells(LOSSY)[LOST_FROM][0] + behind_first)
    assert_damaged([LOST_FROM], lossy)
    hit = lossy.segments.row(LOST_FROM, named=True)
    assert (hit["cells"], hit["payload_bytes"]) == (191, 9148)
    assert hit["captured_payload_bytes"] <= 9148 - 48


def test_a_lost_last_cell_damages_its_segment_and_the_one_behind_it() -> None:
    """The receiver takes the cells of both for one PDU, whose CRC is wrong."""
    lossy = read_without(pdu_cells(LOSSY)[LOST_FROM][1])
    assert_damaged([LOST_FROM, LOST_FROM + 1], lossy)
    assert lossy.segments["cells"][LOST_FROM : LOST_FROM + 2].to_list() == [191, 192]


def test_a_lost_last_cell_is_a_problem_where_the_tcp_header_was_in_it() -> None:
    """LLC/SNAP and IPv6 headers fill the first cell of two; the packet behind keeps its headers, and is damaged all the same."""
    ack = 22
    first, last = pdu_cells(IPV6)[ack]
    assert last - first == 1
    lossy = read_without(last, IPV6)
    assert_damaged([ack + 1], lossy, without=[ack], name=IPV6)
    assert [problem["count"] for problem in lossy.problems] == [1]


def test_a_lost_first_cell_takes_the_headers_with_it_and_is_a_problem() -> None:
    first, last = pdu_cells(LOSSY)[LOST_FROM]
    lossy = read_without(first)
    assert_damaged([], lossy, without=[LOST_FROM])
    (problem,) = lossy.problems
    assert "AAL5 PDU" in problem["what"]
    assert (problem["count"], problem["frame"]) == (1, last)  # its last cell: counted from 1, one cell before it gone


def test_a_pdu_that_never_ends_is_a_problem() -> None:
    """The last cell of the last packet is lost: what came of the packet is told, not forgotten."""
    (problem,) = read_without(pdu_cells(LOSSY)[-1][1]).problems
    assert "AAL5 PDU" in problem["what"]
    assert problem["count"] == 1


@settings(deadline=None)  # the first example asks tshark
@given(hit=st.integers(0, 66), behind_first=st.integers(0, 3))
def test_whichever_cell_is_lost_the_right_segments_are_damaged(hit: int, behind_first: int) -> None:
    """68 packets of 2 to 4 cells. The first cell takes the headers away, the last damages the next packet too."""
    first, last = pdu_cells(SMALL)[hit]
    lost = min(first + behind_first, last)
    lossy = read_without(lost, SMALL)
    if lost == first:
        assert_damaged([], lossy, without=[hit], name=SMALL)
        assert [problem["count"] for problem in lossy.problems] == [1]
    else:
        assert_damaged([hit, hit + 1] if lost == last else [hit], lossy, name=SMALL)


def test_what_is_left_of_a_pdu_without_its_first_cell_is_not_taken_for_a_packet(tmp_path: Path) -> None:
    """The second cell begins where the TCP payload does, and this payload is an IP packet with TCP in it (a tunnel, a copied capture)."""
    inner = bytes(IP(src="10.9.9.9", dst="10.8.8.8") / TCP(sport=1111, dport=2222, flags="PA") / bytes(500))
    outer = [bytes(IP(src="192.0.2.1", dst="192.0.2.2") / TCP(sport=40_000, dport=80, flags="A", seq=seq) / inner) for seq in (1, 541)]
    packets.write_pcap(tmp_path / "source.pcap", [packets.Frame(packets.BASE_NS, packet, len(packet)) for packet in outer], link="raw")
    atm.convert(tmp_path / "source.pcap", tmp_path / "cells.pcap", AtmForm.ERF_CELLS, lose_cells=[0])
    lossy = engine.read(tmp_path / "cells.pcap")
    assert lossy.connections.select("client_addr", "server_addr").rows() == [("192.0.2.1", "192.0.2.2")]
    assert (lossy.segments.height, [problem["count"] for problem in lossy.problems]) == (1, [1])


def with_flipped_bit(path: Path, record: int, at: int) -> Path:
    """The pcap file with one bit of one record wrong: of its byte `at`, counted from 0."""
    data = bytearray(path.read_bytes())
    start = 24
    for _ in range(record):
        start += 16 + int.from_bytes(data[start + 8 : start + 12], "little")
    data[start + 16 + at] ^= 1
    flipped = path.with_suffix(".flipped.pcap")
    flipped.write_bytes(data)
    return flipped


ERF_ATM_BYTES = 20
"""ERF header and ATM header."""


def test_a_wrong_bit_in_the_payload_damages_its_segment(converted: Callable[[str, AtmForm], Conversion]) -> None:
    in_pdu = with_flipped_bit(converted(LOSSY, AtmForm.ERF_AAL5).target, LOST_FROM, ERF_ATM_BYTES + 8 + 40 + 5)
    second_cell = pdu_cells(LOSSY)[LOST_FROM][0] + 1
    in_cell = with_flipped_bit(converted(LOSSY, AtmForm.ERF_CELLS).target, second_cell, ERF_ATM_BYTES + 5)
    for path in (in_pdu, in_cell):
        read = engine.read(path)
        assert_damaged([LOST_FROM], read)
        assert read.segments["cells"][LOST_FROM] == 192


def test_a_wrong_bit_in_the_llc_header_is_a_problem(converted: Callable[[str, AtmForm], Conversion]) -> None:
    in_pdu = with_flipped_bit(converted(LOSSY, AtmForm.ERF_AAL5).target, LOST_FROM, ERF_ATM_BYTES)
    in_cell = with_flipped_bit(converted(LOSSY, AtmForm.ERF_CELLS).target, pdu_cells(LOSSY)[LOST_FROM][0], ERF_ATM_BYTES)
    for path in (in_pdu, in_cell):
        read = engine.read(path)
        assert_damaged([], read, without=[LOST_FROM])
        assert [problem["count"] for problem in read.problems] == [1]


def test_cells_of_two_channels_are_told_apart(tmp_path: Path) -> None:
    """The same cells on two channels, merged by time: each cell of one lies between two of the other."""
    for vci in (32, 33):
        atm.convert(CAPTURES / LOSSY, tmp_path / f"{vci}.pcap", AtmForm.ERF_CELLS, vci=vci)
    merged = engine.read(tmp_path / "32.pcap", tmp_path / "33.pcap")
    assert merged.problems == []
    for vci in (32, 33):
        one = merged.segments.filter(vci=vci).select(HEADER_COLUMNS)
        assert one.equals(source_read(LOSSY).segments.select(HEADER_COLUMNS), null_equal=True)


# What cells cost: the figures worked out by hand.


@pytest.mark.parametrize(
    ("pdu_bytes", "cells"),
    [(0, 1), (40, 1), (41, 2), (48, 2), (88, 2), (89, 3), (1508, 32), (9188 + 8, 192), (9180 + 8, 192), (65_535, 1366)],
)
def test_a_pdu_takes_as_many_cells_as_payload_and_trailer_fill(pdu_bytes: int, cells: int) -> None:
    assert atm.cells(pdu_bytes) == cells
    assert atm.line_bytes(pdu_bytes) == cells * 53


def test_share_of_the_line_for_an_mss_of_9148() -> None:
    """9148 + 40 + 8 of LLC/SNAP + 8 of trailer = 9204 bytes: 192 cells, 10,176 bytes on the line."""
    assert atm.payload_share(9148, 40) == 9148 / 10_176
    assert round(atm.payload_share(9148, 40), 4) == 0.8990
    assert round(atm.oc3c_payload_bound_mbps(9148, 40), 1) == 134.6
    assert round(atm.payload_bound_mbps(atm.TAXI_100_LINE_MBPS, 9148, 40), 1) == 89.9


def test_llc_costs_a_cell_where_it_does_not_fit() -> None:
    """An ACK of 40 bytes and the trailer fill one cell; with LLC/SNAP they take two."""
    assert (atm.cells(40), atm.cells(48)) == (1, 2)
    assert atm.payload_share(0, 40) == 0
    assert atm.payload_share(8, 32, llc=False) == 8 / 53
    assert atm.payload_share(8, 32) == 8 / 106


def test_cells_carry_48_of_53_bytes_of_the_line() -> None:
    """149.76 Mb/s of cells are 135.63 of their payload; no segment gets more."""
    assert round(atm.OC3C_LINE_MBPS * 48 / 53, 2) == 135.63
    assert all(atm.oc3c_payload_bound_mbps(mss_bytes, 40) < 135.64 for mss_bytes in range(1, 65_488, 97))


@pytest.mark.parametrize("pdu_bytes", [-1, 65_536])
def test_no_pdu_is_negative_or_longer_than_its_length_field_tells(pdu_bytes: int) -> None:
    with pytest.raises(ValueError, match="an AAL5 PDU holds 0 to 65535 bytes"):
        atm.cells(pdu_bytes)


def test_no_size_is_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        atm.payload_share(-1, 40)


# Sources, and what is refused.

EXCHANGE = """
0.000000001  C > S  S   0:0(0)          win 65535  <mss 1460>
+1ms         S > C  S.  0:0(0)   ack 1  win 65535  <mss 1460>
+1ms         C > S  .   1:1(0)   ack 1
+1ms         C > S  P.  1:1001   ack 1  {header}
+1ms         S > C  udp 100
"""


@pytest.mark.parametrize("link", sorted(packets.LINKS))
@pytest.mark.parametrize("suffix", [".pcap", ".pcapng"])
def test_every_source_link_gives_the_same_file(tmp_path: Path, link: str, suffix: str) -> None:
    """The pure IP capture is the measure: tshark and the engine agree on it."""
    hosts = "host C [2001:db8::1]:40000\nhost S [2001:db8::2]:80\n" if link == "ipv6" else ""
    words = hosts + EXCHANGE.format(header="")
    source = packets.capture(tmp_path / f"source{suffix}", words, link=link)
    measure = packets.capture(tmp_path / "measure.pcap", words, link="raw")
    done = [atm.convert(path, path.with_suffix(".atm"), AtmForm.RFC1483_LLC) for path in (source, measure)]
    assert done == [atm.Converted(packets=5, skipped=0, padded=0, cells=None)] * 2
    assert source.with_suffix(".atm").read_bytes() == measure.with_suffix(".atm").read_bytes()


def test_vlan_tags_and_ethernet_padding_stay_behind(tmp_path: Path) -> None:
    plain, tagged = (
        packets.capture(tmp_path / f"{at}.pcap", EXCHANGE.format(header=header)) for at, header in enumerate(["", "{vlan 5/6, pad 30}"])
    )
    written = []
    for path in (plain, tagged):
        atm.convert(path, path.with_suffix(".atm"), AtmForm.RFC1483_VCMUX)
        written.append(path.with_suffix(".atm").read_bytes())
    assert written[0] == written[1]


def test_frames_without_ip_are_left_out(tmp_path: Path) -> None:
    arp = packets.Frame(packets.BASE_NS, bytes(12) + b"\x08\x06" + bytes(28), 42)
    source = tmp_path / "arp.pcap"
    packets.write_pcap(source, [arp, *packets.frames(EXCHANGE.format(header=""))])
    assert atm.convert(source, tmp_path / "out.pcap", AtmForm.SUNATM) == atm.Converted(packets=5, skipped=1, padded=0, cells=None)


@pytest.mark.parametrize(
    ("header", "settings", "what"),
    [
        ("", {"form": "rfc1483"}, "there is no form 'rfc1483'"),
        ("", {"form": "erf-cells", "vpi": 256}, "VPI 256 or VCI 32 is out of range.*frame 1"),
        ("", {"form": "sunatm", "vci": 65_536}, "VPI 0 or VCI 65536 is out of range"),
        ("", {"form": "clip", "lose_cells": [0]}, "the form clip has no cells to lose"),
        ("", {"form": "erf-cells", "lose_cells": [5, 1000]}, "there are only the cells 0 to "),
        ("{snap 100}", {"form": "clip", "pad_cut": False}, "the snap length cut 954 bytes.*frame 4"),
        ("{snap 50}", {"form": "clip"}, "the snap length cut the packet's headers.*frame 4"),
    ],
)
def test_a_call_that_cannot_be_right_says_why_and_leaves_nothing(tmp_path: Path, header: str, settings: dict[str, Any], what: str) -> None:
    source = packets.capture(tmp_path / "source.pcap", EXCHANGE.format(header=header))
    with pytest.raises(UsageError, match=what):
        atm.convert(source, tmp_path / "target", **settings)
    assert [path.name for path in tmp_path.iterdir()] == ["source.pcap"]


def test_a_packet_longer_than_a_pdu_is_refused(tmp_path: Path) -> None:
    """Loopback's packets reach 65,535 bytes: they fit a PDU alone, not behind LLC/SNAP."""
    source = CAPTURES / "loopback-bulk.pcapng"
    assert atm.convert(source, tmp_path / "target", AtmForm.FORE_IP).packets == 79
    with pytest.raises(UsageError, match=r"not 65543: .*loopback-bulk\.pcapng, frame 18"):
        atm.convert(source, tmp_path / "target", AtmForm.SUNATM)


@pytest.mark.parametrize(("kept", "error"), [(0, NotACapture), (3, NotACapture), (20, CaptureUnreadable), (70, CaptureUnreadable)])
def test_a_cut_source_is_refused(tmp_path: Path, kept: int, error: type[CaptureUnreadable]) -> None:
    for suffix in (".pcap", ".pcapng"):
        source = packets.capture(tmp_path / f"source{suffix}", EXCHANGE.format(header=""))
        source.write_bytes(source.read_bytes()[:kept])
        with pytest.raises(error, match=source.name):
            atm.convert(source, tmp_path / "target", AtmForm.CLIP)
        assert not (tmp_path / "target").exists()


def test_a_capture_is_not_written_over_itself(tmp_path: Path) -> None:
    source = packets.capture(tmp_path / "source.pcap", EXCHANGE.format(header=""))
    before = source.read_bytes()
    with pytest.raises(UsageError, match="source and target are one file"):
        atm.convert(source, source, AtmForm.CLIP)
    assert source.read_bytes() == before
