"""Each problem in a capture file is reported as a sentence.

The sentence says what is wrong, where the problem is (frame, byte), and how the program handled it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import read
from tcptrace_lab._core import Engine
from tcptrace_lab.errors import TcptraceLabError
from tests.support import engine, needs, packets

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab._core import Problem

SENTENCE = re.compile(r"(?P<what>[^:;]+(?:\(.*\))?)[:;] (?P<done>[^:;]+)")
DONE = re.compile(r"(is|are) (not )?analyzed|was read|was given up|was closed|is taken|were? left out|read as|carried into|ignored")
"""Matches the part of a sentence that says what was done with the bytes."""


def names() -> list[str]:
    return sorted(name for name in needs.index() if name.startswith("malformed/"))


@needs.shared_captures
@pytest.mark.parametrize("name", names())
def test_every_problem_of_a_malformed_capture_says_what_where_and_what_was_done(name: str) -> None:
    path = needs.SHARED / name
    refusal: TcptraceLabError | None = None
    problems: tuple[Problem, ...] = ()
    packets_read = 0
    try:
        tables = read(path)
    except TcptraceLabError as error:
        refusal = error
    else:
        problems, packets_read = tables.problems, tables.info["packets"]
    assert refusal is None or (refusal.what and refusal.remedy and refusal.where.startswith(str(path)))
    for problem in problems:
        sentence = SENTENCE.fullmatch(problem["what"])
        assert sentence, problem
        assert DONE.search(sentence["done"]), problem
        assert problem["path"] == str(path)
        assert problem["frame"] is not None or problem["offset"] is not None, problem
        assert 1 <= problem["count"] <= max(packets_read, 1)


def test_the_byte_of_a_damaged_frame_is_where_its_bytes_begin(tmp_path: Path) -> None:
    """The bytes of frame 2 begin after the file header (24 bytes), the first record (16 + 54) and the header of the second record (16)."""
    text = "0 C > S S 0:0(0)\n1 C > S S 0:0(0) {iplen 19}\n2 C > S S 0:0(0) {iplen 18}"
    path = packets.capture(tmp_path / "x.pcap", text)
    (problem,) = engine.read(path).problems
    assert problem["what"] == "the fields of the IPv4 header contradict each other or the frame's length: the frame is not analyzed"
    assert (problem["path"], problem["frame"], problem["offset"], problem["count"]) == (str(path), 2, 24 + 16 + 54 + 16, 2)
    assert path.read_bytes()[problem["offset"] :].startswith(packets.frames(text)[1].data)


def test_of_merged_files_the_frame_is_reported_and_no_byte(tmp_path: Path) -> None:
    """The damaged frame is the first frame of the second file. In the merged capture, it is frame 2.

    The problem names neither a file nor a byte offset.
    """
    whole = packets.capture(tmp_path / "1.pcap", "0 C > S S 0:0(0)")
    damaged = packets.capture(tmp_path / "2.pcap", "1 C > S S 0:0(0) {iplen 19}")
    (problem,) = engine.read(whole, damaged).problems
    assert (problem["path"], problem["frame"], problem["offset"]) == ("", 2, None)


@pytest.mark.parametrize(
    ("kept", "what"), [(-1, "a frame (53 of 54 bytes are present)"), (-60, "a record header (10 of 16 bytes are present)")]
)
def test_a_cut_file_shows_how_much_of_its_last_record_is_there(tmp_path: Path, kept: int, what: str) -> None:
    path = packets.capture(tmp_path / "x.pcap", "0 C > S S 0:0(0)\n1 C > S S 0:0(0)")
    path.write_bytes(path.read_bytes()[:kept])
    (problem,) = engine.read(path).problems
    assert problem["what"] == f"the capture ends in the middle of {what}; everything before it was read"
    assert (problem["frame"], problem["offset"]) == (2, 24 + 16 + 54)


def test_before_the_first_row_format_and_size_are_known_and_at_the_end_all_is_read(tmp_path: Path) -> None:
    paths = [packets.capture(tmp_path / name, "0 C > S S 0:0(0)\n1 S > C S. 0:0(0)") for name in ("1.pcap", "2.pcapng")]
    reading = Engine([str(path) for path in paths])
    total = sum(path.stat().st_size for path in paths)
    info = reading.info()
    assert (info["format"], info["bytes_total"]) == ("pcap, pcapng", total)
    assert 0 < info["bytes_read"] <= total
    reading.drain()
    assert reading.info()["bytes_read"] == total
