"""A browser for the tests, which records all messages and requests: Debian's Chromium, offline.

This is a pytest plugin. Test modules name it in `pytest_plugins`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import needs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Dialog, Page

PATIENCE_MS = 20_000
"""Time limit (ms) for drawing a figure, on a busy machine."""

DRAWN = """[...document.querySelectorAll('.plot')].filter((plot) => plot.checkVisibility())
    .every((plot) => plot.closest('figure').dataset.drawn === 'yes')"""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Use the installed Chromium, because Playwright's own browser is not installed."""
    chromium = needs.program("chromium", "chromium-browser")
    return {**browser_type_launch_args, "executable_path": chromium, "args": ["--no-sandbox"]}


@dataclass
class Visit:
    """An open page, and the messages of the browser about it."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def refuse(self, dialog: Dialog) -> None:
        """Record the message of a script's dialog, and close the dialog."""
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def until(self, condition: str, given: object = None) -> None:
        """Wait until a JavaScript expression is true. The expression can use `given`.

        The browser evaluates the expression before each animation frame, within one call. Playwright's own waiting evaluates strings, which
        the page's policy forbids.
        """
        script = f"""(given) => new Promise((resolve, reject) => {{
            const start = performance.now();
            const look = () => {{
                if ({condition}) resolve();
                else if (performance.now() - start > {PATIENCE_MS}) reject(new Error("it did not happen"));
                else requestAnimationFrame(look);
            }};
            look();
        }})"""
        self.page.evaluate(script, given)

    def draw_all(self) -> None:
        """Scroll through the page until every visible figure is drawn."""
        for plot in self.page.locator(".plot:visible").all():
            plot.scroll_into_view_if_needed()
        self.until(DRAWN)

    def axis(self, axis: str, side: str) -> list[list[float]]:
        """Return the ranges of this axis in all drawn figures of one direction of the first connection."""
        script = """([axis, side]) => [...document.querySelector('.connection').querySelectorAll('figure')]
            .filter((figure) => [side, 'both'].includes(figure.dataset.by) && figure.dataset.drawn === 'yes')
            .map((figure) => figure.querySelector('.plot')._fullLayout[axis].range)"""
        ranges: list[list[float]] = self.page.evaluate(script, [axis, side])
        return ranges


@pytest.fixture
def new_visit(browser: Browser) -> Iterator[Any]:
    """A function that opens an empty page in a new browser context."""
    contexts: list[BrowserContext] = []

    def made(**context_options: Any) -> Visit:
        context = browser.new_context(**context_options)
        contexts.append(context)
        visited = Visit(context.new_page())
        visited.page.on("console", lambda message: visited.messages.append(f"{message.type}: {message.text}"))
        visited.page.on("pageerror", lambda error: visited.messages.append(f"error: {error}"))
        visited.page.on("dialog", visited.refuse)
        visited.page.on("request", lambda request: visited.requests.append(request.url))
        return visited

    yield made
    for context in contexts:
        context.close()


@pytest.fixture
def visit(new_visit: Callable[..., Visit], tmp_path: Path) -> Callable[..., Visit]:
    """Yield a function that saves a page (given as text) to a file and opens it.

    The function can open an anchor such as `#findings`.
    """

    def open_page(html: str, at: str = "", **context_options: Any) -> Visit:
        visited = new_visit(offline=True, **context_options)
        path = tmp_path / "report.html"
        path.write_text(html, encoding="utf-8")
        visited.page.goto(path.as_uri() + at)
        return visited

    return open_page


@pytest.fixture
def explore(new_visit: Callable[..., Visit]) -> Callable[..., Visit]:
    """A function that opens an address of the explorer."""

    def open_page(url: str, **context_options: Any) -> Visit:
        visited = new_visit(**context_options)
        visited.page.goto(url)
        return visited

    return open_page
