"""`analyze` runs on every shared capture. The tests check its exit code, and compare its packet counts with those of tshark.

The index of the captures has tshark's counts. These counts include every packet that tshark's dissectors call TCP, in any encapsulation. If
the command counts differently, `OTHERWISE` has its exact counts and the reason. A test fails if its entry in `OTHERWISE` is no longer
needed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from tcptrace_lab import errors
from tcptrace_lab.cli import run
from tcptrace_lab.errors import EXIT_DONE, EXIT_READ_IN_PART, EXIT_UNREADABLE
from tests.support import needs, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping

FIGURES = {"packets": "packets", "tcp_segments": "tcp_packets", "connections": "tcp_streams"}
"""Maps each key of the JSON to the column of the index that has the same count."""

NO_CAPTURES = {"INDEX.tsv", "README.md"}


VALID = jsonschema.Draft202012Validator(json.loads((Path(errors.__file__).parent / "outputs/schemas/analysis.schema.json").read_text()))
VALIDATED_CONNECTIONS = 30
"""The JSON is validated against its schema only for captures with at most this many connections.

Validation takes 10 ms for each connection.
"""


@dataclass(frozen=True, slots=True)
class Otherwise:
    """The command's counts for one capture, and the reason why they differ from the counts of tshark."""

    reason: str
    packets: int
    tcp_segments: int
    connections: int


QUOTED = "Some TCP headers stand in ICMP errors: copies of what was sent before, which tshark counts, some of them as streams of their own."
SAMPLED = "Some TCP headers are samples in an sFlow datagram: reports about packets elsewhere."
NO_LINK_IN_TSHARK = "tshark 4.0 refuses the whole file for its link type."

OTHERWISE: Mapping[str, Otherwise] = {
    "Zious11-wirerust__dns-remoteshell.pcap": Otherwise(
        "Half of the frames are copies of those beside them. A SYN that comes again after a RST opens a connection; tshark joins them.",
        131,
        118,
        13,
    ),
    "seladb-PcapPlusPlus__tcp-reassembly.pcap": Otherwise(SAMPLED, 66, 65, 1),
    "simsong-tcpflow__image2.pcap": Otherwise(QUOTED, 25, 23, 1),
    "the-tcpdump-group-tcpdump__bigtcp-ipv6.pcap": Otherwise(
        "BIG TCP: the IPv6 payload length is 0 and no hop-by-hop header tells the true one. The frame's length does; tshark 4.0 gives up.",
        1,
        1,
        1,
    ),
    "the-tcpdump-group-tcpdump__brcm-tag.pcap": Otherwise(NO_LINK_IN_TSHARK, 23, 0, 0),
    "the-tcpdump-group-tcpdump__dsa.pcap": Otherwise(NO_LINK_IN_TSHARK, 8, 0, 0),
    "the-tcpdump-group-tcpdump__sflow_expanded.pcap": Otherwise(SAMPLED, 1, 0, 0),
    "zeek-zeek__smtp.pcap": Otherwise(QUOTED, 125, 118, 6),
}
"""Maps a file of the index to the counts of tcptrace-lab, if these differ from the index."""


@needs.shared_captures
def test_the_index_names_all_captures() -> None:
    files = {str(path.relative_to(needs.SHARED)) for path in needs.SHARED.rglob("*") if path.is_file() and path.name not in NO_CAPTURES}
    assert files == set(needs.index())
    assert len(files) > 300


@needs.shared_captures
def test_reasons_are_given_for_captures_that_are_there() -> None:
    assert set(OTHERWISE) <= set(needs.index())


@needs.shared_captures
@pytest.mark.parametrize("name", needs.index())
def test_every_capture_is_analyzed_and_counted_as_tshark_counts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`analyze` exits with 0, or with 4 and one error line. It can exit with 3 only if tshark reads no packet either."""
    needs.program("tshark")  # without tshark, a capture that only Wireshark can read gives exit code 5
    row, reported = needs.index()[name], tmp_path / "result.json"
    code = run(["analyze", str(needs.SHARED / name), "--quiet", "--json", str(reported), "-o", str(tmp_path / "report.html")])
    words = capsys.readouterr().err.splitlines()
    assert len(words) == (code != EXIT_DONE), words
    if code == EXIT_UNREADABLE:
        assert (int(row["packets"]), reported.exists()) == (0, False)
        return
    assert code in {EXIT_DONE, EXIT_READ_IN_PART}
    document = json.loads(reported.read_bytes())
    capture = document["capture"]
    if len(document["connections"]) <= VALIDATED_CONNECTIONS:
        VALID.validate(document)
    assert verdicts.of_nothing(document["findings"]) == []
    assert capture["complete"] == (code == EXIT_DONE)
    counted = {figure: capture[figure] for figure in FIGURES}
    theirs = {figure: int(row[column]) for figure, column in FIGURES.items()}
    otherwise = OTHERWISE.get(name)
    if otherwise is None:
        assert counted == theirs
    else:
        assert counted == {figure: getattr(otherwise, figure) for figure in FIGURES} != theirs
