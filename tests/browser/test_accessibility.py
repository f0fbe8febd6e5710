"""The report is accessible with a screen reader, with a keyboard and without colour vision, in the light and in the dark theme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab import analyze, compare, report
from tcptrace_lab.comparison.page import write_page
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.pages.visits import Visit

    Open = Callable[..., Visit]
    Serious = Callable[[Visit], list[list[Any]]]

pytest_plugins = ("tests.support.pages.axe", "tests.support.pages.visits")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The reports of three captures.

    The first capture has findings, the second has data in both directions, and the third has several connections.
    """
    names = ("ethernet-nagle-on", "ethernet-two-way", "ethernet-short-connections")
    return {name: report.render(report.data(analyze(CAPTURES / f"{name}.pcapng"))) for name in names}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["ethernet-nagle-on", "ethernet-two-way", "ethernet-short-connections"])
def test_nothing_serious_is_in_the_way_of_any_reader(visit: Open, serious: Serious, pages: dict[str, str], name: str, scheme: str) -> None:
    opened = visit(pages[name], bypass_csp=True, color_scheme=scheme)
    assert serious(opened) == []


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page that compares three captures.

    One capture has services that the others lack, so the page has several notes and figures.
    """
    path = tmp_path_factory.mktemp("compared") / "page.html"
    names = ("ethernet-loss", "ethernet-bottleneck", "ethernet-short-connections")
    write_page(compare(*(CAPTURES / f"{name}.pcapng" for name in names)), str(path))
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (800, "light"), (1400, "light")])
def test_a_comparison_is_in_nobodys_way_either_at_any_width(visit: Open, serious: Serious, compared: str, width: int, scheme: str) -> None:
    opened = visit(compared, bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900})
    assert serious(opened) == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, "the page itself does not scroll sideways"
    assert opened.messages == []
    assert opened.requests == [opened.page.url]


def test_all_that_can_be_done_can_be_done_from_the_keyboard(visit: Open, pages: dict[str, str]) -> None:
    """The Tab key reaches the skip link first and then every control.

    The skip link leads to the verdict. Each control shows when it has the focus.
    """
    opened = visit(pages["ethernet-nagle-on"])
    opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.className") == "skip"
    opened.page.keyboard.press("Enter")
    assert opened.page.evaluate("location.hash") == "#main"
    reached = []
    for _ in range(40):
        opened.page.keyboard.press("Tab")
        reached.append(
            opened.page.evaluate("[document.activeElement.textContent.trim(), getComputedStyle(document.activeElement).outlineStyle]")
        )
    assert all(style != "none" for text, style in reached if not text.startswith("Skip")), "but for the page itself, behind the last"
    words = [text for text, _ in reached]
    for control in ("Evidence, limits and frames of finding 1", "copy", "duration", "zoom in", "later ▶"):
        assert control in words, words


def test_a_link_to_a_finding_opens_it_and_goes_there(visit: Open, pages: dict[str, str]) -> None:
    opened = visit(pages["ethernet-nagle-on"])
    opened.page.get_by_role("link", name="Evidence, limits and frames of finding 2").focus()
    opened.page.keyboard.press("Enter")
    opened.until("document.getElementById('finding-2').open")
    opened.until("Math.abs(document.getElementById('finding-2').getBoundingClientRect().top) < innerHeight")
    assert opened.page.url.endswith("#finding-2")


def test_causes_are_distinguished_without_colour(visit: Open, pages: dict[str, str]) -> None:
    opened = visit(pages["ethernet-two-way"])
    looks = opened.page.evaluate("[...document.querySelectorAll('.headline .bar span')].map((each) => each.className)")
    assert len(looks) > 3
    assert len(set(looks)) > 3
    named = opened.page.locator(".headline .legend li").all_inner_texts()
    assert all(text.split()[0].isascii() for text in named)
    assert opened.page.locator(".headline .bar").get_attribute("aria-label")
