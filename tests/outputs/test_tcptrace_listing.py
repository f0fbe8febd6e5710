"""Our long listing in tcptrace's form equals the listing of tcptrace 6.6.7."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import read
from tcptrace_lab.outputs.tcptrace_figures import FIGURES, Direction
from tcptrace_lab.outputs.tcptrace_listing import host_letters, write_listing
from tests.support import packets, transfer
from tests.support.command import only_line, tcptrace_lab
from tests.support.peers import tcptrace, tcptrace_rules
from tests.support.peers.xplot_files import OTHERWISE, drawn_alike

if TYPE_CHECKING:
    from pathlib import Path

FIELD = re.compile(r"     (?P<label>\S.{0,17}?): *(?P<value>\S+) (?P<unit>bytes|pkts|times|segs|secs|ms|Bps|) *(?=     |$)")
"""Matches one value of one direction in the listing: label, value and unit, with the spaces that tcptrace prints."""

ONLY_THEIRS = re.compile(
    r"\d+ arg|Ostermann's|elapsed wallclock|\t  (?:For the following|multiply-|considered|of a segment)|       \*\*|no traced"
)
ONLY_OURS = re.compile(r"\t  (?:The next 5|their times)|       \*\*")

NOT_LISTED_ALIKE = {"hardware dups", "ambiguous acks", "RTT min (last)", "RTT max (last)", "RTT avg (last)", "RTT sdv (last)"}
"""Labels that are listed only if their count is not 0. `tcptrace_rules` compares their values."""


def _ours(capture: Path) -> list[str]:
    tables = read(capture)
    text = io.BytesIO()
    write_listing(tables.connections, tables.info, str(capture), text)
    return [line for line in text.getvalue().decode().splitlines() if line and not ONLY_OURS.match(line)]


def _theirs(capture: Path) -> list[str]:
    return [line for line in tcptrace.run(capture, "-lrW").splitlines() if line and not ONLY_THEIRS.match(line)]


def _labels(line: str) -> list[str]:
    return [field["label"] for field in FIELD.finditer(line)]


@pytest.mark.parametrize("capture", [path for path in drawn_alike() if path.name not in OTHERWISE], ids=lambda path: path.name)
def test_lines_stand_as_in_tcptraces_listing(capture: Path, tmp_path: Path) -> None:
    """Both listings have the same labels in the same order. The lines above the labels are equal too.

    Two differences are allowed: tcptrace does not count packets other than IP, and its times can be 1 µs short.
    """
    copy = tcptrace.readable(capture, tmp_path)
    assert copy is not None
    shapes = [[_shape(line) for line in lines] for lines in (_ours(copy), _theirs(copy))]
    ours, theirs = ([line for line in lines if line not in NOT_LISTED_ALIKE] for lines in shapes)
    assert ours == theirs


def _shape(line: str) -> str:
    """Return the part of a line that must be equal in both listings."""
    labels = _labels(line)
    if labels:
        assert labels == [labels[0]] * 2
        return labels[0]
    line = re.sub(r"(elapsed time:).*", r"\1", line)
    line = re.sub(r"^\d+ packets seen, (\d+ TCP packets traced).*", r"\1", line)
    return re.sub(r"(host \w+: +)(\S+):(\d+)$", lambda found: f"{found[1]}{tcptrace.address(found[2])}:{found[3]}", line)


def test_figures_are_those_of_tcptrace_where_both_mean_the_same(tmp_path: Path) -> None:
    """Our values equal those of tcptrace wherever `tcptrace_rules` says that they have one meaning."""
    capture = next(path for path in drawn_alike() if path.name.startswith("ethernet-two-way."))
    copy = tcptrace.readable(capture, tmp_path)
    assert copy is not None
    row = read(copy).connections.collect().row(0, named=True)
    theirs = {_labels(line)[0]: FIELD.findall(line) for line in _theirs(copy) if _labels(line)}
    ours = {_labels(line)[0]: FIELD.findall(line) for line in _ours(copy) if _labels(line)}
    compared = [figure for figure in FIGURES if figure.label in ours and figure.label != "initial window"]
    alike = 0
    for figure in compared:
        for at, name in enumerate(("client", "server")):
            direction = Direction(row, name)
            printed = theirs[figure.label][at][1]
            if figure.value(direction) is not None and tcptrace_rules.printed(figure, direction) == [figure.value(direction)]:
                alike += 1
                assert ours[figure.label][at] == theirs[figure.label][at] or not tcptrace_rules.same(figure, direction, printed)
    assert alike > 60


def test_host_letters_go_on_behind_z() -> None:
    assert [host_letters(number) for number in (0, 25, 26, 51, 52, 701, 702)] == ["a", "z", "aa", "az", "ba", "zz", "aaa"]


def test_the_command_writes_the_listing(tmp_path: Path) -> None:
    packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    done = tcptrace_lab("export", "transfer.pcap", "--format", "tcptrace", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\tfilename:      transfer.pcap\n" in done.stdout
    assert done.stdout.count(b"unique bytes sent:") == 2


def test_the_listing_is_no_format_of_tables(tmp_path: Path) -> None:
    packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    done = tcptrace_lab("export", "transfer.pcap", "--format", "tcptrace", "--table", "flows", folder=tmp_path)
    assert done.returncode == 2
    assert only_line(done.stderr) == "tcptrace-lab: tcptrace is not a table format; leave --table out"
