"""Tests of the table of UDP flows in the report: its data, and the page that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab import analyze, report, schema
from tcptrace_lab.report.parts import udp
from tests.support import packets
from tests.support.pages.html_pages import HOSTILE, Page
from tests.support.pages.report_frames import analysis, lossy_upload

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000

UNKNOWN_FLOW: dict[str, Any] = {column.name: 0 if column.dtype == "Int64" and not column.limits else None for column in schema.FLOWS}
"""The row of a UDP flow whose values are all 0 or unknown."""


def flows(*changes: dict[str, Any]) -> pl.LazyFrame:
    """Return rows of `schema.FLOWS` with these values.

    All other values are null, or 0 in columns that are never null.
    """
    who = {"client_addr": "10.0.0.1", "client_port": 40_000, "server_addr": "10.0.0.2", "server_port": 53}
    rows = [UNKNOWN_FLOW | who | {"flow": number, **change} for number, change in enumerate(changes)]
    return pl.LazyFrame(rows, schema=schema.FLOWS.polars_schema(), orient="row")


def test_a_flow_has_the_figures_of_the_direction_with_most_data(tmp_path: Path) -> None:
    text = "\n".join(f"+20ms C > S udp {60 + 60 * (n % 2)} {{id {n + n // 15}}}\n+5ms S > C udp 20" for n in range(30))
    data = report.data(analyze(packets.capture(tmp_path / "call.pcap", text)))
    (row,) = data["flows"]
    assert row == {
        "flow": 0,
        "client": "10.0.0.1:40000",
        "server": "10.0.0.2:80",
        "client_datagrams": 30,
        "server_datagrams": 30,
        "client_bytes": 2700,
        "server_bytes": 600,
        "rate_bps": pytest.approx(2700 * 8 / (29 * 0.025)),
        "sizes": "60 to 120 B (2 sizes)",
        "gap_p50_ns": 25 * MS,
        "gap_max_ns": 25 * MS,
        "gap_variation": 0,
        "missing": 1,
        "echo_p50_ns": 5 * MS,
    }
    assert [column["key"] for column in data["flow_columns"]] == list(row)
    assert {"label": "UDP datagrams", "value": 60, "kind": "count"} in data["capture"]


def test_one_size_is_reported_as_one() -> None:
    total, (row,) = udp.listed(flows({"client_min_payload_bytes": 1472, "client_max_payload_bytes": 1472, "client_distinct_sizes": 1}))
    assert (total, row["sizes"]) == (1, "1,472 B")


def test_the_hundred_largest_flows_are_listed_the_largest_first() -> None:
    total, listed = udp.listed(
        flows(*({"client_payload_bytes": n, "server_payload_bytes": n * n % 7, "client_min_payload_bytes": 1} for n in range(300)))
    )
    totals = [row["client_bytes"] + row["server_bytes"] for row in listed]
    assert (total, len(listed)) == (300, udp.LISTED_FLOWS)
    assert totals == sorted((n + n * n % 7 for n in range(300)), reverse=True)[:100]


def test_every_column_says_what_it_means() -> None:
    for column in udp.columns():
        assert column["tooltip"]
        assert "(host: client)" not in column["tooltip"] or column["label"].endswith("→")


def page(table: pl.LazyFrame) -> Page:
    made = analysis(lossy_upload())
    made.flows = table
    return Page(report.render(report.data(made)))


def test_a_capture_without_udp_has_no_such_table() -> None:
    assert "UDP" not in page(flows()).text


def test_unknown_loss_is_said_in_words_and_flows_that_are_not_listed_are_counted() -> None:
    some = {"client_min_payload_bytes": 9, "client_max_payload_bytes": 9, "client_datagrams": 1}
    known = {**some, "client_missing_datagrams": 3, "client_payload_bytes": 9}
    made = page(flows(known, *[some] * 101))
    with_one = page(flows(known))
    assert made.text.count("unknown") - with_one.text.count("unknown") == 99
    assert "2 of 102 flows are not listed." in made.text
    rows, of_one = (sum(tag == "tr" for tag, _ in each.elements) for each in (made, with_one))
    assert rows - of_one == 100 - 1


def test_an_address_that_is_markup_stays_text() -> None:
    size = {"client_min_payload_bytes": 9, "client_max_payload_bytes": 9}
    tame, hostile = page(flows(size)), page(flows({**size, "client_addr": HOSTILE}))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in tame.elements]
    assert HOSTILE in hostile.text
