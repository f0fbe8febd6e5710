"""Real captures are converted to every form of TCP over ATM. In each form, tshark and the engine see the TCP of the original."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import dpkt.pcap
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcptrace_lab import schema
from tcptrace_lab.capture import atm
from tcptrace_lab.capture.atm import AtmForm
from tests.support import engine, needs
from tests.support.framing.atm_captures import (
    LOST_FROM,
    NAMES,
    VCI,
    VPI,
    WITNESSED_AS,
    Conversion,
    cell_records,
    ends_pdu,
    payload_of,
    pdu_cells,
    reassembled,
    source_read,
    source_rows,
    tcp_rows,
    tshark_rows,
    under_link_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LINK_COLUMNS = {"layers", "vpi", "vci", "cells"}
"""The columns of a segment that depend on its link. All other columns depend only on TCP and IP."""


CUT_COLUMNS = {"captured_payload_bytes"}
"""The column that the conversion changes.

The captures are truncated to headers, and the conversion writes zeros for the truncated bytes.
"""


FRAME_COLUMNS = tuple(column.name for column in schema.SEGMENTS if column.unit is schema.Unit.FRAME)
"""The columns with frame numbers. Frame numbers differ from the original if each cell is a frame of its own."""


TELLING_CHANNEL = {AtmForm.SUNATM} | {form for form in AtmForm if form.endswith(("aal5", "cells"))}


ON_ATM = {form for form in AtmForm if not form.endswith(("-eth", "-pos"))}


every_capture = pytest.mark.parametrize("name", NAMES)


every_form = pytest.mark.parametrize("form", list(AtmForm))


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
    command = [needs.program("tshark"), "-n", "-r", str(conversion.target), "-V"]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert words.count("AAL5 CRC: ") == words.count(" (correct)\n") == conversion.done.packets
    ip_bytes = [int(row[0]) for row in tshark_rows(conversion.source, ("ip.len",))]
    assert [int(row[0]) for row in tshark_rows(conversion.target, ("atm.aal5t_len",))] == [length + 8 for length in ip_bytes]


@pytest.mark.parametrize("form", [AtmForm.ERF_ETH, AtmForm.ERF_FILE_ETH])
def test_tshark_finds_the_ethernet_fcs_right(converted: Callable[[str, AtmForm], Conversion], form: AtmForm) -> None:
    conversion = converted("raw-bulk.pcapng", form)
    command = [needs.program("tshark"), "-n", "-r", str(conversion.target), "-o", "eth.check_fcs:TRUE", "-Y", "eth.fcs.status == Good"]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(words.splitlines()) == conversion.done.packets


def test_forms_without_a_header_of_their_own_differ_in_the_link_type_alone(converted: Callable[[str, AtmForm], Conversion]) -> None:
    def kept(form: AtmForm) -> tuple[bytes, bytes]:
        data = converted("raw-bulk.pcapng", form).target.read_bytes()
        return data[20:24], data[:20] + data[24:]

    assert kept(AtmForm.FORE_IP) == kept(AtmForm.RFC1483_VCMUX)
    assert kept(AtmForm.CLIP_VCMUX)[1] == kept(AtmForm.RFC1483_VCMUX)[1]
    assert kept(AtmForm.CLIP)[1] == kept(AtmForm.RFC1483_LLC)[1]


def expected_segments(name: str, form: AtmForm, target: Path) -> pl.DataFrame:
    """Return the segments of the original capture, changed as this form of ATM changes them."""
    segments = source_read(name).segments.drop(LINK_COLUMNS).with_columns(captured_payload_bytes="payload_bytes")
    if not form.is_cells:
        return segments
    # In a capture of cells, a segment has the frame number of the last cell of its PDU. The captures contain only IP packets, so frame n of
    # the original becomes the n-th PDU.
    ends = [number for number, cell in enumerate(cell_records(target, bare=form.is_bare), 1) if ends_pdu(cell)]
    frames = {str(number): end for number, end in enumerate(ends, 1)}
    return segments.with_columns(
        pl.col(column).cast(pl.String).replace_strict(frames, return_dtype=schema.SEGMENTS[column].polars_type())
        for column in FRAME_COLUMNS
    )


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
def test_engine_shows_channel_and_cells(converted: Callable[[str, AtmForm], Conversion], form: AtmForm) -> None:
    """In a capture of cells, the engine counts the captured cells. In a capture of PDUs, it computes the number of cells from the length.

    Values that the form does not show are null.
    """
    conversion = converted("atm9188-loss.pcapng", form)
    segments = engine.read(conversion.target).segments
    channel = (VPI, VCI) if form in TELLING_CHANNEL else (None, None)
    assert segments.select("vpi", "vci").unique().rows() == [channel]
    before_ip = {AtmForm.RFC1483_BRIDGED: 24, AtmForm.RFC1483_VCMUX: 0, AtmForm.CLIP_VCMUX: 0, AtmForm.FORE_IP: 0}.get(form, 8)
    ip_bytes = [int(row[0]) for row in tshark_rows(conversion.source, ("ip.len",))]
    counted = [(length + before_ip + 8 + 47) // 48 for length in ip_bytes]
    assert segments["cells"].to_list() == (counted if form in ON_ATM else [None] * len(ip_bytes))


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
    """AAL5 uses the CRC that the catalogue of parametrised CRC algorithms lists as CRC-32/BZIP2. The catalogue has this check value."""
    assert atm.crc32(b"123456789") == 0xFC89_1918


def test_cells_of_a_pdu_lie_back_to_back_at_the_rate_of_oc3c(converted: Callable[[str, AtmForm], Conversion]) -> None:
    """The cells of a packet are sent back to back, and the last cell has the packet's time.

    At 149.76 Mb/s, a cell of 424 bits takes 2831.19658 ns, so 191 cells take 540,758.5 ns. In this capture, a packet of 192 cells was sent
    less than 540,758 ns after the previous packet. Its first cell then has the time of the previous packet.
    """
    conversion = converted("atm9188-loss.pcapng", AtmForm.ERF_CELLS)
    with conversion.target.open("rb") as file:
        times_ns = [int(time * 10**9) for time, _ in dpkt.pcap.Reader(file)]
    sent_ns = source_read(conversion.source.name).segments["ts_ns"].to_list()
    assert times_ns[:4] == [sent_ns[0] - 2831, sent_ns[0], sent_ns[1] - 2831, sent_ns[1]]
    first, last = pdu_cells(conversion.source.name)[LOST_FROM]
    before_ns, packet_ns = sent_ns[LOST_FROM - 1 : LOST_FROM + 1]
    assert packet_ns - 540_758 < before_ns
    assert (last - first, times_ns[first], times_ns[last]) == (191, before_ns, packet_ns)
