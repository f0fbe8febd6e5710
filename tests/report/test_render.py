"""The report page is a safe and small file. It escapes text from a capture, and it loads nothing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import random
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcptrace_lab import analyze, report, schema
from tcptrace_lab.report import selection
from tcptrace_lab.report.pack import Packing, pack, unpack
from tcptrace_lab.report.render import plotly_script
from tests.support.pages.html_pages import HOSTILE, Page
from tests.support.pages.report_frames import Exchange, analysis, lossy_upload

if TYPE_CHECKING:
    from pathlib import Path

REPORT_BYTES = 6_000_000


@pytest.fixture(scope="module")
def hostile_page() -> Page:
    """A page of a capture in which every string contains an attack."""
    exchange = lossy_upload()
    exchange.client = exchange.server = HOSTILE
    links = [{"id": 1, "name": HOSTILE, "packets": 1}, {"id": 2, "name": HOSTILE, "packets": 1}]
    problems = [{"what": HOSTILE, "frame": 1, "offset": 2}]
    made = analysis(exchange, name=HOSTILE, format=HOSTILE, path=HOSTILE, link_types=links, problems=problems)
    return Page(report.render(report.data(made)))


def test_hostile_strings_are_shown_as_text(hostile_page: Page) -> None:
    tame = Page(report.render(report.data(analysis(lossy_upload(), problems=[{"what": "", "frame": 1, "offset": 2}]))))
    assert [tag for tag, _ in hostile_page.elements] == [tag for tag, _ in tame.elements]
    assert [set(attributes) for _, attributes in hostile_page.elements] == [set(attributes) for _, attributes in tame.elements]
    assert hostile_page.text.count(HOSTILE) >= 6


def test_nothing_is_referred_to_outside_the_page(hostile_page: Page) -> None:
    for tag, attributes in hostile_page.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        for name in ("src", "href", "action", "data", "poster", "srcset", "background"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    style = (report.render.__globals__["_static"])("report.css")
    assert "url(" not in style
    assert "@import" not in style


def test_policy_forbids_the_network_and_names_exactly_the_scripts_of_the_page(hostile_page: Page) -> None:
    policy = next(
        attributes["content"] for tag, attributes in hostile_page.elements if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert "unsafe-eval" not in policy
    script_rule = re.search(r"script-src ([^;]*);", policy)
    assert script_rule is not None
    kinds = [attributes.get("type") for tag, attributes in hostile_page.elements if tag == "script"]
    (own,) = [script for script, kind in zip(hostile_page.scripts, kinds, strict=True) if kind is None]
    assert script_rule[1].split() == [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (own, plotly_script())
    ]


def test_plotly_is_there_once(hostile_page: Page) -> None:
    script = plotly_script()
    places = [
        place
        for place, (tag, attributes) in enumerate(e for e in hostile_page.elements if e[0] == "script")
        if attributes.get("id") == "plotly"
    ]
    assert [gzip.decompress(base64.b64decode(hostile_page.scripts[place])).decode() for place in places] == [script]
    assert "\r" not in script, "browsers read it as a new line, and the hash would be another"


def test_plotly_is_the_published_bundle_unchanged() -> None:
    """The expected hash is that of plotly-basic.min.js in the npm package. `static/README.md` has the hash of the package."""
    (script,) = report.shared_scripts().values()
    assert hashlib.sha256(script).hexdigest() == "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"


def test_a_page_that_shares_its_script_is_small_and_lets_only_that_file_run() -> None:
    made = report.data(analysis(lossy_upload()))
    shared = Page(text := report.render(made, scripts="shared"))
    assert len(text) < 300_000, "what the design promises for a report in an archive"
    (held,) = [attributes for _, attributes in shared.elements if attributes.get("id") == "plotly"]
    assert [held["data-beside"]] == list(report.shared_scripts())
    (policy,) = [attributes["content"] or "" for _, attributes in shared.elements if attributes.get("http-equiv")]
    assert f"'nonce-{held['data-nonce']}'" in policy
    assert "http" not in policy
    assert text == report.render(made, scripts="shared")
    nonce = held["data-nonce"] or ""
    assert nonce not in report.render(report.data(analysis(lossy_upload(), name="another")), scripts="shared")


def test_a_file_name_that_is_not_utf8_is_spelled_out(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    report.write_report(analysis(lossy_upload(), name="caf\udce9.pcap"), str(target))
    assert "caf\\udce9.pcap" in target.read_text(encoding="utf-8")


def test_problems_are_reported_with_their_place() -> None:
    cut = [{"what": "the file ends inside a packet", "frame": 1204, "offset": 81_920}]
    text = " ".join(Page(report.render(report.data(analysis(lossy_upload(), complete=False, problems=cut)))).text.split())
    assert "This capture could not be read completely" in text
    assert "the file ends inside a packet, frame 1,204, byte 81,920" in text


def test_a_client_that_no_syn_shows_is_said_to_be_a_guess() -> None:
    made = analysis(lossy_upload())
    assert "guessed" not in Page(report.render(report.data(made))).text
    made.connections = made.connections.with_columns(
        client_known_by=pl.lit("port").cast(schema.CONNECTIONS["client_known_by"].polars_type())
    )
    assert "10.0.0.1:40000 guessed" in Page(report.render(report.data(made))).text


def test_connections_that_are_not_listed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "LISTED_CONNECTIONS", 2)
    made = analysis(*(Exchange(conn=n, first_frame=n + 1).send(n, "C", 1, 10 + n, ack=1) for n in range(5)))
    page = Page(report.render(report.data(made)))
    assert "3 of 5 connections are not listed." in page.text
    assert sum(tag == "tr" for tag, _ in page.elements) == 1 + 2 + len(report.data(made)["drawn"])


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, None, 4, 5, 6, 7, 8, 9, -10],
        [0.000001 * n for n in range(20)],
        [[n, n * n] for n in range(12)] + [None],
        [1e-12, *range(10)],
        [2**60, *range(10)],
        ["a", *range(10)],
        [None] * 12,
        [],
        {"x": [0.1, 0.25, 3.0, 4, 5, 6, 7, 8, 9.123456789], "name": "</script>"},
    ],
)
def test_packed_numbers_come_back_exactly(value: Any) -> None:  # noqa: ANN401
    assert unpack(pack(value)) == value


@given(st.lists(st.none() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9), max_size=40))
def test_any_list_of_numbers_survives_packing(values: list[float | None]) -> None:
    assert unpack(pack(values)) == values


def busiest() -> dict[str, Any]:
    """Return the data of a report that reaches every limit.

    The report has the maximum number of rows, lines and marks. Its numbers compress badly.
    """
    dice = random.Random(7)  # noqa: S311
    made = report.data(analysis(lossy_upload()))
    endpoint = "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535"
    row = made["rows"][0] | {"client": endpoint, "server": endpoint, "start_ns": 7_654_321_987_654_321, "throughput_bps": 123456789.123}
    made["rows"] = [
        row | {"conn": n, "client_bytes": dice.randrange(10**12), "server_bytes": dice.randrange(10**12)}
        for n in range(selection.LISTED_CONNECTIONS)
    ]
    clock = sorted(round(dice.random() * 1_000, 6) for _ in range(selection.ALONE.report_line_points))
    frames = sorted(dice.randrange(10**7) for _ in clock)

    def line() -> dict[str, Any]:
        return {"x": clock, "y": sorted(dice.randrange(10**10) for _ in clock), "customdata": frames}

    def jumps() -> dict[str, Any]:
        return {"x": clock, "y": [dice.randrange(10**6) for _ in clock], "customdata": frames}

    def samples() -> dict[str, Any]:
        return {"x": clock, "y": [dice.randrange(10**8) / 1e9 for _ in clock], "customdata": frames}

    strokes = {
        "x": [t for t in clock for _ in "123"],
        "y": [v for v in line()["y"] for _ in "123"],
        "customdata": [[f, f + 9, 10, 14_480] for f in frames for _ in "123"],
    }
    moments = sorted(round(dice.random() * 1_000, 6) for _ in range(selection.ALONE.report_mark_points))
    sizes = [dice.choice((1448, 1448, 1448, 536, 12)) for _ in moments]
    marks = {
        "x": moments,
        "y": sorted(dice.randrange(10**10) for _ in moments),
        "customdata": [[int(t * 1e4), s] for t, s in zip(moments, sizes, strict=True)],
    }
    marks["error_y"] = {"array": sizes, "arrayminus": [0] * len(sizes)}
    traces = [strokes, line(), line(), jumps(), jumps(), samples(), samples(), marks]
    made["drawn"][0]["figures"][0]["figure"]["data"] = traces
    return dict(made)


def test_the_busiest_report_stays_within_the_promised_size() -> None:
    assert len(report.render(busiest()).encode()) <= REPORT_BYTES


def test_the_first_screen_shows_each_kind_of_finding_once_and_says_how_many_are_alike() -> None:
    made: Any = report.data(analyze("captures/ethernet-nagle-on.pcapng"))
    first, other = made["findings"][:2]
    made["findings"] = [first, *({**first, "conn": conn, "place": conn + 1, "zoom": None} for conn in (1, 2, 3)), other]
    made["findings_total"], made["connections_total"] = 5, 4
    cards = report.render(made).split('<ol class="cards">')[1].split("</ol>")[0]
    assert cards.count('<li class="card') == 2
    assert "; 3 more like it" in cards
    assert "Connection 0," in cards


def test_the_first_screen_shows_findings_of_one_name_apart_if_their_remedies_differ() -> None:
    made: Any = report.data(analyze("captures/ethernet-loss.pcapng"))
    cards = report.render(made).split('<ol class="cards">')[1].split("</ol>")[0]
    assert [found["id"] for found in made["findings"]] == ["loss", "loss", "slow-start-limited"]
    assert cards.count('<li class="card') == 3
    assert "more like it" not in cards


def test_small_values_are_packed_together_and_a_large_one_alone() -> None:
    packing, small, large = Packing(), [{"a": [1, 2]}, "text", {"b": None}], [f"{number:x}" for number in range(20_000)]
    places = [packing.later(value) for value in (*small, large)]
    together, *indices, alone = packing.put_in("|".join([packing.place, *places])).split("|")
    assert [unpack(together)[int(index)] for index in indices] == small
    assert unpack(alone) == large
