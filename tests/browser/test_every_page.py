"""Every kind of page that the program writes is accessible. The tests open the pages offline, at any width and in both themes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab import analyze, report
from tcptrace_lab.pair import pair_captures
from tcptrace_lab.report.experiment_page import write_report
from tests.support import packets
from tests.support.command import tcptrace_lab
from tests.support.pages import experiment
from tests.support.pages.html_pages import HOSTILE
from tests.support.pages.report_frames import analysis, lossy_upload
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.pages.visits import Visit

    Open = Callable[..., Visit]
    Serious = Callable[[Visit], list[list[Any]]]

pytest_plugins = ("tests.support.pages.axe", "tests.support.pages.visits")


def pair(_folder: Path) -> str:
    first, second = (analyze(CAPTURES / f"ethernet-{name}.pcapng") for name in ("loss", "loss-at-server"))
    return report.render(report.data(first, pair_captures(first, second)))


def long_addresses(folder: Path) -> str:
    """Return the report of a connection whose addresses are wider than the screen of a phone."""
    text = """
    host C [2001:db8:1111:2222:3333:4444:5555:6666]:50001
    host S [2001:db8:7777:8888:9999:aaaa:bbbb:cccc]:50602
    0.000 C > S  S   0:0(0)        win 65535
    0.060 S > C  S.  0:0(0) ack 1  win 65535
    0.060 C > S  .          ack 1  win 65535
    0.933 C > S  P.  1:101  ack 1
    0.993 S > C  .          ack 101
    """
    return report.render(report.data(analyze(packets.capture(folder / "long.pcap", text))))


def udp_only(folder: Path) -> str:
    text = "\n".join(f"+20ms C > S udp {60 + 60 * (n % 2)}\n+5ms S > C udp 20" for n in range(30))
    return report.render(report.data(analyze(packets.capture(folder / "call.pcap", text))))


def empty(folder: Path) -> str:
    return report.render(report.data(analyze(packets.capture(folder / "empty.pcap", ""))))


def hostile(_folder: Path) -> str:
    exchange = lossy_upload()
    exchange.client = exchange.server = HOSTILE
    problems = [{"what": HOSTILE, "frame": 1, "offset": 2}]
    return report.render(report.data(analysis(exchange, name=HOSTILE, format=HOSTILE, path=HOSTILE, problems=problems)))


def predicted(folder: Path) -> str:
    asked = ("--stack", "sunos4", "--mss", "1460", "--send-buffer", "4K", "--receive-buffer", "4K", "--sizes", "1:8K", "--grid", "4K:8K:4K")
    done = tcptrace_lab("predict", *asked, "-o", folder / "predicted.html")
    assert done.returncode == 0, done.stderr
    return (folder / "predicted.html").read_text(encoding="utf-8")


def lab(folder: Path) -> str:
    write_report(experiment.results(), str(folder / "lab.html"))
    return (folder / "lab.html").read_text(encoding="utf-8")


PAGES = (pair, long_addresses, udp_only, empty, hostile, predicted, lab)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {make.__name__: make(tmp_path_factory.mktemp(make.__name__)) for make in PAGES}


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1400, "light"), (1400, "dark")])
@pytest.mark.parametrize("name", [make.__name__ for make in PAGES])
def test_no_page_keeps_a_reader_out(visit: Open, serious: Serious, pages: dict[str, str], name: str, width: int, scheme: str) -> None:
    opened = visit(pages[name], bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900})
    assert serious(opened) == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, "the page itself does not scroll sideways"
    assert opened.messages == []
    assert opened.requests == [opened.page.url]
