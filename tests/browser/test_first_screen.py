"""The first screen of the report shows the verdict, the capture quality, the time by cause, the remedy, and the table of connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgWriter

from tcptrace_lab import analyze, report
from tests.support.pages.report_frames import Exchange, analysis, lossy_upload
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcptrace_lab.report.data_types import ReportData
    from tests.support.pages.visits import Visit

    Open = Callable[..., Visit]

pytest_plugins = ("tests.support.pages.visits",)


KNOWN = {
    # Each value has three texts: words of the verdict, the cause with the largest part of the bar, and the title of the first finding.
    "ethernet-nagle-on": ("TCP_NODELAY on 192.0.2.1", "nagle-delayed-ack", "Nagle's algorithm and delayed ACKs cost"),
    "ethernet-small-receive-window": ("a larger receive buffer on 192.0.2.2", "receiver-window", "The receive window ("),
    "ethernet-small-send-buffer": ("a larger send buffer on 192.0.2.1", "send-buffer", "The send buffer (about"),
    "ethernet-slow-reader": ("the application on 192.0.2.2 was not reading", "zero-window", "The receive window was zero"),
    "ethernet-loss": ("packet loss", "congestion-window", "A congestion window reduced by packet loss limited the sender"),
    "ethernet-application-limited": (
        "the application on 192.0.2.1 (client) was not sending",
        "application",
        "The application on 192.0.2.1 (client) was not sending",
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_first_screen_shows_the_cause_that_the_capture_was_made_to_show(visit: Open, name: str) -> None:
    words, cause, finding = KNOWN[name]
    made = analyze(CAPTURES / f"{name}.pcapng")
    assert len(report.render(report.data(made, room=report.AMONG_MANY), scripts="shared")) < 300_000, "in an archive"
    opened = visit(report.render(report.data(made)), viewport={"width": 1400, "height": 900})
    seen = {
        place: opened.page.locator(place).first
        for place in (".verdict", ".quality", ".headline .bar", ".headline .legend li", ".card .title", ".card .remedy")
    }
    for part in seen.values():
        box = part.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900, "without scrolling"
    assert words in seen[".verdict"].inner_text()
    assert seen[".headline .legend li"].inner_text().strip().startswith(cause)
    assert seen[".card .title"].inner_text().strip().startswith(finding)
    assert "Capture quality: good" in seen[".quality"].inner_text()
    assert opened.messages == []
    assert opened.requests == [opened.page.url]


def many(count: int) -> ReportData:
    """Return the data of a report with `count` connections. Every tenth connection has a finding."""
    made = report.data(analysis(*(Exchange(conn=conn, first_frame=1 + 2 * conn).send(conn, "C", 1, 10, ack=1) for conn in range(1))))
    like = {**made["rows"][0], "findings": ""}
    made["rows"] = [
        {**like, "conn": conn, "client": f"10.0.{conn // 256}.{conn % 256}:1", "findings": "loss" * (not conn % 10)}
        for conn in range(count)
    ]
    made["finding_ids"] = {"loss": count // 10}
    made["connections_total"] = count
    return made


def test_two_thousand_connections_are_sorted_searched_and_filtered(visit: Open) -> None:
    made = many(2_000)
    assert len(report.render(made, scripts="shared")) < 300_000
    opened = visit(report.render(made))
    opened.until("document.querySelectorAll('#table tbody tr').length === 2000")
    opened.page.get_by_label("Finding", exact=True).select_option("loss")
    assert opened.page.locator("#found").inner_text() == "200 of 2,000"
    opened.page.get_by_label("Search").fill("10.0.7.")
    rows = opened.page.locator("#table tbody tr:visible td:nth-child(2)").all_inner_texts()
    assert rows == [f"10.0.7.{conn % 256}:1" for conn in range(7 * 256, 2_000) if not conn % 10]
    opened.page.get_by_label("Finding", exact=True).select_option("-")
    opened.page.get_by_label("Search").fill("")
    assert opened.page.locator("#found").inner_text() == "1,800 of 2,000"
    opened.page.get_by_label("Finding", exact=True).select_option("")
    header = opened.page.get_by_role("columnheader", name="#", exact=True)
    header.get_by_role("button").click()
    assert opened.page.locator("#table tbody td:first-child").first.inner_text() == "1999"
    assert opened.messages == []


def test_rows_that_travel_packed_are_text_too(visit: Open) -> None:
    made = report.data(analysis(lossy_upload()))
    hostile = "<img src=x onerror=alert(1)>"
    made["rows"] = [{**made["rows"][0], "conn": conn, "client": hostile, "client_guessed": hostile} for conn in range(150)]
    opened = visit(report.render(made))
    opened.until("document.querySelectorAll('#table tbody tr').length === 150")
    assert opened.page.locator("#table tbody td:nth-child(2)").last.inner_text() == f"{hostile} guessed"
    assert opened.page.locator("img").count() == 0
    assert opened.messages == []


def test_a_script_in_a_host_a_comment_or_a_file_name_does_not_run(visit: Open, tmp_path: Path) -> None:
    script = "<img src=x onerror=alert(1)><script>alert(2)<&#47;script>"
    path = tmp_path / "<img src=x onerror=alert(3)>.pcapng"
    up = Ether() / IP(src="10.0.0.1", dst="10.0.0.2")
    down = Ether() / IP(src="10.0.0.2", dst="10.0.0.1")
    request = f"GET /{script} HTTP/1.1\r\nHost: {script}\r\n\r\n".encode()
    frames = [
        up / TCP(sport=4000, dport=80, flags="S", seq=0),
        down / TCP(sport=80, dport=4000, flags="SA", seq=0, ack=1),
        up / TCP(sport=4000, dport=80, flags="PA", seq=1, ack=1) / request,
        down / TCP(sport=80, dport=4000, flags="PA", seq=1, ack=1 + len(request)) / b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ]
    with PcapNgWriter(str(path)) as writer:
        for place, frame in enumerate(frames):
            frame.time = 1_700_000_000 + place / 10
            frame.comment = script.encode()
            writer.write(frame)
    opened = visit(report.render(report.data(analyze(path))))
    opened.draw_all()
    assert opened.page.locator("h1").inner_text() == "<img src=x onerror=alert(3)>"
    assert opened.page.locator("img").count() == 0
    assert opened.messages == []


@pytest.mark.parametrize("name", ["ethernet-loss.pcapng", "ethernet-nagle-on.pcapng"])
def test_the_pixels_of_the_strip_are_the_shares_of_the_bar(visit: Open, name: str) -> None:
    """The share of a cause in the width of the strip equals its share in the width of the time bar.

    The widths in the strip come from Plotly's data, and those in the bar come from the browser's layout.
    """
    opened = visit(report.render(report.data(analyze(CAPTURES / name))))
    opened.draw_all()
    drawn = opened.page.evaluate(
        """Object.fromEntries([...document.querySelectorAll('.connection .plot')].find((plot) => plot.checkVisibility()).data
            .filter(({ type }) => type === 'bar').map(({ name, width }) => [name, width.reduce((sum, one) => sum + one, 0)]))"""
    )
    parts = opened.page.evaluate(
        """[...document.querySelector('.headline .bar').children]
            .map((part) => [part.title.split(':')[0], part.getBoundingClientRect().width])"""
    )
    all_s, all_px = sum(drawn.values()), sum(width for _, width in parts)
    assert all(abs(drawn.get(cause, 0) / all_s - width / all_px) <= 0.02 for cause, width in parts)


def test_all_figures_have_the_ledger_along_their_foot_and_one_time_axis(visit: Open) -> None:
    """The capture has eleven waits for delayed ACKs.

    These waits have equal times in all figures: in figures of one direction, and in figures of both directions.
    """
    opened = visit(report.render(report.data(analyze(CAPTURES / "ethernet-nagle-on.pcapng"))))
    opened.draw_all()
    strips = opened.page.evaluate(
        """[...document.querySelectorAll('.connection .plot')].filter((plot) => plot.checkVisibility())
            .map((plot) => plot.data.filter(({ type, name }) => type === 'bar' && name === 'nagle-delayed-ack').map(({ x }) => x))"""
    )
    assert len(strips) == 5
    assert all(strip == strips[0] for strip in strips)
    assert len(strips[0][0]) == 11
    opened.page.get_by_role("radio", name="server → client (1.2 kB)").check()
    opened.until(
        """[...document.querySelectorAll('.connection .plot')].filter((plot) => plot.checkVisibility())
            .every((plot) => plot.data?.some((trace) => trace.type === 'bar' && trace.name === 'peer'))"""
    )
    assert opened.messages == []


def test_printing_draws_all_figures_in_ink_on_paper_and_leaves_the_page_as_it_was(visit: Open) -> None:
    opened = visit(report.render(report.data(analyze(CAPTURES / "ethernet-nagle-on.pcapng"))), color_scheme="dark")
    look = """() => { window.print = () => { window.printed = {
        drawn: [...document.querySelectorAll('figure:not([hidden]) .plot')].every((plot) => plot.closest('figure').dataset.drawn === 'yes'),
        open: document.querySelectorAll('details:not([open])').length,
        ink: document.querySelector('.connection .plot')._fullLayout.font.color } } }"""
    opened.page.evaluate(look)
    folded = opened.page.locator("details:not([open])").count()
    opened.page.get_by_role("button", name="Print").click()
    opened.until("window.printed")
    assert opened.page.evaluate("window.printed") == {"drawn": True, "open": 0, "ink": "#1b1f24"}
    opened.until("document.querySelector('.connection .plot')._fullLayout.font.color === '#e6e9ed'")
    assert opened.page.locator("details:not([open])").count() == folded
    assert opened.messages == []


def test_the_browsers_own_command_prints_filled_tables_and_says_which_figures_are_not_drawn(visit: Open) -> None:
    """The print command of the browser cannot draw figures. An empty figure tells the user to press the Print button instead."""
    opened = visit(report.render(report.data(analyze(CAPTURES / "ethernet-nagle-on.pcapng"))))
    rows = "[...document.querySelectorAll('.statistics tbody tr')]"
    opened.until(f"{rows}.length")
    page = opened.page
    folded = page.locator("details:not([open])").count()
    drawn = page.locator("figure[data-drawn=yes]").count()
    assert drawn < page.locator(".plot").count()
    look = (
        f"{{ rows: {rows}.filter((row) => row.checkVisibility()).length, folded: document.querySelectorAll('details:not([open])').length }}"
    )
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = {look} }})")
    page.pdf()
    printed = page.evaluate("window.printed")
    assert printed == {"rows": page.locator(".statistics tbody tr").count(), "folded": 0}
    opened.until(f"document.querySelectorAll('details:not([open])').length === {folded}")
    page.emulate_media(media="print")
    look = "getComputedStyle([...document.querySelectorAll('.plot')].find((plot) => !plot.childNodes.length), '::before').content"
    assert "Print button" in page.evaluate(look)
    assert opened.messages == []


def test_the_keys_for_printing_draw_all_figures_first(visit: Open) -> None:
    opened = visit(report.render(report.data(analyze(CAPTURES / "ethernet-nagle-on.pcapng"))))
    shown = "[...document.querySelectorAll('figure:not([hidden]) .plot')]"
    opened.page.evaluate(
        f"() => {{ window.print = () => {{ window.printed = {shown}.every((plot) => plot.closest('figure').dataset.drawn === 'yes') }} }}"
    )
    opened.page.keyboard.press("Control+p")
    opened.until("window.printed !== undefined")
    assert opened.page.evaluate("window.printed") is True
    assert opened.messages == []
