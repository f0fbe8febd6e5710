"""In a notebook, an analysis shows its summary and returns its figures as Plotly objects."""

from __future__ import annotations

import html.parser
import re
import sys
from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest

from tcptrace_lab import Analysis, analyze
from tcptrace_lab.errors import EXIT_MISSING_TOOL, MissingTool, UsageError
from tests.support import packets, transfer

CAPTURES = Path("captures")


@pytest.fixture(scope="module")
def slow() -> Analysis:
    return analyze(CAPTURES / "ethernet-nagle-on.pcapng")


class Tags(html.parser.HTMLParser):
    """A parser that collects the names of all tags and checks that each tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the tag. The tag must not load anything."""
        self.names.append(tag)
        if tag != "br":
            self.open.append(tag)
        assert not [value for name, value in attrs if name in {"src", "href"}]

    def handle_endtag(self, tag: str) -> None:
        """Check that tags are closed in order."""
        assert self.open.pop() == tag


def test_an_analysis_shows_verdict_ledger_connections_and_findings_without_script_or_request(slow: Analysis) -> None:
    shown = slow._repr_html_()
    for words in (
        "algorithm waiting for delayed ACKs took 91% of 527 ms",
        "nagle-delayed-ack 91%",
        "192.0.2.2:5001",
        "write each message with one call",
    ):
        assert words in shown
    tags = Tags(shown)
    assert not tags.open
    assert not {"script", "img", "link", "iframe", "style"} & set(tags.names)
    assert not re.search(r"https?:|url\(", shown)
    assert len(shown) < 20_000


def test_what_is_hostile_in_a_name_is_shown_as_text(slow: Analysis) -> None:
    shown = replace(slow, capture={**slow.capture, "path": "<script>alert(1)</script>\ud800"})._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\ud800" in shown


@pytest.mark.parametrize("text", ["", "0 C > S S 0:0(0)\n1 C > S S 0:0(0)"])
def test_a_capture_with_nothing_in_it_shows_itself_too(tmp_path: Path, text: str) -> None:
    assert "onnection" in analyze(packets.capture(tmp_path / "little.pcap", text))._repr_html_()


@pytest.mark.parametrize("name", ["time-sequence", "flight", "rtt", "throughput"])
def test_figures_are_objects_of_plotly(tmp_path: Path, name: str) -> None:
    """The capture has a server that sends 4,380 bytes in three segments, one of them twice. The client sends fewer bytes."""
    figure = analyze(packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)).figure(name)
    assert isinstance(figure, go.Figure)
    assert len(figure.data) > 0
    assert figure.to_html(include_plotlyjs=False).startswith("<")


def test_the_figure_is_of_the_direction_that_was_asked_for(tmp_path: Path) -> None:
    """The figure of the client's direction ends at offset 101, because the client sends 100 bytes.

    The figure of the server's direction ends at offset 4,381. This figure is also the default, because the server sends more.
    """
    analysis = analyze(packets.capture(tmp_path / "transfer.pcap", transfer.TEXT))

    def last_byte(*, from_client: bool | None) -> int:
        (data,) = (trace for trace in analysis.figure("time-sequence", from_client=from_client).data if trace.name == "data")
        return max(int(y) for y in data.y if y is not None)

    assert [last_byte(from_client=way) for way in (True, False, None)] == [101, 4381, 4381]


def test_what_is_not_there_is_reported_with_what_is(slow: Analysis) -> None:
    with pytest.raises(UsageError, match="no connection 7"):
        slow.figure("rtt", 7)
    with pytest.raises(UsageError, match="available: time-sequence, flight, rtt"):
        slow.figure("pie")


def test_without_plotly_a_figure_says_what_to_install(slow: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)  # importing this module now raises an error
    with pytest.raises(MissingTool) as refused:
        slow.figure("rtt")
    assert str(refused.value) == "not installed: plotly; pip install 'tcptrace-lab[notebook]'"
    assert refused.value.exit_code == EXIT_MISSING_TOOL == 5
    assert "<table" in slow._repr_html_()
