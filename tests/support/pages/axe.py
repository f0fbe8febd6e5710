"""Runs axe-core in a page. It finds faults that exclude users with disabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.fetch_axe import PLACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.pages.visits import Visit

_SERIOUS = {"serious", "critical"}

_AXE = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
    .map((each) => [each.impact, each.id, each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))])"""


@pytest.fixture
def serious() -> Callable[[Visit], list[list[Any]]]:
    """Yield a function that returns the serious accessibility faults of a page.

    The function first opens all folded parts of the page. `make` downloads the axe-core script.
    """
    if not PLACE.is_file():
        pytest.skip("tests with axe-core (not fetched; python tests/browser/fetch_axe.py)")

    def found(opened: Visit) -> list[list[Any]]:
        opened.page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        opened.draw_all()
        opened.page.add_script_tag(path=PLACE)
        return [each for each in opened.page.evaluate(_AXE) if each[0] in _SERIOUS]

    return found
