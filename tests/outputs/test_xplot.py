"""The xplot files equal those of tcptrace 6.6.7 with the options `-S` and `-F`, line by line. Our files also follow xplot's grammar.

`golden/tcptrace-deviations.tsv` lists the captures that both programs read differently. For all other captures, the time-sequence and
segment-size graphs must be equal. The tests ignore titles (IPv6 addresses), the places of labels, and the marks of third duplicate ACKs,
which tcptrace counts differently.

The files of `-T`, `-R` and `-N` must have equal points. Each comparing function names the deviations of tcptrace that it allows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import read
from tcptrace_lab.outputs.xplot import files, write
from tests.support import needs, packets, transfer
from tests.support.captures.real_captures import real
from tests.support.command import only_line, tcptrace_lab
from tests.support.peers import tcptrace
from tests.support.peers.xplot_files import OTHERWISE, drawn_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


GRAPHS = ("tsg", "ssize")
MARKS = "dot|diamond|box|plus|[udlrhv]arrow|[udlrhv]tick"
COLOURS = "white|green|red|blue|yellow|purple|orange|magenta|pink"
TIME = r"-?\d+\.\d{6}"
COMMAND = re.compile(rf"(?:{COLOURS}|go|line {TIME} -?\d+ {TIME} -?\d+|(?:{MARKS}|(?P<text>[ablr]text)) {TIME} -?\d+(?: (?:{COLOURS}))?)")
"""Matches a command of xplot that tcptrace uses. After a text command, the text is on the next line."""


def _drawn(capture: Path, folder: Path) -> Path:
    tables = read(capture)
    write(tables.segments, tables.connections, str(folder))
    return folder


def _compared(path: Path) -> list[str]:
    """Return the lines of a graph that must be equal in both programs."""
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [line for number, line in enumerate(lines) if number != 2 and not line.startswith("ltext")]
    thirds = {at for at, line in enumerate(kept) if line == "3" and kept[at - 1].startswith("atext")}
    return [line for at, line in enumerate(kept) if at not in thirds and at + 1 not in thirds]


@needs.shared_captures
def test_many_captures_are_compared() -> None:
    assert len(drawn_alike()) > 70


@pytest.mark.parametrize("capture", needs.each(drawn_alike()))
def test_graphs_equal_tcptraces(capture: Path, tmp_path: Path) -> None:
    copy = tcptrace.readable(capture, tmp_path)
    assert copy is not None
    ours, theirs = _drawn(copy, tmp_path / "ours"), tmp_path / "theirs"
    theirs.mkdir()
    tcptrace.run(copy, "-S", "-F", folder=theirs)
    names = {path.name for path in theirs.iterdir()}
    assert names
    others = {name for name in names if not (ours / name).exists() or _compared(ours / name) != _compared(theirs / name)}
    assert bool(others) == (capture.name in OTHERWISE), sorted(others)


Points = dict[str, list[tuple[str, int]]]
"""The dots of each colour, in order. A dot has a time and a value."""

OVERFLOWN = 1 << 31
"""The number that tcptrace prints for a rate that overflows its 32-bit integer."""


def _points(path: Path) -> Points:
    found: Points = {}
    colour = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if re.fullmatch(COLOURS, line):
            colour = line
        elif words[:1] == ["dot"]:
            found.setdefault(words[3] if len(words) > 3 else colour, []).append((words[1], int(words[2])))
    return found


def _same_rate(ours: int, theirs: int) -> bool:
    """Return whether two rates are equal, apart from rounding.

    Tcptrace divides by seconds in floating point, so its rate can be too low by one.
    """
    return ours - theirs in {0, 1} or (theirs == OVERFLOWN <= ours)


def _rates_differ(ours: Points, theirs: Points) -> bool:
    """Return whether the rates differ. Rates are drawn for each segment (yellow), for ten segments (red) and for all segments (blue)."""
    return any(
        [time for time, _ in ours.get(colour, [])] != [time for time, _ in points]
        or not all(_same_rate(mine, other) for (_, mine), (_, other) in zip(ours[colour], points, strict=True))
        for colour, points in theirs.items()
    )


def _round_trips_differ(ours: Points, theirs: Points) -> bool:
    """Return whether the RTT samples differ. Tcptrace omits samples of at most 1 µs."""
    left = list(theirs.get("red", []))
    for point in ours.get("red", []):
        if left and left[0] == point:
            left.pop(0)
        elif point[1] > 0:
            return True
    return bool(left)


def _flights_differ(ours: Points, theirs: Points) -> bool:
    """Return whether one of four lines differs.

    The lines are: bytes in flight (red), their mean (blue), receive window (yellow), mean over time (green).

    Tcptrace counts one outstanding byte too many, which changes the red and the blue line. The yellow line is equal in both programs.
    Tcptrace draws each point of the green line at the time of the previous sample, so the last sample has no point.
    """
    if ours.get("yellow") != theirs.get("yellow"):
        return True
    if [time for time, _ in ours.get("green", [])][:-1] != [time for time, _ in theirs.get("green", [])]:
        return True
    return any(
        [time for time, _ in ours.get(colour, [])] != [time for time, _ in theirs.get(colour, [])]
        or not all(other - mine in {0, 1} for (_, mine), (_, other) in zip(ours.get(colour, []), theirs.get(colour, []), strict=True))
        for colour in ("red", "blue")
    )


CURVES: Mapping[str, Callable[[Points, Points], bool]] = {"tput": _rates_differ, "rtt": _round_trips_differ, "owin": _flights_differ}
"""For each graph, a function that compares its points.

The function returns whether the points differ by more than tcptrace's known deviations.
"""

UNSEEN = {"zeek-zeek__mixed-vlan-mpls.pcap"}
"""Captures in which tcptrace does not see the first connection."""


@pytest.mark.parametrize("capture", needs.each(path for path in drawn_alike() if path.name not in UNSEEN))
def test_points_of_rates_round_trips_and_flights_are_tcptraces(capture: Path, tmp_path: Path) -> None:
    copy = tcptrace.readable(capture, tmp_path)
    assert copy is not None
    ours, theirs = _drawn(copy, tmp_path / "ours"), tmp_path / "theirs"
    theirs.mkdir()
    tcptrace.run(copy, "-T", "-R", "-N", folder=theirs)
    names = sorted(path.name for path in theirs.iterdir())
    graphs = {name: CURVES[name.removesuffix(".xpl").rpartition("_")[2]] for name in names}
    assert graphs
    assert [name for name, differ in graphs.items() if differ(_points(ours / name), _points(theirs / name))] == []


def _commands(text: str) -> Iterator[str]:
    """Yield the commands after the header of an xplot file, without the texts of labels."""
    lines = iter(text.splitlines())
    head = [next(lines) for _ in range(7)]
    assert head[0] in {"timeval double", "timeval signed"}
    assert (head[1], head[3], head[4], head[5]) == ("title", "xlabel", "time", "ylabel")
    for line in lines:
        yield line
        command = COMMAND.fullmatch(line)
        if command is not None and command["text"]:
            next(lines)


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-reordering", "ethernet-slow-reader", "ethernet-duplicates"])
def test_every_line_is_in_xplots_grammar_and_go_ends_each_file(name: str, tmp_path: Path) -> None:
    capture = next(path for path in real() if path.name.startswith(f"{name}.pcap"))
    written = sorted(_drawn(capture, tmp_path).iterdir())
    assert {path.name for path in written} == {
        f"{way}_{graph}.xpl" for way in ("a2b", "b2a") for graph in ("tsg", "tput", "rtt", "owin", "ssize")
    }
    for path in written:
        commands = list(_commands(path.read_text(encoding="utf-8")))
        assert [line for line in commands if not COMMAND.fullmatch(line)] == []
        assert commands[-1] == "go"
        assert commands.count("go") == 1


def test_graphs_are_the_same_however_many_segments_are_drawn_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = transfer.TEXT + "\n    host D 10.0.0.9:4000\n    +1 D > S S 0:0(0)\n    +0.1 D > S . 1:101 ack 1\n"
    capture = packets.capture(tmp_path / "two.pcap", text)
    whole = {path.name: path.read_text() for path in _drawn(capture, tmp_path / "whole").iterdir()}
    monkeypatch.setattr(files, "SLICE_SEGMENTS", 3)
    assert {path.name: path.read_text() for path in _drawn(capture, tmp_path / "parts").iterdir()} == whole
    assert len(whole) == 20


def test_the_command_writes_a_folder(tmp_path: Path) -> None:
    packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    done = tcptrace_lab("export", "transfer.pcap", "--format", "xplot", "-o", "graphs", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"tcptrace-lab: graphs for xplot written: graphs\n")
    assert (tmp_path / "graphs" / "a2b_tsg.xpl").read_text().endswith("go\n")


def test_graphs_do_not_go_to_standard_output_or_into_a_file(tmp_path: Path) -> None:
    packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    done = tcptrace_lab("export", "transfer.pcap", "--format", "xplot", folder=tmp_path)
    assert done.returncode == 2
    assert only_line(done.stderr) == "tcptrace-lab: there are several output files; name a folder with -o"
    done = tcptrace_lab("export", "transfer.pcap", "--format", "xplot", "-o", "transfer.pcap", folder=tmp_path)
    assert "the output is not a directory" in only_line(done.stderr)
