"""A user works with the explorer of a capture.

The user finds the slow connection among 100,000, zooms to its stall, and saves the rows.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import struct
from operator import itemgetter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import dpkt
import numpy as np
import polars as pl
import pytest

from tcptrace_lab import causes
from tests.support.captures import crowd as crowds
from tests.support.command import tcptrace_lab
from tests.support.pages.explorer import serving
from tests.support.peers import tshark
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.pages.visits import Visit

    Explore = Callable[..., Visit]

pytest_plugins = ("tests.support.pages.visits",)

NAGLE = CAPTURES / "ethernet-nagle-on.pcapng"
QUICK = 100_000
"""Number of fast connections around the slow one. Each fast connection has a handshake and a close."""

ETHERNET_BYTES = 14

SETTLED = "document.querySelector('#list .sheet:not(.busy) tbody td') && !document.querySelector('#list .sheet').textContent.includes('…')"
SAID = """() => {
    window.said = [];
    const button = document.querySelector('#list td .copy');
    new MutationObserver(() => window.said.push(button.textContent)).observe(button, {childList: true});
}"""
"""Records each text that the copy button shows after copying.

The button shows this text for only two seconds, so a test on a busy machine could miss it.
"""

DRAWN = "document.querySelector('#figures').ariaBusy === 'false' && document.querySelector('#figures .plot.js-plotly-plot')"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture in which a fast connection starts every millisecond.

    The connection in the middle is slow. It comes from the capture `ethernet-nagle-on`, and has eleven stalls of 44 ms.
    """
    flags = np.array([crowds.SYN, crowds.SYN_ACK, crowds.ACK, crowds.FIN_ACK, crowds.FIN_ACK, crowds.ACK])
    mine = np.array([True, False, True, True, False, True])
    after_syn, after_fin = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 0, 0, 0, 1, 1])
    client, step = np.divmod(np.arange(QUICK * len(flags)), len(flags))
    first_seq = np.where(mine, 1_000, 5_000)
    quick = crowds.tcp(client, (client + step) / 1000, flags[step], from_client=mine[step], seq=(first_seq + after_syn)[step])
    quick["ack"] += after_fin[step].astype(np.uint32)
    quick = quick[np.lexsort((quick["ts_ns"], quick["ts_s"]))]
    times_ns = quick["ts_s"].astype(np.int64) * 10**9 + quick["ts_ns"]
    with NAGLE.open("rb") as file:
        slow = [(float(time_s), data[ETHERNET_BYTES:]) for time_s, data in dpkt.pcapng.Reader(file)]
    begin_ns = int(times_ns[QUICK * 3])
    parts, done = [], 0
    for time_s, packet in slow:
        time_ns = begin_ns + round((time_s - slow[0][0]) * 1e9)
        place = int(times_ns.searchsorted(time_ns))
        record = struct.pack("<IIII", *divmod(time_ns, 10**9), len(packet), len(packet)) + packet
        parts += [quick[done:place], np.frombuffer(record, np.uint8)]
        done = place
    return crowds.write(tmp_path_factory.mktemp("crowd") / "crowd.pcap", *parts, quick[done:])


@pytest.fixture(scope="module")
def crowded(crowd: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("cache"), crowd) as url:
        yield url


@pytest.fixture(scope="module")
def nagle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("cache"), NAGLE) as url:
        yield url


def rows(opened: Visit) -> list[str]:
    """Return the text of the first column, from each row that the browser has rendered."""
    return opened.page.locator("#list tbody tr[aria-rowindex] td:first-child").all_inner_texts()


def test_the_slow_connection_is_found_its_stall_zoomed_its_filter_copied_and_its_rows_saved(explore: Explore, crowded: str) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    opened = explore(crowded, permissions=permissions, accept_downloads=True, viewport={"width": 1280, "height": 900})
    opened.until(SETTLED)
    page = opened.page
    assert page.locator("#found").inner_text() == f"{QUICK + 1:,} connections"
    assert len(rows(opened)) < 100, "only the rows in sight exist"
    assert page.locator("#list table").get_attribute("aria-rowcount") == str(QUICK + 2), "the head is counted, too"
    page.get_by_role("columnheader", name="active").get_by_role("button").click()
    opened.until(f"{SETTLED} && document.querySelector('#list tbody tr[aria-rowindex]').textContent.includes('192.0.2.1:40001')")
    page.locator("select[name=finding]").select_option("nagle-delayed-ack")
    opened.until("document.querySelector('#found').textContent.startsWith('1 of')")
    row = page.locator("#list tbody tr[aria-rowindex]")
    conn = row.locator("a").inner_text().replace(",", "")
    page.evaluate(SAID)
    row.get_by_role("button", name="copy the Wireshark filter").click()
    opened.until("window.said.includes('copied')")
    assert page.evaluate("navigator.clipboard.readText()") == f"tcp.stream eq {conn}"
    with page.expect_download() as saving:
        page.get_by_role("link", name="CSV of these rows").click()
    (saved,) = csv.DictReader(io.StringIO(saving.value.path().read_text(encoding="utf-8")))
    assert saved["client"] == "192.0.2.1:40001"
    with page.expect_download() as saving:
        page.get_by_role("link", name="Parquet").click()
    assert pl.read_parquet(saving.value.path())["server"].to_list() == ["192.0.2.2:5001"]
    row.locator("a").click()
    page.wait_for_url("**/connection/*")  # Playwright's click returns before the page has opened
    opened.until(DRAWN)
    with page.expect_response(lambda answer: "figures?from_ns" in answer.url):
        page.locator("#findings .jump").first.click()
    assert "from=" in urlsplit(page.url).fragment
    assert opened.messages == []


def test_a_link_restores_search_sort_time_and_place(explore: Explore, crowded: str) -> None:
    opened = explore(crowded, viewport={"width": 1280, "height": 900})
    opened.until(SETTLED)
    opened.page.get_by_label("Search").fill("20.0.1.")
    opened.page.get_by_label("Port").fill("80")
    opened.page.get_by_label("start of the selected time, seconds").fill("0.3005")
    opened.page.get_by_label("start of the selected time, seconds").press("Tab")
    opened.page.get_by_label("end of the selected time, seconds").fill("0.4005")
    opened.page.get_by_label("end of the selected time, seconds").press("Tab")
    opened.page.get_by_role("columnheader", name="duration").get_by_role("button").click()
    opened.until("location.hash.includes('sort=duration_ns') && location.hash.includes('to=400500000') && location.hash.includes('text=')")
    opened.until(f"{SETTLED} && document.querySelector('#found').textContent.startsWith('105 of')")
    again = explore(opened.page.url)
    again.until(f"{SETTLED} && document.querySelector('#found').textContent.startsWith('105 of')")
    assert again.page.get_by_label("Search").input_value() == "20.0.1."
    assert again.page.get_by_label("start of the selected time, seconds").input_value() == "0.3005"
    assert again.page.get_by_role("columnheader", name="duration").get_attribute("aria-sort") == "descending"
    assert again.messages == []


def test_a_link_restores_every_filter(explore: Explore, crowded: str) -> None:
    opened = explore(crowded, viewport={"width": 1280, "height": 900})
    opened.until(SETTLED)
    form = opened.page.locator("#filters")
    for name, value in (("address", "192.0.2.2"), ("port", "5001"), ("min_bytes", "1"), ("max_bytes", "1000000")):
        form.locator(f"[name={name}]").fill(value)
    for name in ("cause", "finding"):
        form.locator(f"[name={name}]").select_option("nagle-delayed-ack")
    opened.until(f"{SETTLED} && document.querySelector('#found').textContent.startsWith('1 of')")
    form.locator("[name=lost]").check()  # the only connection that is left has no retransmits
    opened.until("document.querySelector('#found').textContent.startsWith('0 of') && location.hash.includes('lost=1')")
    values = "() => Object.fromEntries(new FormData(document.querySelector('#filters')))"
    chosen = opened.page.evaluate(values)
    assert chosen == {
        "text": "",
        "address": "192.0.2.2",
        "port": "5001",
        "cause": "nagle-delayed-ack",
        "finding": "nagle-delayed-ack",
        "min_bytes": "1",
        "max_bytes": "1000000",
        "lost": "1",
    }
    again = explore(opened.page.url)
    again.until("document.querySelector('#found').textContent.startsWith('0 of')")
    assert again.page.evaluate(values) == chosen
    assert opened.messages == again.messages == []


BARS = """() => [...document.querySelectorAll('#list tbody tr[aria-rowindex]')].map((row) => {
    const [lane, bar] = [row.querySelector('.lane'), row.querySelector('.lane i')];
    const [whole, part] = [lane.getBoundingClientRect(), bar.getBoundingClientRect()];
    return [(part.left - whole.left) / whole.width, (part.right - whole.left) / whole.width, getComputedStyle(bar).backgroundColor];
})"""
"""Returns three values for each row: begin and end of its bar as shares of the column's width, and the colour of the bar."""


@pytest.mark.parametrize("zoom_s", [None, (0.04, 0.1)], ids=["whole capture", "zoomed"])
def test_bars_reach_from_the_first_segment_to_the_last_in_the_colour_of_the_cause(
    explore: Explore, tmp_path: Path, zoom_s: tuple[float, float] | None
) -> None:
    """The expected times come from tshark.

    The expected cause takes the most time of the direction with more data, according to `analyze --json`.
    """
    capture = CAPTURES / "ethernet-short-connections.pcapng"
    times_s: dict[int, list[float]] = {}
    for frame in tshark.frames(capture, ["tcp.stream", "frame.time_relative"]):
        times_s.setdefault(int(frame["tcp.stream"]), []).append(float(frame["frame.time_relative"]))
    document = json.loads(tcptrace_lab("analyze", capture, "--json", "-", "-q", "-o", tmp_path / "report.html").stdout)
    main = [max(one["client_to_server"], one["server_to_client"], key=itemgetter("payload_bytes")) for one in document["connections"]]
    colours = [causes.OURS[max(one["ledger_s"], key=one["ledger_s"].get)].colour for one in main]
    begin_s, end_s = zoom_s or (0, max(map(max, times_s.values())))
    at = "" if zoom_s is None else f"#zoom_from={begin_s * 1e9:.0f}&zoom_to={end_s * 1e9:.0f}"
    with serving(tmp_path / "cache", capture) as url:
        opened = explore(url + at)
        opened.until(SETTLED)
        bars = opened.page.evaluate(BARS)
    assert len(bars) == len(times_s) == len(colours) == 4
    for conn, (left, right, colour) in enumerate(bars):
        shares = [(time_s - begin_s) / (end_s - begin_s) for time_s in (min(times_s[conn]), max(times_s[conn]))]
        assert [left, right] == pytest.approx(shares, abs=0.002)
        assert colour == f"rgb{tuple(bytes.fromhex(colours[conn].removeprefix('#')))}"


def test_a_drag_in_the_overview_selects_a_time(explore: Explore, crowded: str) -> None:
    opened = explore(crowded, viewport={"width": 1280, "height": 900})
    opened.until(f"{SETTLED} && document.querySelector('.overview svg')")
    opened.page.locator(".overview").scroll_into_view_if_needed()
    box = opened.page.locator(".overview").bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + 300, box["y"] + 50)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 400, box["y"] + 60, steps=3)
    opened.page.mouse.up()
    opened.until("document.querySelector('#found').textContent.includes(' of ')")
    opened.page.get_by_role("button", name="Clear", exact=True).click()
    opened.until("!document.querySelector('#found').textContent.includes(' of ')")
    assert "from=" not in opened.page.url
    assert opened.messages == []


def test_rows_are_reached_by_the_keyboard_to_the_last(explore: Explore, crowded: str) -> None:
    opened = explore(crowded)
    opened.until(SETTLED)
    opened.page.locator("#list table").focus()
    opened.page.keyboard.press("End")
    opened.until(f"{SETTLED} && document.querySelector('#list tr.active td').textContent === '{QUICK:,}'")
    table = opened.page.locator("#list table")
    assert table.get_attribute("aria-activedescendant") == opened.page.locator("#list tr.active").get_attribute("id")
    opened.page.keyboard.press("ArrowUp")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_url(f"**/connection/{QUICK - 1}")
    assert opened.messages == []


MILLION = """async () => {
    const {Sheet} = await import(new URL('static/sheet.js', location.href));
    const holder = document.createElement('div');
    holder.id = 'million';
    document.querySelector('main').prepend(holder);
    const rows = async (offset, limit) => ({
        total: 1_000_000, rows: Array.from({length: Math.min(limit, 1_000_000 - offset)}, (_, place) => ({number: offset + place})),
    });
    new Sheet({holder, label: 'A million rows', columns: [{name: 'number', label: 'number', kind: 'integer'}], rows});
}"""
"""Shows a table with a height of 30 million pixels, whose rows show their numbers.

A browser cannot scroll an element of this height.
"""

IN_SIGHT = """() => {
    const [box, head] = [document.querySelector('#million .sheet'), document.querySelector('#million th')];
    const [top, bottom] = [head.getBoundingClientRect().bottom, box.getBoundingClientRect().bottom];
    return [...box.querySelectorAll('tbody tr[aria-rowindex]')].filter((row) => {
        const place = row.getBoundingClientRect();
        return place.bottom > top + 1 && place.top < bottom - 1;
    }).map((row) => Number(row.textContent));
}"""


def test_every_one_of_a_million_rows_is_reached(explore: Explore, nagle: str) -> None:
    opened = explore(nagle, viewport={"width": 1280, "height": 900})
    opened.until(SETTLED)
    page = opened.page
    page.evaluate(MILLION)
    settled = "document.querySelector('#million tbody td.number') && !document.querySelector('#million .sheet').textContent.includes('…')"
    opened.until(settled)
    box = page.locator("#million .sheet")
    for share, first in ((0, 0), (0.5, 499_994), (1, 999_987)):
        box.evaluate(f"(box) => box.scrollTop = (box.scrollHeight - box.clientHeight) * {share}")
        opened.until(
            f"{settled} && Math.abs(Number(document.querySelector('#million tbody tr[aria-rowindex]').textContent) - {first}) < 40"
        )
        rows = page.evaluate(IN_SIGHT)
        assert rows == list(range(rows[0], rows[-1] + 1))
        assert len(rows) >= 10, "the box is full of rows"
        assert page.locator("#million tbody tr").count() < 100
    assert page.evaluate(IN_SIGHT)[-1] == 999_999
    page.locator("#million table").focus()
    for key, number in (("Home", 0), ("ArrowDown", 1), ("End", 999_999), ("ArrowUp", 999_998)):
        page.keyboard.press(key)
        opened.until(f"{settled} && document.querySelector('#million tr.active')?.textContent === '{number}'")
        assert number in page.evaluate(IN_SIGHT)
    for _ in range(30):
        page.keyboard.press("ArrowUp")
    opened.until(f"{settled} && document.querySelector('#million tr.active')?.textContent === '999968'")
    assert 999_968 in page.evaluate(IN_SIGHT)
    assert opened.messages == []


def test_a_packet_shows_why_it_left_and_a_zoom_keeps_the_points_until_the_new_ones_are_there(explore: Explore, nagle: str) -> None:
    """According to tshark, the delayed ACK (frame 41) arrives 43.7 ms after frame 40. This ACK releases frame 42 immediately."""
    opened = explore(f"{nagle}connection/0", viewport={"width": 1280, "height": 900})
    opened.until(DRAWN)
    page = opened.page
    page.route("**/figures?*", lambda _: None)  # the request gets no answer until `unroute`
    page.get_by_role("button", name="zoom in", exact=True).click()
    opened.until("document.querySelector('#figures').ariaBusy === 'true'")
    assert page.evaluate("document.querySelector('#figures .plot').data.length") > 2
    page.unroute("**/figures?*")  # unroute also lets the delayed request continue
    opened.until("document.querySelector('#figures').ariaBusy === 'false'")
    page.get_by_label("Frame", exact=True).fill("42")
    page.get_by_role("button", name="show", exact=True).click()
    opened.until("!document.querySelector('#packet').hidden")
    words = page.locator("#packet").inner_text()
    assert "Frame 42" in words
    assert "43.7 ms" in words
    assert "nagle-delayed-ack" in words
    assert "frame=42" in page.url
    page.keyboard.press("Escape")
    assert page.locator("#packet").is_hidden()
    assert opened.messages == []


def test_a_click_on_a_segment_opens_it(explore: Explore, nagle: str) -> None:
    opened = explore(f"{nagle}connection/0", viewport={"width": 1280, "height": 900})
    opened.until(DRAWN)
    point = """(() => {
        const plot = document.querySelector('figure[data-key=segment-sizes] .plot');
        plot.scrollIntoView({block: 'center', behavior: 'instant'});
        const trace = plot.data.find((each) => each.name === 'payload of a segment');
        const {xaxis, yaxis} = plot._fullLayout;
        const box = plot.getBoundingClientRect();
        return [box.left + xaxis._offset + xaxis.d2p(trace.x[5]), box.top + yaxis._offset + yaxis.d2p(trace.y[5]),
            trace.customdata.filter((_, place) => Math.abs(xaxis.d2p(trace.x[place]) - xaxis.d2p(trace.x[5])) < 2)];
    })()"""
    opened.until("document.querySelector('figure[data-key=segment-sizes] .plot')?._fullLayout")
    x, y, frames = opened.page.evaluate(point)
    opened.page.mouse.move(x, y)
    opened.page.mouse.click(x, y)
    opened.until("!document.querySelector('#packet').hidden")
    assert opened.page.locator("#packet h2").inner_text() in {f"Frame {frame}" for frame in frames}
    assert opened.messages == []


@pytest.mark.parametrize("table", ["ledger", "stalls", "messages", "transactions", "segments"])
def test_each_table_is_shown_and_can_be_saved(explore: Explore, nagle: str, table: str) -> None:
    opened = explore(f"{nagle}connection/0#tab={table}", accept_downloads=True)
    opened.until(f"document.querySelector('#tab-{table}').ariaSelected === 'true' && document.querySelector('#table tbody td')")
    counted = int(opened.page.locator(f"#tab-{table} .dim").inner_text())
    opened.until("document.querySelector('#table table').hasAttribute('aria-rowcount')")
    assert opened.page.locator("#table table").get_attribute("aria-rowcount") == str(counted + 1)
    with opened.page.expect_download() as saving:
        opened.page.get_by_role("link", name="CSV of this table").click()
    assert len(list(csv.DictReader(io.StringIO(saving.value.path().read_text(encoding="utf-8"))))) == counted
    with opened.page.expect_download() as saving:
        opened.page.get_by_role("link", name="Parquet").click()
    assert pl.read_parquet(saving.value.path()).height == counted
    assert opened.messages == []


def test_a_wrong_token_leads_to_a_plain_page(explore: Explore, nagle: str) -> None:
    parts = urlsplit(nagle)
    opened = explore(f"{parts.scheme}://{parts.netloc}/wrong/")
    assert opened.page.get_by_role("heading", level=1).inner_text() == "This page cannot be shown"
    assert "ethernet" not in opened.page.content()


def test_a_capture_that_changed_and_a_server_that_ended_are_said_in_one_line(explore: Explore, tmp_path: Path) -> None:
    capture = tmp_path / "own.pcapng"
    shutil.copy(NAGLE, capture)
    with serving(tmp_path / "cache", capture) as url:
        opened = explore(url)
        opened.until(SETTLED)
        with capture.open("ab") as file:
            file.write(b"\0" * 64)
        opened.page.get_by_label("Search").fill("192")
        opened.until("!document.querySelector('#trouble').hidden")
        assert "changed" in opened.page.locator("#trouble").inner_text()
    opened.page.get_by_label("Search").fill("10")
    opened.until("document.querySelector('#trouble').textContent.startsWith('The server has ended')")


def test_hostile_names_stay_text(explore: Explore, tmp_path: Path) -> None:
    capture = tmp_path / "<img src=x onerror=alert(1)>.pcapng"
    shutil.copy(NAGLE, capture)
    with serving(tmp_path / "cache", capture) as url:
        opened = explore(f"{url}#text=<script>alert(2)<%2Fscript>&cause=<img src=x onerror=alert(3)>")
        opened.until("document.querySelector('#list tbody td') || !document.querySelector('#trouble').hidden")
        assert opened.page.locator("h1").inner_text().startswith("<img src=x")
        assert opened.page.locator("img").count() == 0
        assert [message for message in opened.messages if "dialog" in message] == []


def request(path: Path) -> Path:
    """Write a capture of one HTTP exchange. The request and the answer contain HTML markup."""
    asked = b"GET /<img/src=x/onerror=alert(1)> HTTP/1.1\r\nHost: </script><script>alert(2)</script>\r\n\r\n"
    answer = b"HTTP/1.1 200 <svg/onload=alert(3)>\r\nContent-Length: 2\r\n\r\nok"
    ends = (bytes([10, 0, 0, 1]), 40_000), (bytes([10, 0, 0, 2]), 80)
    rows = [(0, 2, b""), (1, 18, b""), (0, 16, b""), (0, 24, asked), (1, 24, answer), (0, 16, b"")]
    following = [0, 0]
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for step, (side, flags, payload) in enumerate(rows):
            (source, sport), (target, dport) = ends[side], ends[1 - side]
            ack = following[1 - side] if flags & 16 else 0
            segment = dpkt.tcp.TCP(sport=sport, dport=dport, seq=following[side], ack=ack, flags=flags, win=4096, data=payload)
            packet = dpkt.ip.IP(src=source, dst=target, p=dpkt.ip.IP_PROTO_TCP, data=segment)
            writer.writepkt(bytes(dpkt.ethernet.Ethernet(data=packet, type=dpkt.ethernet.ETH_TYPE_IP)), 1_000 + step / 100)
            following[side] += len(payload) + bool(flags & 2)
    return path


def test_hostile_payload_stays_text(explore: Explore, tmp_path: Path) -> None:
    """The payload appears in the list, on the connection's page, and in a transaction."""
    with serving(tmp_path / "cache", request(tmp_path / "capture.pcap")) as url:
        for path, ready in (("", SETTLED), ("connection/0#tab=transactions&frame=4", "document.querySelector('#table tbody td')")):
            opened = explore(url + path)
            opened.until(ready)
            assert "onerror=alert(1)" in opened.page.locator("body").inner_text()
            assert opened.page.locator("img, svg[onload]").count() == 0
            assert [message for message in opened.messages if "dialog" in message] == []
