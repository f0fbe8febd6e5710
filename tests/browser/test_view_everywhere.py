"""The pages of the explorer are accessible and fit every width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab.text import numbers
from tests.support.command import new_process
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
    with serving(tmp_path_factory.mktemp("cache"), CAPTURES / "ethernet-loss.pcapng") as url:
        yield url


ARCHIVE = "document.querySelector('#list tbody td') && document.querySelector('#trend-chart svg')"
PAIR = "document.querySelector('.headline') && !document.querySelector('.busy')"


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, str]]]:
    """A map from the name of an explorer to its address and a JavaScript condition.

    The condition is true when the page is complete. The explorers show an archive, two capture points, and two captures.
    """
    folder = tmp_path_factory.mktemp("others")
    names = [CAPTURES / f"ethernet-{name}.pcapng" for name in ("loss", "nagle-on", "nagle-off")]
    made = new_process("batch", *names, "-o", folder / "archive", "-q")
    assert made.returncode == 0, made.stderr.decode()
    ends = [CAPTURES / f"ethernet-loss{end}.pcapng" for end in ("", "-at-server")]
    with (
        serving(folder / "cache", folder / "archive") as archive,
        serving(folder / "cache", "--pair", *ends) as pair,
        serving(folder / "cache", names[1], "vs", names[2]) as change,
    ):
        yield {"archive": (f"{archive}#sql=SELECT%20*%20FROM%20captures", ARCHIVE), "pair": (pair, PAIR), "vs": (change, PAIR)}


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (800, "light"), (1280, "dark"), (1280, "light")])
@pytest.mark.parametrize("page", ["archive", "pair", "vs"])
def test_archives_and_pairs_are_in_nobodys_way_either(
    explore: Explore, serious: Serious, others: dict[str, tuple[str, str]], page: str, width: int, scheme: str
) -> None:
    address, complete = others[page]
    opened = explore(address, bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900})
    opened.until(complete)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, "the page itself does not scroll sideways"
    assert serious(opened) == []
    assert opened.messages == []
    assert all(request.startswith((address.partition("#")[0], "data:", "blob:")) for request in opened.requests)


@pytest.mark.parametrize("page", ["pair", "vs"])
def test_of_two_captures_each_has_its_explorer_and_a_way_back(explore: Explore, others: dict[str, tuple[str, str]], page: str) -> None:
    address, complete = others[page]
    opened = explore(address)
    opened.until(complete)
    for place in range(2):
        opened.page.get_by_role("link", name="Explore").nth(place).click()
        opened.page.wait_for_url(f"**/capture/{place}/")
        ready(opened, "")
        name = opened.page.get_by_role("heading", level=1).inner_text()
        opened.page.locator("header .kicker a").click()
        opened.page.wait_for_url(address)
        assert name in opened.page.get_by_role("heading", level=1).inner_text()
    assert opened.messages == []


def ready(opened: Visit, path: str) -> None:
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
    """JavaScript formats the cells of the list. Python formats the facts above the list, and the report.

    All of them must show equal numbers.
    """
    opened = explore(lossy)
    ready(opened, "")
    values = [
        0,
        1,
        999,
        1_000,
        999_499,
        999_500,
        1_234_567,
        59_999_999_999,
        600_000_000_000,
        5_025_000_000_000,
        172_799_000_000_000,
        200_000_000_000_000,
    ]
    made = opened.page.evaluate(
        """async (values) => {
            const {duration, size} = await import(new URL('static/format.js', location.href));
            return values.map((value) => [duration(value), size(value)]);
        }""",
        values,
    )
    assert made == [[numbers.duration(value), numbers.size(value)] for value in values]
