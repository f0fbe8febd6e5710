"""The report works in a browser, with the mouse and with the keyboard. The page is opened from a file, offline."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab import analyze, report, schema
from tcptrace_lab.replay.gains import modelled
from tcptrace_lab.report.parts import statistics
from tests.support.pages.report_frames import MS, Exchange, HandMade, analysis, lossy_upload
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcptrace_lab import Analysis
    from tests.support.pages.visits import Visit

    Open = Callable[..., Visit]

pytest_plugins = ("tests.support.pages.visits",)

CAPTURES = sorted(path for path in ROOT.joinpath("captures").iterdir() if ".pcap" in path.name)
NAGLE = ROOT / "captures" / "ethernet-nagle-on.pcapng"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><b>\"'"


def page_of(made: Any) -> str:  # noqa: ANN401  (anything that `report.data` takes)
    return report.render(report.data(made))


def two_way() -> HandMade:
    """Return an analysis of two connections: a large one with data in both directions, and a small one."""
    exchange = lossy_upload()
    exchange.send(200, "S", 2, 700, ack=10_002).send(220, "C", 10_002, ack=702, rtt_ns=20 * MS)
    return analysis(exchange, Exchange(conn=1, client="192.0.2.7", first_frame=100).send(300, "C", 1, 50, ack=1).send(310, "S", 1, ack=51))


def test_there_are_captures_to_try() -> None:
    assert len(CAPTURES) >= 12


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_report_of_a_capture_opens_without_a_word_and_without_a_request(visit: Open, capture: Path) -> None:
    opened = visit(page_of(analyze(capture)))
    opened.draw_all()
    strokes = opened.page.evaluate(
        "[...document.querySelectorAll('.connection')].map((each) => each.querySelectorAll('.scatterlayer .js-line').length)"
    )
    assert strokes
    assert all(strokes), "each connection has lines"
    assert opened.messages == []
    assert opened.requests == [opened.page.url]


def test_hostile_strings_are_shown_as_text(visit: Open) -> None:
    exchange = lossy_upload()
    exchange.client = HOSTILE
    opened = visit(page_of(analysis(exchange, name=HOSTILE, format=HOSTILE, problems=[{"what": HOSTILE, "frame": None, "offset": None}])))
    opened.draw_all()
    assert opened.page.locator("h1").inner_text() == HOSTILE
    assert opened.page.locator(".problems li").inner_text() == HOSTILE
    assert opened.page.locator("img").count() == 0
    assert opened.messages == []


def test_policy_stops_a_script_that_is_not_ours(visit: Open) -> None:
    """The page contains a script and an image that are not escaped. The browser must neither run the script nor fetch the image."""
    opened = visit(
        page_of(two_way()).replace("</main>", "<script>document.title = 'owned'</script><img src='http://192.0.2.1/x.png'></main>")
    )
    assert opened.page.title() != "owned"
    refused = [message for message in opened.messages if "Content Security Policy" in message]
    assert len(refused) == len(opened.messages) == 2, "the script and the image"


def test_a_script_that_lies_beside_the_page_draws_the_figures(visit: Open, tmp_path: Path) -> None:
    for name, content in report.shared_scripts().items():
        tmp_path.joinpath(name).write_bytes(content)
    opened = visit(report.render(report.data(two_way()), scripts="shared"))
    opened.draw_all()
    assert opened.messages == []
    assert opened.requests == [opened.page.url, *(tmp_path.joinpath(name).as_uri() for name in report.shared_scripts())]


def test_a_script_that_is_missing_is_named(visit: Open) -> None:
    opened = visit(report.render(report.data(two_way()), scripts="shared"))
    opened.page.locator(".connection .plot").first.scroll_into_view_if_needed()
    opened.until("document.querySelector('.plot').classList.contains('failed')")
    assert "plotly-basic" in opened.page.locator(".plot.failed").first.inner_text()


def test_figures_are_drawn_only_when_they_come_into_view(visit: Open) -> None:
    opened = visit(page_of(two_way()), viewport={"width": 1000, "height": 500})
    opened.page.locator(".connection figure").first.scroll_into_view_if_needed()
    opened.until("document.querySelector('figure').dataset.drawn === 'yes'")
    last = opened.page.locator(".connection figure").last
    assert last.get_attribute("data-drawn") is None
    last.scroll_into_view_if_needed()
    opened.until("[...document.querySelectorAll('.connection:last-of-type figure')].at(-1).dataset.drawn === 'yes'")


def test_zooming_one_figure_zooms_all_of_its_connection(visit: Open) -> None:
    opened = visit(page_of(two_way()), viewport={"width": 1200, "height": 900})
    opened.draw_all()
    whole = opened.axis("xaxis", "client")
    assert len(whole) == 5
    assert all(each == whole[0] for each in whole)
    drag = opened.page.locator(".nsewdrag").first
    drag.scroll_into_view_if_needed()
    box = drag.bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] - 20, steps=4)
    opened.page.mouse.up()
    start = whole[0][0] + 0.25 * (whole[0][1] - whole[0][0])
    opened.until(
        """[...document.querySelector('.connection').querySelectorAll('.plot')].filter((plot) => plot.offsetParent)
            .every((plot) => Math.abs(plot._fullLayout.xaxis.range[0] - given) < 0.01)""",
        start,
    )
    zoomed = opened.axis("xaxis", "client")
    assert all(each == pytest.approx(zoomed[0]) for each in zoomed)
    opened.page.get_by_role("button", name="all", exact=True).first.click()
    opened.until(
        """[...document.querySelector('.connection').querySelectorAll('.plot')].filter((plot) => plot.offsetParent)
            .every((plot) => plot._fullLayout.xaxis.range[1] === given)""",
        whole[0][1],
    )
    assert opened.axis("xaxis", "client") == whole
    assert opened.messages == []


def test_height_follows_what_is_left_in_sight(visit: Open) -> None:
    """In the first 25 ms, no data are sent. If the figure is zoomed to this time, the sequence axis shrinks to the handshake."""
    opened = visit(page_of(two_way()))
    opened.draw_all()
    tall = opened.axis("yaxis", "client")[0]
    opened.page.evaluate("Plotly.relayout(document.querySelector('.plot'), {'xaxis.range': [0, 0.025]})")
    opened.until("document.querySelector('.plot')._fullLayout.yaxis.range[1] < 100")
    assert tall[1] > 10_000


def test_time_can_be_zoomed_with_the_keyboard(visit: Open) -> None:
    opened = visit(page_of(two_way()))
    opened.draw_all()
    (start, end), *_ = opened.axis("xaxis", "client")
    opened.page.get_by_role("button", name="zoom in").first.focus()
    opened.page.keyboard.press("Enter")
    quarter = (end - start) / 4
    opened.until(
        """[...document.querySelectorAll('.connection:first-of-type .plot')].filter((plot) => plot.checkVisibility())
            .every((plot) => Math.abs(plot._fullLayout.xaxis.range[0] - given) < 1e-6)""",
        start + quarter,
    )
    assert all(each == pytest.approx([start + quarter, end - quarter]) for each in opened.axis("xaxis", "client"))


def test_the_table_of_all_statistics_is_filled_when_it_is_opened(visit: Open) -> None:
    """The table explains each statistic of the connection. Text from the capture is escaped."""
    made = two_way()
    opened = visit(page_of(made))
    table = opened.page.locator("#connection-0 details.statistics")
    table.locator("summary").first.click()
    table.locator("tbody th").first.wait_for()
    read: list[list[str]] = table.evaluate(
        "(each) => [...each.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    row = made.connections.collect().row(0, named=True)
    lines = statistics.table(row)
    assert [label for label, *_ in read] == [line["label"] for line in lines]
    found = {label: values for label, *values in read}
    assert found["segments"] == [f"{row[f'{side}_segments']:,}" for side in schema.SIDES]
    assert table.locator("tbody th").first.get_attribute("title")
    opened.page.evaluate("document.querySelector('#connection-0 .statistics').open = false")
    table.locator("summary").first.click()
    assert table.locator("tbody tr").count() == len(lines), "filled once"


def test_axis_ticks_have_units_as_the_text_has_them(visit: Open) -> None:
    opened = visit(page_of(analyze(NAGLE)))
    opened.draw_all()

    def ticks() -> list[str]:
        read: list[str] = opened.page.evaluate("[...document.querySelectorAll('.xtick text, .ytick text')].map((tick) => tick.textContent)")
        return [text for text in read if re.search(r"\d *[µmkMGT]?(s|B|b/s)$", text)]

    for _ in range(2):
        found = ticks()
        assert {text.split(" ")[-1] for text in found} >= {"ms", "B", "kB"}
        assert all(re.fullmatch(r"[−\d.,]+ [µmkMGT]?(s|B|b/s)", text) for text in found), found
        opened.page.locator("button[data-move=in]").first.press("Enter")
        opened.page.wait_for_timeout(500)


def test_the_other_direction_can_be_chosen_and_keeps_the_zoom(visit: Open) -> None:
    opened = visit(page_of(two_way()))
    opened.draw_all()
    opened.page.get_by_role("button", name="zoom in").first.click()
    opened.page.get_by_role("radio", name="server → client (700 B)").check()
    opened.draw_all()
    assert opened.page.locator("figure[data-by=client]:visible").count() == 4, "those of the second connection"
    ranges = opened.axis("xaxis", "server")
    assert len(ranges) == 5
    assert all(each == pytest.approx(ranges[0]) for each in ranges)


def test_table_is_sorted_by_keyboard_and_announces_it(visit: Open) -> None:
    opened = visit(page_of(two_way()))
    clients = opened.page.locator("#table tbody td:nth-child(2)")
    header = opened.page.get_by_role("columnheader", name="bytes →", exact=True)
    header.get_by_role("button").focus()
    opened.page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "descending"
    assert clients.all_inner_texts() == ["10.0.0.1:40000", "192.0.2.7:40000"]
    opened.page.keyboard.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    assert clients.all_inner_texts() == ["192.0.2.7:40000", "10.0.0.1:40000"]


def stalled() -> Analysis:
    """Return the analysis of a capture with eleven stalls of 44 ms. Nagle's algorithm and delayed ACKs cause the stalls."""
    return analyze(NAGLE)


def test_a_finding_shows_its_place_when_the_keyboard_asks(visit: Open) -> None:
    opened = visit(page_of(stalled()))
    first = opened.page.locator(".finding").first
    assert first.locator("svg.main-svg").count() == 0
    first.locator(".zoom > summary").focus()
    opened.page.keyboard.press("Enter")
    opened.draw_all()
    rings = "document.querySelector('.zoom [data-key=zoom] .plot').data.find((each) => each.name.startsWith('frames that prove')).x.length"
    assert (
        opened.page.evaluate(rings)
        == opened.page.locator(".zoom [data-key=zoom] .scatterlayer .points path.point[style*='stroke-width: 2px']").count()
    )
    assert opened.page.locator(".zoom [data-key=zoom] .annotation-text").all_text_contents()[:2] == ["frame 40", "frame 42"]
    assert opened.messages == []
    assert opened.requests == [opened.page.url]


def test_a_stall_in_the_list_jumps_to_its_place(visit: Open) -> None:
    """The stall lasts 44 ms, from 42 to 86 ms (frames 15 to 17).

    The figure also shows 88 ms before the stall and 88 ms after it.
    """
    opened = visit(page_of(stalled()), viewport={"width": 1200, "height": 700})
    opened.page.locator(".stalls > summary").focus()
    opened.page.keyboard.press("Enter")
    jump = opened.page.locator(".stalls .jump").nth(1)
    begin, end = (float(jump.get_attribute(f"data-{name}") or "nan") for name in ("from", "to"))
    jump.focus()
    opened.page.keyboard.press("Enter")
    opened.until("document.activeElement.classList.contains('plot')")
    figure = opened.page.locator(".connection figure").first
    assert figure.bounding_box()["y"] < 700  # type: ignore[index]
    shown = opened.axis("xaxis", "client")[0]
    assert shown == pytest.approx([begin - 2 * (end - begin), end + 2 * (end - begin)])
    marked = opened.page.evaluate("document.querySelector('.connection .plot').layout.shapes.at(-1)")
    assert (marked["x0"], marked["x1"]) == (begin, end)
    assert (begin, end) == pytest.approx((0.042, 0.086), abs=0.001)
    opened.page.get_by_role("button", name="all", exact=True).first.click()
    opened.until("document.querySelector('.connection .plot').layout.shapes.at(-1)?.x0 !== given", begin)
    assert opened.messages == []


def test_a_stall_of_the_other_direction_changes_the_direction(visit: Open) -> None:
    opened = visit(page_of(stalled()))
    opened.draw_all()
    opened.page.evaluate("document.querySelector('.stalls .jump').closest('details').open = true")
    opened.page.get_by_role("radio", name="server → client (1.2 kB)").check()
    opened.page.locator(".stalls .jump").first.click()
    opened.until("document.activeElement.classList.contains('plot')")
    assert opened.page.get_by_role("radio", name="client → server (2.4 kB)").is_checked()
    assert opened.page.locator("figure[data-by=server]:visible").count() == 0


def test_the_place_of_a_finding_is_found_in_the_whole_connection(visit: Open) -> None:
    opened = visit(page_of(stalled()))
    opened.page.locator(".zoom > summary").first.click()
    opened.page.get_by_role("button", name="Show it in the whole connection").first.click()
    opened.until("document.activeElement.closest('.connection') !== null")
    assert opened.messages == []


def test_a_filter_is_copied(visit: Open) -> None:
    opened = visit(page_of(stalled()), permissions=["clipboard-read", "clipboard-write"])
    line = opened.page.locator(".finding").first.locator(".filter").last
    wanted = line.locator("code").inner_text()
    line.locator("button").focus()
    opened.page.keyboard.press("Enter")
    opened.until("[...document.querySelectorAll('.finding .filter button')].some((each) => each.textContent === 'copied')")
    assert opened.page.evaluate("navigator.clipboard.readText()") == wanted
    assert wanted.startswith("tcp.stream eq 0 and frame.number in {15..17,")


def test_search_leaves_the_rows_that_have_all_words(visit: Open) -> None:
    opened = visit(page_of(two_way()))
    opened.page.get_by_label("Search").fill("open 192.0.2.7")
    assert opened.page.locator("#table tbody tr:visible td:nth-child(2)").all_inner_texts() == ["192.0.2.7:40000"]
    assert opened.page.locator("#found").inner_text() == "1 of 2"


def test_figures_follow_the_change_from_light_to_dark(visit: Open) -> None:
    opened = visit(page_of(two_way()), color_scheme="light")
    opened.draw_all()
    ink = "document.querySelector('.plot')._fullLayout.font.color"
    light = opened.page.evaluate(ink)
    opened.page.emulate_media(color_scheme="dark")
    opened.until(f"{ink} !== given", light)
    assert opened.messages == []


def test_a_finger_scrolls_the_page_and_does_not_zoom(visit: Open) -> None:
    opened = visit(page_of(two_way()), has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800})
    opened.draw_all()
    assert opened.page.evaluate("document.querySelector('.plot')._fullLayout.dragmode") is False
    assert opened.messages == []


@pytest.mark.parametrize("width", [360, 820, 1600])
def test_nothing_sticks_out_of_the_page(visit: Open, width: int) -> None:
    opened = visit(page_of(two_way()), viewport={"width": width, "height": 800})
    opened.draw_all()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_report_without_connections_needs_no_script_of_plotly(visit: Open) -> None:
    silent = analysis(Exchange().send(0, "C", 1, ack=1).send(1, "S", 1, ack=1))
    html = page_of(silent)
    opened = visit(html)
    assert "No connection in this capture carried data." in opened.page.locator("main").inner_text()
    assert len(html) < 100_000
    assert opened.messages == []


def test_a_click_in_the_waterfall_opens_the_connection(visit: Open) -> None:
    opened = visit(page_of(two_way()))
    assert opened.page.locator(".waterfall li").count() == 2
    opened.page.locator(".waterfall a").last.click()
    opened.until("location.hash === '#connection-1'")
    opened.until("Math.abs(document.getElementById('connection-1').getBoundingClientRect().top) < innerHeight")
    assert opened.messages == []


def test_the_address_keeps_finding_connection_and_zoom(visit: Open) -> None:
    """A link is copied from one page. It opens the same finding, direction and time range in another page."""
    html = page_of(stalled())
    opened = visit(html)
    opened.page.locator("#finding-2 > summary").click()
    opened.until("location.hash === '#finding-2'")
    opened.draw_all()
    opened.page.get_by_role("radio", name="server → client (1.2 kB)").check()
    opened.draw_all()
    opened.page.evaluate("""Plotly.relayout([...document.querySelectorAll('.connection .plot')].find((each) => each.checkVisibility()),
        {'xaxis.range[0]': 0.05, 'xaxis.range[1]': 0.1})""")
    opened.until("location.hash.includes('to=0.1')")
    link = opened.page.evaluate("location.hash")
    assert link == "#connection-0&finding=2&side=server&from=0.05&to=0.1"
    other = visit(html, at=link)
    other.draw_all()
    assert other.page.locator("#finding-2").evaluate("(each) => each.open")
    assert other.page.get_by_role("radio", name="server → client (1.2 kB)").is_checked()
    assert all(each == pytest.approx([0.05, 0.1]) for each in other.axis("xaxis", "server"))
    assert other.messages == []


def test_a_link_to_a_place_in_a_finding_shows_it(visit: Open) -> None:
    opened = visit(page_of(stalled()), at="#finding-1&from=0.2&to=0.3")
    opened.draw_all()
    shown = "document.querySelector('#finding-1 [data-key=zoom] .plot')._fullLayout.xaxis.range"
    opened.until(f"Math.abs({shown}[0] - 0.2) < 1e-9 && Math.abs({shown}[1] - 0.3) < 1e-9")
    assert opened.messages == []


def test_one_crosshair_goes_over_all_figures_of_a_connection(visit: Open) -> None:
    opened = visit(page_of(two_way()), viewport={"width": 1200, "height": 1200})
    opened.draw_all()
    drag = opened.page.locator(".connection .nsewdrag").first
    drag.scroll_into_view_if_needed()
    box = drag.bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 30)
    places = """[...document.querySelectorAll('.connection:first-of-type .plot')].filter((plot) => plot.checkVisibility()).map((plot) => {
        const line = plot.querySelector('.cross');
        return line && !line.hidden && plot._fullLayout.xaxis.p2d(parseFloat(line.style.left) - plot._fullLayout.xaxis._offset);
    })"""
    opened.until(f"{places}.every(Number.isFinite)")
    times = opened.page.evaluate(places)
    start, end = opened.axis("xaxis", "client")[0]
    assert len(times) == 5
    assert times == pytest.approx([start + 0.4 * (end - start)] * 5, abs=(end - start) / 500)
    opened.page.mouse.move(0, 0)
    opened.until("[...document.querySelectorAll('.cross')].every((line) => line.hidden)")
    assert opened.messages == []


@pytest.mark.parametrize(
    "box",
    [
        {"xaxis.range[0]": 0.001, "xaxis.range[1]": 0.002, "yaxis.range[0]": 9000, "yaxis.range[1]": 9100},
        {"xaxis.range[0]": -0.002, "xaxis.range[1]": -0.001, "yaxis.range[0]": 0, "yaxis.range[1]": 5},
    ],
    ids=["between the lines", "before the first segment"],
)
def test_a_zoom_never_ends_at_an_empty_figure(visit: Open, box: dict[str, float]) -> None:
    opened = visit(page_of(two_way()))
    opened.draw_all()
    opened.page.evaluate("(box) => Plotly.relayout(document.querySelector('.connection .plot'), box)", box)
    opened.until("location.hash.includes('from=')")
    opened.until("document.querySelector('.connection .plot')._fullLayout.yaxis.range[0] !== given", box["yaxis.range[0]"])
    seen = opened.page.evaluate("""(() => {
        const plot = document.querySelector('.connection .plot');
        const [[left, right], [low, high]] = [plot._fullLayout.xaxis.range, plot._fullLayout.yaxis.range];
        return plot.own.some((trace) => trace.x.some((x, place) => {
            const isShown = x !== null && x <= right && (x >= left || trace.line?.shape === 'hv');
            return isShown && trace.y[place] >= low && trace.y[place] <= high;
        }));
    })()""")
    assert seen
    assert opened.messages == []


def test_navigation_stays_in_sight(visit: Open) -> None:
    opened = visit(page_of(two_way()), viewport={"width": 390, "height": 700})
    opened.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    box = opened.page.get_by_role("navigation").bounding_box()
    assert box is not None
    assert -1 <= box["y"] < 5
    assert box["height"] < 60


def test_the_toolbar_is_never_over_a_legend(visit: Open) -> None:
    opened = visit(page_of(two_way()), viewport={"width": 1200, "height": 1000})
    opened.draw_all()
    plot = opened.page.locator(".connection .plot").first
    plot.scroll_into_view_if_needed()
    assert float(plot.locator(".modebar-group").first.evaluate("(bar) => getComputedStyle(bar).opacity")) == 0
    titles = plot.locator(".modebar-btn").evaluate_all("(buttons) => buttons.map((each) => each.dataset.title)")
    assert "Zoom" in titles
    assert not [title for title in titles if "Share" in title], "nothing leaves the page"
    plot.hover()
    opened.until("getComputedStyle(document.querySelector('.connection .modebar-group')).opacity !== '0'")
    bar, legend = (plot.locator(name).bounding_box() for name in (".modebar", ".legend"))
    assert bar is not None
    assert legend is not None
    assert bar["y"] + bar["height"] <= legend["y"]
    caption = opened.page.locator(".connection figcaption p").first.evaluate("(p) => p.getBoundingClientRect().right")
    assert caption <= bar["x"]


def test_columns_can_be_chosen_and_the_table_saved_and_copied(visit: Open, tmp_path: Path) -> None:
    exchange = lossy_upload()
    exchange.server = "=HYPERLINK(1)"
    opened = visit(page_of(analysis(exchange)), permissions=["clipboard-read", "clipboard-write"], accept_downloads=True)
    tools = opened.page.locator("#connections .table-tools")
    tools.locator("summary").click()
    tools.get_by_role("checkbox", name="client", exact=True).uncheck()
    assert not opened.page.locator("#table td:nth-child(2)").first.is_visible()
    with opened.page.expect_download() as saving:
        tools.get_by_role("button", name="Save CSV").click()
    path = tmp_path / "saved.csv"
    saving.value.save_as(path)
    assert saving.value.suggested_filename == "connections.csv"
    head, row = csv.reader(path.read_text(encoding="utf-8").splitlines())
    assert head[:4] == ["#", "server", "start (s)", "duration (s)"]
    assert row[0] == "0"
    assert row[1].startswith("'=HYPERLINK"), "no spreadsheet takes it for a formula"
    assert row[head.index("bytes → (bytes)")] == "10000"
    assert float(row[3]) == 0.181
    tools.get_by_role("button", name="Copy table").click()
    opened.until("[...document.querySelectorAll('.table-tools button')].some((each) => each.textContent === 'copied')")
    lines = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[0].split("\t") == head
    assert opened.messages == []
    assert opened.requests[:1] == [opened.page.url]


def test_a_connection_that_is_not_drawn_names_its_command(visit: Open) -> None:
    silent = Exchange(conn=1, client="192.0.2.7", first_frame=100).send(300, "C", 1, ack=1).send(310, "S", 1, ack=1)
    opened = visit(page_of(analysis(lossy_upload(), silent, path="a file.pcap")))
    opened.page.locator("#table .alone").click()
    assert opened.page.locator("#command code").inner_text() == "tcptrace-lab analyze 'a file.pcap' --connection 1"
    opened.page.locator(".waterfall .alone").click()
    assert opened.page.locator("#command code").inner_text().endswith("--connection 1")
    assert opened.messages == []


def test_the_reproducer_is_downloaded_and_the_command_shown(visit: Open, tmp_path: Path) -> None:
    made, _ = modelled(analyze(NAGLE))
    opened = visit(page_of(made), accept_downloads=True)
    card = opened.page.locator(".card").first
    assert card.locator(".gain").inner_text().startswith("Gain 477 ms of 527 ms")
    assert card.locator(".filter code").inner_text() == f"tcptrace-lab replay whatif {NAGLE} --connection 0 --nodelay"
    with opened.page.expect_download() as saving:
        card.get_by_role("button", name="Download the reproducer").click()
    assert saving.value.suggested_filename == "reproduce-nagle-delayed-ack-0.py"
    saving.value.save_as(tmp_path / "saved.py")
    gain = made.findings[0].modelled
    assert gain is not None
    assert (tmp_path / "saved.py").read_text(encoding="utf-8") == gain.script
    assert opened.messages == []


def test_without_a_model_the_card_names_the_command_that_runs_it(visit: Open) -> None:
    opened = visit(page_of(stalled()))
    assert opened.page.locator(".card .filter code").first.inner_text() == f"tcptrace-lab analyze {NAGLE} --connection 0 --whatif"
    assert opened.page.locator(".reproduce").count() == 0
