"""The ATM line loses a cell or flips a bit. Only the affected segments are reported as damaged."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP

from tcptrace_lab.capture import atm
from tcptrace_lab.capture.atm import AtmForm
from tests.support import engine, packets
from tests.support.framing.atm_captures import IPV6, LOSSY, LOST_FROM, SMALL, Conversion, pdu_cells, source_read
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEADER_COLUMNS = ("conn", "from_client", "seq", "ack", "payload_bytes", "flags", "ip_id", "ttl")
"""The columns whose values are in the first cell, which has LLC/SNAP, an IPv4 header of 20 bytes and a TCP header of 20 bytes."""


def read_without(cell: int, name: str = LOSSY) -> engine.Read:
    """Read the capture as ATM cells, from which the cell with number `cell` is missing."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "lossy.pcap"
        done = atm.convert(CAPTURES / name, target, AtmForm.ERF_CELLS, lose_cells=[cell])
        assert done.cells == pdu_cells(name)[-1][1] + 1
        return engine.read(target)


def assert_damaged(rows: Sequence[int], lossy: engine.Read, *, without: Sequence[int] = (), name: str = LOSSY) -> None:
    """Check the segments that the engine read from a capture with a lost cell.

    They must be the segments of the original, except the rows `without`. The rows `rows`, and no others, must be damaged. Row numbers count
    from 0 in the original.
    """
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
    """Without the last cell, the receiver joins the cells of two segments into one PDU. The CRC of this PDU is wrong."""
    lossy = read_without(pdu_cells(LOSSY)[LOST_FROM][1])
    assert_damaged([LOST_FROM, LOST_FROM + 1], lossy)
    assert lossy.segments["cells"][LOST_FROM : LOST_FROM + 2].to_list() == [191, 192]


def test_a_segment_whose_last_cell_was_lost_keeps_its_time(tmp_path: Path) -> None:
    """An incomplete PDU ends when the next PDU on the channel begins, even a second later.

    The segment has the time of the last cell that was captured.
    """
    source = packets.capture(tmp_path / "x.pcap", "0 C > S S 0:0(0)\n0.001 C > S . 1:1001 ack 1\n1.001 C > S . 1:1001 ack 1")
    cells = [2, 22, 22]  # 40 and 1040 bytes of IP; 56 and 1056 with LLC/SNAP and AAL5 trailer
    atm.convert(source, tmp_path / "lossy", AtmForm.ERF_CELLS, lose_cells=[cells[0] + cells[1] - 1])
    lossy = engine.read(tmp_path / "lossy")
    assert lossy.segments["frame"].to_list() == [2, 2 + 21, 2 + 21 + 22]
    sent_ns = engine.read(source).segments["ts_ns"].to_list()
    cell_ns = 2831  # a cell of 424 bits at 149.76 Mb/s
    assert lossy.segments["ts_ns"].to_list() == [sent_ns[0], pytest.approx(sent_ns[1] - cell_ns, abs=1), sent_ns[2]]
    assert lossy.segments["kind"].to_list() == ["new", "link_damaged", "link_damaged"]
    (row,) = lossy.connections.iter_rows(named=True)
    assert (row["first_frame"], row["last_frame"]) == (2, 45)


def test_a_lost_last_cell_is_a_problem_where_the_tcp_header_was_in_it() -> None:
    """LLC/SNAP and the IPv6 header fill the first of two cells. So the TCP header was in the lost cell.

    The next packet keeps its headers, but it is damaged too.
    """
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
    assert (problem["count"], problem["frame"]) == (1, last)  # the frame of the PDU's last cell: its index + 1, minus 1 for the lost cell


def test_a_pdu_that_never_ends_is_a_problem() -> None:
    """The last cell of the last packet is lost. The captured part of this packet is still reported."""
    (problem,) = read_without(pdu_cells(LOSSY)[-1][1]).problems
    assert "AAL5 PDU" in problem["what"]
    assert problem["count"] == 1


@given(hit=st.integers(0, 66), behind_first=st.integers(0, 3))
def test_whichever_cell_is_lost_the_right_segments_are_damaged(hit: int, behind_first: int) -> None:
    """The capture has 68 packets of 2 to 4 cells.

    A packet without its first cell has no headers. If a packet loses its last cell, the next packet is damaged too.
    """
    first, last = pdu_cells(SMALL)[hit]
    lost = min(first + behind_first, last)
    lossy = read_without(lost, SMALL)
    if lost == first:
        assert_damaged([], lossy, without=[hit], name=SMALL)
        assert [problem["count"] for problem in lossy.problems] == [1]
    else:
        assert_damaged([hit, hit + 1] if lost == last else [hit], lossy, name=SMALL)


def test_what_is_left_of_a_pdu_without_its_first_cell_is_not_taken_for_a_packet(tmp_path: Path) -> None:
    """The first cell of a packet is lost.

    The second cell begins with the TCP payload. This payload is itself an IP packet with TCP, for example from a tunnel or a copied
    capture.
    """
    inner = bytes(IP(src="10.9.9.9", dst="10.8.8.8") / TCP(sport=1111, dport=2222, flags="PA") / bytes(500))
    outer = [bytes(IP(src="192.0.2.1", dst="192.0.2.2") / TCP(sport=40_000, dport=80, flags="A", seq=seq) / inner) for seq in (1, 541)]
    packets.write_pcap(tmp_path / "source.pcap", [packets.Frame(packets.BASE_NS, packet, len(packet)) for packet in outer], link="raw")
    atm.convert(tmp_path / "source.pcap", tmp_path / "cells.pcap", AtmForm.ERF_CELLS, lose_cells=[0])
    lossy = engine.read(tmp_path / "cells.pcap")
    assert lossy.connections.select("client_addr", "server_addr").rows() == [("192.0.2.1", "192.0.2.2")]
    assert (lossy.segments.height, [problem["count"] for problem in lossy.problems]) == (1, [1])


def with_flipped_bit(path: Path, record: int, at: int) -> Path:
    """Flip a bit in byte `at` of a record of the pcap file, and return the path of the changed file.

    Records count from 0.
    """
    data = bytearray(path.read_bytes())
    start = 24
    for _ in range(record):
        start += 16 + int.from_bytes(data[start + 8 : start + 12], "little")
    data[start + 16 + at] ^= 1
    flipped = path.with_suffix(".flipped.pcap")
    flipped.write_bytes(data)
    return flipped


ERF_ATM_BYTES = 20
"""Length of the ERF header and the ATM header of a cell."""


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


def test_cells_of_two_channels_are_distinguished(tmp_path: Path) -> None:
    """Two ATM channels carry equal cells. The captures of both are merged by time, so the cells of the channels alternate."""
    for vci in (32, 33):
        atm.convert(CAPTURES / LOSSY, tmp_path / f"{vci}.pcap", AtmForm.ERF_CELLS, vci=vci)
    merged = engine.read(tmp_path / "32.pcap", tmp_path / "33.pcap")
    assert merged.problems == []
    for vci in (32, 33):
        one = merged.segments.filter(vci=vci).select(HEADER_COLUMNS)
        assert one.equals(source_read(LOSSY).segments.select(HEADER_COLUMNS), null_equal=True)
