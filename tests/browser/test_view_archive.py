"""The explorer of an archive shows causes over time and the list of captures.

It also runs SQL queries, and it has links to the explorers of captures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command import new_process
from tests.support.pages.explorer import serving
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.pages.visits import Visit

    Explore = Callable[..., Visit]

pytest_plugins = ("tests.support.pages.visits",)

NAMES = ("ethernet-loss", "ethernet-nagle-on")


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("archive")
    made = new_process("batch", *(CAPTURES / f"{name}.pcapng" for name in NAMES), "-o", folder / "kept")
    assert made.returncode == 0, made.stderr.decode()
    with serving(folder / "cache", folder / "kept") as url:
        yield url


def test_a_capture_is_found_and_opened_from_its_archive(explore: Explore, archived: str) -> None:
    opened = explore(archived)
    opened.until("document.querySelector('#list tbody td') && document.querySelector('#trend-chart svg')")
    assert opened.page.locator("#found").inner_text() == "2 captures"
    opened.page.get_by_label("Search").fill("nagle")
    opened.until("document.querySelector('#found').textContent === '1 capture'")
    opened.page.locator("#list tbody a").click()
    opened.page.wait_for_url("**/capture/*/")
    opened.until("document.querySelector('.overview svg')")
    assert opened.page.get_by_role("heading", level=1).inner_text() == "ethernet-nagle-on"
    opened.page.locator("#list tbody a").first.click()
    opened.page.wait_for_url("**/connection/0")
    opened.until("document.querySelector('#figures').ariaBusy === 'false'")
    opened.page.get_by_role("link", name="Archive").click()  # first from the connection's page, then from its capture's page
    opened.page.wait_for_url(archived)
    opened.until("document.querySelector('#list tbody td')")
    opened.page.locator("#list tbody a").first.click()
    opened.page.wait_for_url("**/capture/*/")
    opened.page.get_by_role("link", name="Archive").click()
    opened.page.wait_for_url(archived)
    assert opened.messages == []


def test_a_query_is_answered_and_kept_in_the_address(explore: Explore, archived: str) -> None:
    opened = explore(archived)
    opened.page.get_by_role("textbox", name="SQL").fill("SELECT 6 * 7 AS product, '<b>x</b>' AS words")
    opened.page.get_by_role("button", name="Run").click()
    opened.until("document.querySelector('#answer tbody td')")
    assert opened.page.locator("#answer tr[aria-rowindex] td").all_inner_texts() == ["42", "<b>x</b>"]
    again = explore(opened.page.url)
    again.until("document.querySelector('#answer tbody td')")
    assert opened.messages == again.messages == []


def test_a_query_that_fails_is_answered_in_one_line(explore: Explore, archived: str) -> None:
    opened = explore(archived)
    opened.page.get_by_role("textbox", name="SQL").fill("SELECT nonsense FROM nowhere")
    opened.page.get_by_role("button", name="Run").click()
    opened.until("!document.querySelector('#trouble').hidden")
    assert "\n" not in opened.page.locator("#trouble").inner_text()
