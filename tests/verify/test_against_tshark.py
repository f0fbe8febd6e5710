"""Every segment of every real capture is compared with tshark: its header fields, and the conclusions from them.

The captures are those of `../shared/captures` and those of `captures/`. A rule of `tcptrace_lab.verify.rules` must explain each different
conclusion. The differences in header fields must equal the list in `deviations`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab._core import EngineError
from tcptrace_lab.cli import run
from tcptrace_lab.errors import EXIT_DONE, EXIT_READ_IN_PART, EXIT_UNREADABLE
from tcptrace_lab.verify import verify
from tcptrace_lab.verify.differences import UNEXPLAINED
from tcptrace_lab.verify.fields import OURS
from tcptrace_lab.verify.segments import ONLY
from tests.support import engine, needs
from tests.support.captures.real_captures import REFUSED, REFUSED_BY_TSHARK, real
from tests.support.peers import tshark
from tests.support.peers.comparison import count_differences
from tests.support.peers.deviations import COUNTED_OTHERWISE, DEVIATIONS

if TYPE_CHECKING:
    from pathlib import Path

HEADER_ITEMS = {*OURS, *ONLY}
"""Items that come from packet headers. All other items are conclusions."""


def malformed() -> list[Path]:
    """Return the damaged shared captures, or an empty list if the shared captures are missing."""
    return [needs.SHARED / name for name in needs.index() if name.startswith("malformed/")]


@needs.shared_captures
def test_shared_captures_are_there() -> None:
    assert len(real()) > 300


@needs.shared_captures
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_other_formats_are_refused(name: str) -> None:
    with pytest.raises(EngineError) as refusal:
        engine.read(needs.SHARED / name)
    assert refusal.value.kind == "unsupported"


@needs.shared_captures
@pytest.mark.parametrize("name", sorted(REFUSED_BY_TSHARK))
def test_frames_of_unknown_link_types_are_counted_and_named(name: str) -> None:
    ours = engine.read(needs.SHARED / name)
    assert ours.segments.is_empty()
    assert [problem["count"] for problem in ours.problems] == [ours.info["packets"]]


@pytest.mark.parametrize("path", needs.each(real()))
def test_every_difference_is_explained(path: Path) -> None:
    needs.tshark_4_0()
    needs.program("tcptrace")
    theirs = tshark.opinion(path)
    done = verify(path, theirs=iter([theirs.segments]))
    assert done.account.differences.get(UNEXPLAINED, []) == []
    of_headers = Counter(one.rule for listed in done.account.differences.values() for one in listed if one.item in HEADER_ITEMS)
    assert of_headers == DEVIATIONS.get(path.name, {})


@pytest.mark.parametrize("path", needs.each(real()))
def test_packets_segments_and_connections_are_as_many_as_tsharks(path: Path) -> None:
    needs.tshark_4_0()
    theirs, ours = tshark.opinion(path), engine.read(path)
    counted = count_differences(
        {"packets": ours.info["packets"], "tcp_segments": ours.segments.height, "connections": ours.info["connections"]},
        {"packets": theirs.packets, "tcp_segments": theirs.segments.height, "connections": theirs.connections},
    )
    assert counted == COUNTED_OTHERWISE.get(path.name, {})


@pytest.mark.parametrize("path", needs.each(real()))
def test_tables_and_summary_agree(path: Path) -> None:
    ours = engine.read(path)
    assert ours.info["connections"] == ours.connections.height == ours.segments["conn"].n_unique()
    assert ours.connections["conn"].to_list() == list(range(ours.connections.height))
    assert ours.segments["frame"].is_sorted()


@needs.shared_captures
def test_deviations_name_real_captures() -> None:
    assert {*DEVIATIONS, *COUNTED_OTHERWISE} <= {path.name for path in real()}


@needs.shared_captures
@pytest.mark.parametrize("path", needs.each(malformed()))
def test_malformed_capture_is_read_or_refused(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine reads as much of a damaged capture as it can.

    `analyze` exits with 0 if it read the whole capture, with 4 if it read a part, and with 3 if it read no packet.
    """
    ours = _read_or_refusal(path)
    if isinstance(ours, EngineError):
        assert (ours.path, bool(ours.what)) == (str(path), True)
        expected = EXIT_UNREADABLE
    else:
        assert ours.segments["frame"].is_sorted()
        expected = EXIT_READ_IN_PART if ours.loses_data else EXIT_DONE
        assert ours.info["complete"] or ours.loses_data
    arguments = ["analyze", str(path), "-o", str(tmp_path / "report.html"), "--quiet"]
    assert run(arguments) == expected
    assert ("tcptrace-lab: " in capsys.readouterr().err) == (expected != EXIT_DONE)


def _read_or_refusal(path: Path) -> engine.Read | EngineError:
    try:
        return engine.read(path)
    except EngineError as error:
        return error
