"""The link overhead of a connection says how many bytes the line carries and which share of them can be data.

The figures are compared with tshark and with calculation by hand.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import polars as pl
import pytest

from tcptrace_lab import analyze, schema
from tcptrace_lab.capture import atm
from tcptrace_lab.capture.atm import AtmForm
from tcptrace_lab.cli.tables import answer
from tcptrace_lab.connections import link_overhead
from tcptrace_lab.report.parts import connection_details
from tests.support import engine, packets
from tests.support.framing.atm_captures import LOSSY, pdu_cells, tshark_rows
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.framing.atm_captures import Conversion

EXCHANGE = """
0     C > S  S   0:0(0)          win 65535  <mss {client_mss}{options}>
+1ms  S > C  S.  0:0(0)   ack 1  win 65535  <mss {server_mss}{options}>
+1ms  C > S  .   1:1(0)   ack 1             <{stamp}>
+1ms  C > S  .   1:{end}  ack 1             <{stamp}>
+1ms  S > C  .   1:1(0)                     <{stamp}>
"""


def exchange(client_mss: int, server_mss: int, sent: int, *, stamped: bool = False) -> str:
    """Return an exchange with a handshake and one segment of `sent` bytes from the client."""
    stamp = "nop, nop, TS val 1 ecr 1" if stamped else ""
    text = EXCHANGE.format(
        client_mss=client_mss, server_mss=server_mss, end=1 + sent, options=", nop, nop, TS val 1 ecr 0" if stamped else "", stamp=stamp
    )
    return text.replace("<>", "")


def row_of(path: Path) -> dict[str, Any]:
    (row,) = engine.read(path).connections.iter_rows(named=True)
    return row


def figures(row: dict[str, Any], side: str) -> tuple[int | None, int | None, float | None]:
    """Return the size of a full segment, the size of its headers, and the largest share of the line that data can take."""
    return row[f"{side}_full_segment_bytes"], row[f"{side}_header_bytes"], row[f"{side}_best_payload_share"]


def over_atm(folder: Path, text: str, form: AtmForm, *, vci: int = 32, name: str = "x") -> Path:
    source = packets.capture(folder / f"{name}.pcap", text)
    target = folder / f"{name}-{form}.atm"
    atm.convert(source, target, form, vci=vci)
    return target


def test_segments_of_9148_bytes_leave_89_9_percent_of_the_cells_to_data(converted: Callable[[str, AtmForm], Conversion]) -> None:
    """A PDU has 9148 + 40 (TCP/IP) + 8 (LLC/SNAP) + 8 (trailer) = 9204 bytes. It takes 192 cells, which are 10,176 bytes on the line."""
    row = row_of(converted(LOSSY, AtmForm.ERF_CELLS).target)
    assert (row["link"], row["vpi"], row["vci"]) == ("atm", 3, 1077)
    assert figures(row, "client") == (9148, 48, 9148 / 10_176)
    assert figures(row, "server") == (9148, None, None)  # the server sent no data, and the headers of ACKs do not count
    assert round(row["client_best_payload_share"] * atm.OC3C_LINE_MBPS, 1) == 134.6
    assert round(row["client_best_payload_share"] * atm.TAXI_100_LINE_MBPS, 1) == 89.9


def test_timestamps_take_12_bytes_of_each_segment(converted: Callable[[str, AtmForm], Conversion]) -> None:
    """At an MTU of 9180, the MSS is 9140. Timestamps take 12 bytes of it, so 9128 bytes are left for data.

    A PDU has 9128 + 52 + 8 + 8 = 9196 bytes. Like a PDU without timestamps, it takes 192 cells.
    """
    row = row_of(converted("atm9180-nagle-on.pcapng", AtmForm.ERF_AAL5).target)
    assert figures(row, "client") == figures(row, "server") == (9128, 60, 9128 / 10_176)


@pytest.mark.parametrize(
    ("form", "header_bytes", "cells"),
    [
        (AtmForm.RFC1483_VCMUX, 40, 31),
        (AtmForm.CLIP_VCMUX, 40, 31),
        (AtmForm.RFC1483_LLC, 48, 32),
        (AtmForm.CLIP, 48, 32),
        (AtmForm.SUNATM, 48, 32),
        (AtmForm.ERF_AAL5, 48, 32),
        (AtmForm.ERF_CELLS, 48, 32),
        (AtmForm.ERF_FILE_CELLS, 48, 32),
        (AtmForm.RFC1483_BRIDGED, 64, 32),
    ],
)
def test_encapsulation_is_counted(tmp_path: Path, form: AtmForm, header_bytes: int, cells: int) -> None:
    """A packet of 1440 + 40 bytes and the trailer of 8 bytes fill 31 cells exactly.

    With LLC/SNAP (8 bytes) or a bridged Ethernet frame (24 bytes), the packet needs one more cell.
    """
    row = row_of(over_atm(tmp_path, exchange(1440, 1440, 1440), form))
    assert figures(row, "client") == (1440, header_bytes, 1440 / (cells * 53))


def test_the_bound_is_that_of_full_segments_whatever_was_sent(tmp_path: Path) -> None:
    """The smaller MSS of the two hosts is the limit, because the MSS of a host shows what its link can carry.

    A PDU of 1428 + 60 + 8 = 1496 bytes takes 32 cells.
    """
    row = row_of(over_atm(tmp_path, exchange(9140, 1440, 100, stamped=True), AtmForm.SUNATM))
    assert figures(row, "client") == (1428, 60, 1428 / (32 * 53))
    assert row["client_cells"] == 2 + 2 + 4  # SYN, ACK and data have 56, 52 and 152 bytes of IP; 72, 68 and 168 with LLC/SNAP and trailer
    assert row["client_cell_payload_share"] == 100 / (row["client_cells"] * 53)


def test_ethernet_leaves_1460_of_1538_bytes_and_12_less_with_timestamps(tmp_path: Path) -> None:
    """A frame of 1514 bytes takes 1538 bytes of the line.

    The other 24 bytes are the FCS (4), the preamble (8) and the interframe gap (12).
    """
    shares = []
    for stamped in (False, True):
        row = row_of(packets.capture(tmp_path / "x.pcap", exchange(1460, 1460, 1000, stamped=stamped)))
        assert (row["link"], row["vpi"], row["vci"], row["client_cells"], row["client_cell_payload_share"]) == ("ethernet", *[None] * 4)
        shares.append(figures(row, "client"))
    assert shares == [(1460, 54, 1460 / 1538), (1448, 66, 1448 / 1538)]
    assert [round(share or 0, 4) for _, _, share in shares] == [0.9493, 0.9415]


def test_vlan_tags_cost_4_bytes_each(tmp_path: Path) -> None:
    tagged = "\n".join(line + "  {vlan 5/6}" for line in exchange(1460, 1460, 1000).strip().splitlines())
    assert figures(row_of(packets.capture(tmp_path / "x.pcap", tagged)), "client") == (1460, 62, 1460 / 1546)


@pytest.mark.parametrize("link", ["raw", "null", "sll", "sll2"])
def test_a_link_without_a_known_cost_has_no_bound(tmp_path: Path, link: str) -> None:
    row = row_of(packets.capture(tmp_path / "x.pcap", exchange(1460, 1460, 1000), link=link))
    assert (row["link"], figures(row, "client")) == (None, (1460, None, None))


def test_without_both_syns_there_is_no_bound(tmp_path: Path) -> None:
    one_syn = exchange(1440, 1440, 1440).strip().splitlines()[1:]
    row = row_of(over_atm(tmp_path, "\n".join(["0" + one_syn[0].removeprefix("+1ms"), *one_syn[1:]]), AtmForm.ERF_CELLS))
    assert (row["link"], figures(row, "client")) == ("atm", (None, 48, None))
    assert row["client_cells"] == 2 + 32


@functools.cache
def cells_by_port(name: str) -> dict[int, int]:
    """Map each source port to its number of cells, which is computed from tshark's IP lengths."""
    ports = [int(row[0]) for row in tshark_rows(CAPTURES / name, ("tcp.srcport",))]
    counted: dict[int, int] = {}
    for port, (first, last) in zip(ports, pdu_cells(name), strict=True):
        counted[port] = counted.get(port, 0) + last - first + 1
    return counted


@pytest.mark.parametrize("name", [LOSSY, "atm9180-nagle-on.pcapng", "ethernet-ipv6-bulk.pcapng"])
@pytest.mark.parametrize("form", [AtmForm.RFC1483_LLC, AtmForm.SUNATM, AtmForm.ERF_AAL5, AtmForm.ERF_CELLS, AtmForm.ERF_FILE_CELLS])
def test_cells_of_a_direction_are_those_of_its_segments(converted: Callable[[str, AtmForm], Conversion], name: str, form: AtmForm) -> None:
    row = row_of(converted(name, form).target)
    for side in schema.SIDES:
        cells = cells_by_port(name)[row[f"{side}_port"]]
        assert row[f"{side}_cells"] == cells
        assert row[f"{side}_cell_payload_share"] == row[f"{side}_payload_bytes"] / (cells * 53)


def test_a_channel_for_each_direction(tmp_path: Path) -> None:
    """The capture merges two one-way circuits.

    Each direction has the cells of its own circuit. The connection as a whole has no channel.
    """
    lines = exchange(1440, 1440, 1440).strip().splitlines()
    paths = []
    for vci, host in ((32, "C"), (33, "S")):
        mine = [f"0.00{at}  {words.split('  ', 1)[1]}" for at, words in enumerate(lines) if words.split()[1] == host]
        paths.append(over_atm(tmp_path, "\n".join(mine), AtmForm.ERF_CELLS, vci=vci, name=f"way-{vci}"))
    read = engine.read(*paths)
    (row,) = read.connections.iter_rows(named=True)
    assert (row["link"], row["vpi"], row["vci"]) == ("atm", None, None)
    by_channel = dict(read.segments.group_by("vci").agg(pl.col("cells").sum()).iter_rows())
    assert by_channel == {32: row["client_cells"], 33: row["server_cells"]} == {32: 2 + 2 + 32, 33: 2 + 2}


def test_what_the_link_damaged_shows_no_headers(tmp_path: Path) -> None:
    """The only data segment has lost a cell, so the length of its headers is uncertain."""
    source = packets.capture(tmp_path / "x.pcap", exchange(1440, 1440, 1440))
    atm.convert(source, tmp_path / "lossy", AtmForm.ERF_CELLS, lose_cells=[20])
    row = row_of(tmp_path / "lossy")
    assert figures(row, "client") == (1440, None, None)
    assert row["client_cells"] == 2 + 2 + 31


def test_the_sentence_has_channel_cells_and_bound(converted: Callable[[str, AtmForm], Conversion]) -> None:
    row = row_of(converted(LOSSY, AtmForm.ERF_CELLS).target)
    cells, data = cells_by_port(LOSSY)[row["client_port"]], row["client_payload_bytes"]
    assert link_overhead.sentence(row, "client") == (
        f"ATM, VPI 3 VCI 1077: {cells:,} cells, of which {data / (cells * 53):.1%}"
        " was data; at most 89.9% of the line rate is data (134.6 of OC-3c's 149.76 Mb/s): full segments of 9,148 bytes "
        "with 48 of headers"
    )
    assert link_overhead.sentence(row, "server") == f"ATM, VPI 3 VCI 1077: {cells_by_port(LOSSY)[5001]:,} cells, of which 0.0% was data"


def test_the_sentence_says_that_timestamps_are_counted(tmp_path: Path) -> None:
    row = row_of(packets.capture(tmp_path / "x.pcap", exchange(1460, 1460, 1000, stamped=True)))
    expected = "Ethernet: at most 94.1% of the line rate is data: full segments of 1,448 bytes with 66 of headers (TCP timestamps counted)"
    assert link_overhead.sentence(row, "client") == expected
    assert link_overhead.sentence(row, "server") == ""


def test_the_json_has_it_and_is_valid(converted: Callable[[str, AtmForm], Conversion]) -> None:
    document = analyze(converted(LOSSY, AtmForm.SUNATM).target).to_dict()
    published = importlib.resources.files("tcptrace_lab").joinpath("outputs/schemas/analysis.schema.json").read_text()
    jsonschema.Draft202012Validator(json.loads(published)).validate(document)
    (connection,) = document["connections"]
    assert connection["link"] == {"kind": "atm", "vpi": 3, "vci": 1077}
    assert connection["client_to_server"]["best_payload_share"] == 9148 / 10_176
    assert connection["server_to_client"]["cells"] == cells_by_port(LOSSY)[connection["server"]["port"]]


def test_the_report_and_the_terminal_show_the_bound(
    converted: Callable[[str, AtmForm], Conversion], capsys: pytest.CaptureFixture[str]
) -> None:
    analysis = analyze(converted(LOSSY, AtmForm.ERF_CELLS).target)
    (shown,), _ = connection_details.connections(
        analysis, analysis.connections.collect(), connection_details.Spent(analysis.accounts, analysis.stalls), 1
    )
    facts = {fact["label"]: fact["value"] for fact in shown["facts"] if fact["label"].startswith("line, ")}
    assert list(facts) == ["line, client → server"]
    assert "at most 89.9% of the line rate is data" in facts["line, client → server"]
    answer.show(analysis)
    assert "connection 0: ATM, VPI 3 VCI 1077: at most 89.9% of the line rate" in capsys.readouterr().out
