"""The index page of an archive works in a browser.

The page is opened from a file, offline, with ten thousand captures and with hostile names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab.archive.dataset import query
from tcptrace_lab.archive.dataset.tables import table_types
from tcptrace_lab.archive.index import page
from tcptrace_lab.archive.index.overview import overview
from tcptrace_lab.schema import ARCHIVE_TABLES, MONTH
from tests.support import packets
from tests.support.captures import archives

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.pages.visits import Visit

    Open = Callable[..., Visit]

pytest_plugins = ("tests.support.pages.visits",)

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><b>\"'"

MADE = "[...document.querySelectorAll('main > section')].every((section) => section.dataset.made)"


def opened(visit: Open, html: str, **options: Any) -> Visit:
    """Open the page and scroll through all its sections, so that the browser renders each section."""
    shown = visit(html, **options)
    shown.until("document.documentElement.dataset.ready")
    for section in shown.page.locator("main > section").all():
        section.scroll_into_view_if_needed()
    shown.until(MADE)
    return shown


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a folder with fourteen captures and a file that is not a capture."""
    folder = archives.folder_of(tmp_path_factory.mktemp("index") / "in", 14)
    (folder / "none.pcap").write_bytes(b"this is no capture at all, whatever it is called")
    archives.made(folder, folder.parent / "out", reports=False)
    return folder.parent / "out"


def made_up(count: int, name: str) -> dict[str, pl.LazyFrame]:
    """Return the tables of an archive with `count` captures.

    Each capture has one connection, whose handshake takes 40 ms too long.
    """
    at = pl.int_range(count, eager=True)
    known: dict[str, dict[str, Any]] = {
        "captures": {
            "capture": at.cast(pl.String),
            "name": at.cast(pl.String) + name,
            "path": at.cast(pl.String) + name,
            "state": ["whole"] * count,
            "first_ts_ns": at * 60_000_000_000,
            "last_ts_ns": at * 60_000_000_000 + 1,
            "connections": [1] * count,
            "active_ns": [100_000_000] * count,
            "fixable_ns": [40_000_000] * count,
            "report": "reports/" + at.cast(pl.String) + ".html",
            "verdict": [name] * count,
        },
        "connections": {
            "capture": at.cast(pl.String),
            "conn": [0] * count,
            "client_addr": [f"10.0.0.{number % 200}" + (name if number == 0 else "") for number in range(count)],
            "server_addr": ["192.0.2.1"] * count,
            "server_port": [443] * count,
            "client_unique_bytes": [1000] * count,
            "first_ts_ns": at * 60_000_000_000,
            "last_ts_ns": at * 60_000_000_000 + 100_000_000,
        },
        "ledger_totals": {
            "capture": at.cast(pl.String),
            "conn": [0] * count,
            "from_client": [True] * count,
            "cause": ["handshake"] * count,
            "is_fixable": [True] * count,
            "cause_ns": [40_000_000 + number for number in range(count)],
        },
        "problems": {"capture": ["0"], "path": [name], "what": [name], "count": [1], "loses_data": [True]},
    }
    tables = {}
    for table in ARCHIVE_TABLES.values():
        own = pl.DataFrame(known.get(table.name, {}))
        columns = [
            (pl.col(each) if each in own.columns else pl.lit(None).alias(each)).cast(dtype) for each, dtype in table_types(table).items()
        ]
        tables[table.name] = own.lazy().select(columns).with_columns(pl.lit("unknown").alias(MONTH))
    return tables


def test_captures_of_poor_quality_are_listed_apart(visit: Open) -> None:
    tables = made_up(20, "capture")
    quality = pl.when(pl.col("capture").is_in(["3", "5"])).then(pl.lit("poor")).otherwise(pl.lit("good"))
    tables["captures"] = tables["captures"].with_columns(quality=quality)
    shown = opened(visit, page.render(overview(tables, None)))
    names = {part: shown.page.locator(f"#{part} tbody tr td:nth-child(1)").all_inner_texts() for part in ("captures", "poor")}
    assert names["poor"] == ["3capture", "5capture"]
    assert set(names["captures"]) == {f"{number}capture" for number in range(20)} - {"3capture", "5capture"}
    assert shown.messages == []


def test_it_opens_without_a_word_and_without_a_request_light_and_dark(visit: Open, archive: Path) -> None:
    html = (archive / "index.html").read_text(encoding="utf-8")
    for scheme in ("light", "dark"):
        shown = opened(visit, html, color_scheme=scheme)
        assert shown.page.locator("#captures tbody tr").count() == 15
        assert shown.page.locator("#chart svg rect:not(.hit)").count() > 0
        assert shown.messages == []
        assert shown.requests == [shown.page.url]


def test_numbers_on_the_page_are_those_of_the_tables(visit: Open, archive: Path) -> None:
    with query.opened(str(archive)) as tables:
        fixable_ns = query.run(tables, "SELECT SUM(fixable_ns) FROM captures").item()
    shown = opened(visit, (archive / "index.html").read_text(encoding="utf-8"))
    tile = shown.page.locator(".tile.lost b").inner_text()
    value, unit = tile.split()
    assert float(value) * {"s": 1e9, "ms": 1e6}[unit] == pytest.approx(fixable_ns, rel=0.01)
    assert shown.page.locator(".tile.bad b").inner_text() == "1"


def test_of_ten_thousand_captures_only_the_rows_in_view_exist_and_the_last_can_be_reached(visit: Open) -> None:
    shown = opened(visit, page.render(overview(made_up(10_000, ".pcap"), None)))
    sheet = shown.page.locator("#captures .sheet")
    assert shown.page.locator("#captures tbody tr").count() < 100
    sheet.evaluate("(sheet) => { sheet.scrollTop = sheet.scrollHeight; }")
    shown.until("document.querySelector('#captures tbody').textContent.includes('9999.pcap')")
    assert shown.messages == []


def test_tables_sort_and_search_and_a_pair_of_hosts_narrows_them(visit: Open) -> None:
    shown = opened(visit, page.render(overview(made_up(400, ".pcap"), None)))
    first = shown.page.locator("#transfers tbody tr:not(.space)").first
    assert "399.pcap" in first.inner_text(), "most time lost first"
    shown.page.locator("#captures th button").first.focus()
    shown.page.keyboard.press("Enter")
    assert shown.page.locator("#captures th").first.get_attribute("aria-sort") == "ascending"
    shown.page.locator("#captures input").fill("123.pcap")
    assert shown.page.locator("#captures tbody tr").count() == 1
    shown.page.locator("#pairs tbody button", has_text="10.0.0.199 →").first.click()
    assert shown.page.locator("#transfers tbody tr").count() == 2
    shown.page.locator("#filters button").click()
    assert shown.page.locator("#filters button").count() == 0
    assert shown.messages == []


def test_rows_lead_to_the_report_and_its_connection(visit: Open) -> None:
    shown = opened(visit, page.render(overview(made_up(20, ".pcap"), None)))
    link = shown.page.locator("#transfers tbody a").first
    assert link.get_attribute("href") == "reports/19.html#connection-0"


def test_hostile_names_are_shown_as_text(visit: Open) -> None:
    shown = opened(visit, page.render(overview(made_up(3, HOSTILE), None)))
    assert HOSTILE in shown.page.locator("#captures tbody").inner_text()
    assert shown.page.locator("main img").count() == 0
    assert shown.messages == []
    assert shown.requests == [shown.page.url]


def test_an_attempt_that_nobody_answered_is_a_transfer_that_lost_time(visit: Open, tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "alone.pcap", "0.000 C > S  S 0:0(0) win 64240\n1.000 C > S  S 0:0(0) win 64240")
    archives.made(path, tmp_path / "out")
    shown = opened(visit, (tmp_path / "out" / "index.html").read_text(encoding="utf-8"))
    row = shown.page.locator("#transfers tbody tr").first.inner_text().split("\t")
    assert row[2] == "1 s"
    assert row[-2] == "–", "nothing was sent, so no share of it was sent again"
    assert shown.messages == []


def test_an_archive_without_a_capture_that_could_be_read_has_an_index(visit: Open, tmp_path: Path) -> None:
    bad = tmp_path / "none.pcap"
    bad.write_bytes(b"this is no capture at all, whatever it is called")
    archives.made(bad, tmp_path / "out")
    shown = opened(visit, (tmp_path / "out" / "index.html").read_text(encoding="utf-8"))
    assert shown.page.locator("#problems tbody tr").count() == 1
    assert shown.messages == []
