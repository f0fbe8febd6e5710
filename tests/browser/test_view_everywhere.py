"""The explorer for every reader and at every width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab.text import numbers
from tests.support.pages.explorer import serving
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.pages.visits import Visit

    Explore = Callable[..., Visit]
    Serious = Callable[[Visit], list[list[Any]]]

pytest_plugins = ("tests.support.pages.axe", "tests.support.pages.visits")


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the explorer of a capture with losses."""
    with serving(tmp_path_factory.mktemp("cache"), CAPTURES / "ethernet-loss.pcapng") as url:
        yield url


def ready(opened: Visit, path: str) -> None:
    """Wait until all parts of the page are there."""
    if path:
        opened.until("document.querySelector('#figures').ariaBusy === 'false' && document.querySelector('#table tbody td')")
        opened.until("!document.querySelector('#packet').hidden")
    else:
        opened.until("document.querySelector('#list tbody td') && document.querySelector('.overview svg')")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (800, "light"), (1280, "dark"), (1280, "light")])
@pytest.mark.parametrize("path", ["", "connection/0#frame=60&tab=stalls"], ids=["capture", "connection"])
def test_nothing_serious_is_in_the_way_of_any_reader(
    explore: Explore, serious: Serious, lossy: str, path: str, width: int, scheme: str
) -> None:
    opened = explore(lossy + path, bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900})
    ready(opened, path)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, "the page itself does not scroll sideways"
    assert serious(opened) == []
    assert opened.messages == []


def test_every_request_goes_to_the_server_itself(explore: Explore, lossy: str) -> None:
    opened = explore(f"{lossy}connection/0#frame=60")
    ready(opened, "connection")
    assert all(request.startswith((lossy, "data:", "blob:")) for request in opened.requests)
    assert opened.messages == []


def test_numbers_are_written_as_the_report_writes_them(explore: Explore, lossy: str) -> None:
    """The list's cells, made by JavaScript, against the facts above them and in the report, made by Python."""
    opened = explore(lossy)
    ready(opened, "")
    values = [0, 1, 999, 1_000, 999_499, 999_500, 1_234_567, 59_999_999_999, 600_000_000_000, 5_025_000_000_000]
    made = opened.page.evaluate(
        """async (values) => {
            const {duration, size} = await import(new URL('static/format.js', location.href));
            return values.map((value) => [duration(value), size(value)]);
        }""",
        values,
    )
    assert made == [[numbers.duration(value), numbers.size(value)] for value in values]
