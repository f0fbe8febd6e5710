"""The data of the report page has the right connections and numbers. The page states what it omits."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import polars as pl
import pytest

from tcptrace_lab import report, schema
from tcptrace_lab.engine.figures import MARKS
from tcptrace_lab.report import definitions, selection
from tcptrace_lab.report.figures import plots
from tests.support.pages.report_frames import BASE_NS, FIN, MS, Exchange, HandMade, analysis, lossy_upload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.report.data_types import Figure, Value


def facts(values: list[Value]) -> dict[str, Any]:
    """Map the label of each value to the value itself."""
    return {value["label"]: value["value"] for value in values}


def table(**columns: list[Any]) -> pl.LazyFrame:
    """Return a table of connections with these columns. All other counts are 0, and all other columns are null."""
    rows = len(next(iter(columns.values())))
    zeros = {column.name: [0] * rows for column in schema.CONNECTIONS if column.dtype == "Int64" and "_ns" not in column.name}
    values: dict[str, list[Any]] = {"conn": list(range(rows)), "first_ts_ns": [BASE_NS] * rows, "last_ts_ns": [BASE_NS + MS] * rows}
    frame = pl.DataFrame({**zeros, **values, **columns})
    missing = [pl.lit(None, column.polars_type()).alias(column.name) for column in schema.CONNECTIONS if column.name not in frame.columns]
    return frame.with_columns(missing).lazy()


def all_figures(made: HandMade) -> Iterator[Figure]:
    for connection in report.data(made)["drawn"]:
        yield from connection["figures"]


def test_header_says_what_was_captured() -> None:
    said = facts(report.data(analysis(lossy_upload(), packets=30))["capture"])
    assert said["Packets"] == 30
    assert said["TCP segments"] == 24
    assert said["Link types"] == "Ethernet"
    assert (said["First packet"], said["Last packet"], said["Duration"]) == (BASE_NS, BASE_NS + 181 * MS, 181 * MS)
    assert said["Timestamp resolution"] == 1000


def test_several_link_types_are_reported_with_their_share() -> None:
    links = [{"id": 1, "name": "Ethernet", "packets": 1_200}, {"id": 113, "name": "Linux cooked", "packets": 4}]
    assert (
        facts(report.data(analysis(lossy_upload(), link_types=links))["capture"])["Link types"]
        == "Ethernet (1,200 packets), Linux cooked (4 packets)"
    )


def test_connection_row_has_the_numbers_of_the_table() -> None:
    (row,) = report.data(analysis(lossy_upload()))["rows"]
    assert row == {
        "conn": 0,
        "client": "10.0.0.1:40000",
        "client_guessed": "",
        "server": "10.0.0.2:80",
        "start_ns": 0,
        "duration_ns": 181 * MS,
        "client_bytes": 10_000,
        "server_bytes": 0,
        "resent": 1,
        "initial_rtt_ns": None,
        "rtt_min_ns": None,  # the client sends no ACKs, so the RTT from the capture point to the client is unknown
        "throughput_bps": pytest.approx(10_000 * 8 / 0.090),
        "closed_by": "still open",
        "findings": "",
    }


def test_ipv6_endpoints_are_bracketed() -> None:
    (row,) = report.data(analysis(Exchange(client="2001:db8::1").send(0, "C", 1, 10, ack=1)))["rows"]
    assert row["client"] == "[2001:db8::1]:40000"


def test_problems_beyond_the_list_are_counted() -> None:
    problems = [{"what": f"problem {n}", "frame": n, "offset": None} for n in range(60)]
    said = report.data(analysis(lossy_upload(), complete=False, problems=problems))
    assert (len(said["problems"]), said["problems_total"], said["complete"]) == (50, 60, False)


def test_a_connection_is_drawn_for_its_payload_its_losses_or_its_length() -> None:
    payload = [100 - n for n in range(20)]
    resent = [0] * 20
    resent[17], resent[18] = 5, 9
    last = [BASE_NS + MS] * 20
    last[15] = BASE_NS + 900 * MS
    made = table(client_payload_bytes=payload, client_retransmitted_segments=resent, last_ts_ns=last)
    chosen = selection.chosen(made).drawn["conn"].to_list()
    assert len(chosen) == selection.ALONE.drawn
    assert {0, 1, 2, 3, 15, 17, 18} <= set(chosen)
    assert chosen == sorted(chosen), "most payload first"


def test_connections_without_data_or_time_are_not_drawn() -> None:
    assert selection.chosen(table(client_payload_bytes=[0, 5], first_ts_ns=[BASE_NS, None])).drawn.is_empty()
    assert selection.chosen(table(client_payload_bytes=[0, 5], first_ts_ns=[BASE_NS, None]), found=[0, 1]).drawn.is_empty(), (
        "not for a finding either"
    )


def test_the_table_keeps_the_largest_of_many_connections() -> None:
    payload = [n % 1_000 for n in range(3_000)]
    chosen = selection.chosen(table(server_payload_bytes=payload))
    listed = chosen.listed
    assert chosen.total == 3_000
    assert listed.height == selection.LISTED_CONNECTIONS
    assert listed["server_payload_bytes"].min() == 1_000 - 667, "three of each size, the 2,000 largest"
    assert listed["conn"].is_sorted()


def test_the_reason_is_reported_where_nothing_can_be_drawn() -> None:
    silent = Exchange().send(0, "C", 1, ack=1).send(1, "S", 1, ack=1)
    timeless = lossy_upload()
    for row in timeless.rows:
        row["ts_ns"] = None
    nothing = analysis(silent)
    nothing.connections = nothing.connections.clear()
    nothing.segments = nothing.segments.filter(pl.col("conn") > 0)
    assert report.data(analysis(silent))["undrawn_reason"] == "No connection in this capture carried data."
    assert report.data(analysis(timeless))["undrawn_reason"].startswith("This capture has no timestamps")
    assert report.data(nothing)["undrawn_reason"].startswith("This capture contains no TCP connection")


def test_the_direction_with_most_payload_comes_first_and_the_other_is_offered() -> None:
    both = Exchange().send(0, "C", 1, 100, ack=1).send(5, "S", 1, 5_000, ack=101).send(9, "C", 101, ack=5_001)
    (connection,) = report.data(analysis(both))["drawn"]
    assert [side["label"] for side in connection["sides"]] == ["server → client", "client → server"]
    assert [(figure["key"], figure["by"]) for figure in connection["figures"]] == [
        *((key, side) for side in ("server", "client") for key in ("time-sequence", "flight", "rtt", "segment-sizes")),
        ("throughput", "both"),
    ]


def test_figures_are_valid_plotly_and_plain_json() -> None:
    for figure in all_figures(analysis(lossy_upload())):
        drawn = go.Figure(figure["figure"])
        assert len(drawn.data) == len(figure["figure"]["data"])
        assert json.loads(json.dumps(figure, allow_nan=False))


def test_all_figures_of_a_connection_share_one_time_axis() -> None:
    axes = [figure["figure"]["layout"]["xaxis"] for figure in all_figures(analysis(lossy_upload()))]
    assert all(axis == axes[0] for axis in axes)
    start_s, end_s = axes[0]["range"]
    assert start_s < 0
    assert end_s > 0.181


def test_a_retransmission_is_reported_with_its_frame_and_length() -> None:
    figure = next(each for each in all_figures(analysis(lossy_upload())) if each["key"] == "time-sequence")["figure"]
    (mark,) = [trace for trace in figure["data"] if trace["name"].startswith("fast retransmission")]
    assert (mark["x"], mark["y"], mark["error_y"]["array"]) == ([0.111], [3001], [1000])
    frame, length = mark["customdata"][0]
    assert length == 1000
    assert analysis(lossy_upload()).segments.filter(pl.col("frame") == frame).collect()["kind"].item() == "fast_retransmit"


def test_every_mark_has_its_own_look() -> None:
    assert [*plots.MARKS] == MARKS
    looks = [(mark.symbol, mark.colour) for mark in plots.MARKS.values()]
    assert len({symbol for symbol, _ in looks}) == len(looks), "distinguishable without colour"


def test_one_segment_at_one_instant_is_a_picture_too() -> None:
    (connection,) = report.data(analysis(Exchange().send(0, "C", 1, 10)))["drawn"]
    for figure in connection["figures"]:
        go.Figure(figure["figure"])
    assert facts(connection["facts"])["throughput"] is None


def storm(segments: int) -> HandMade:
    """Return an analysis of `segments` data segments. Every second segment is a retransmit."""
    exchange = Exchange()
    exchange.send(0, "C", 1, 1000, ack=1)
    made = analysis(exchange.send(1, "S", 1, ack=1001, flags=FIN))
    row = pl.int_range(segments, dtype=pl.Int64)
    kind = pl.when(row % 2 == 0).then(pl.lit("new")).otherwise(pl.lit("retransmit")).cast(schema.SEGMENTS["kind"].polars_type())
    segment = made.segments.collect().filter(pl.col("from_client"))
    sent = segment.sample(segments, with_replacement=True).with_columns(
        frame=(row + 1).cast(pl.UInt64), ts_ns=BASE_NS + row * 997_001, seq=row // 2 * 1000 + 1, kind=kind
    )
    resent = segments // 2
    counts = {"client_segments": segments, "client_data_segments": segments, "client_retransmitted_segments": resent}
    last = [pl.lit(segments, pl.UInt64).alias("last_frame"), pl.lit(sent["ts_ns"].max()).alias("last_ts_ns")]
    literals = [pl.lit(value, pl.Int64).alias(name) for name, value in counts.items()]
    made.connections = made.connections.with_columns(*literals, *last)
    made.segments = sent.lazy()
    return made


def test_what_is_left_away_is_said() -> None:
    (connection,) = report.data(storm(40_000))["drawn"]
    assert any("5,000 of 20,000 marks “retransmission” drawn" in note for note in connection["omitted"])
    assert any("20,000 data segments are drawn as" in note for note in connection["omitted"])
    figure = connection["figures"][0]["figure"]
    marks = next(trace for trace in figure["data"] if trace["name"].startswith("retransmission"))
    assert marks["name"] == "retransmission (5,000 of 20,000)"
    assert len(marks["x"]) == 5_000


def test_runs_of_segments_lose_no_byte() -> None:
    """One stroke of a figure stands for several segments. All strokes together contain every new byte."""
    figure = report.data(storm(40_000))["drawn"][0]["figures"][0]["figure"]
    strokes = next(trace for trace in figure["data"] if trace["name"].startswith("data"))
    runs = strokes["customdata"][::3]
    assert sum(run[2] for run in runs) == 20_000
    assert sum(run[3] for run in runs) == 20_000_000
    assert len(runs) <= 2 * selection.ALONE.line_points


def test_the_first_screen_names_the_ends_of_the_direction_that_the_verdict_speaks_of() -> None:
    """The server sends the data and waits for the client's window. So the first screen names the server before the client."""
    account = {column.name: 0 if column.dtype == "Int64" else None for column in schema.ACCOUNTS} | {
        "conn": 0,
        "server_receiver_window_ns": 9 * MS,
        "server_network_ns": MS,
    }
    accounts = pl.LazyFrame([account], schema=schema.ACCOUNTS.polars_schema())
    download = Exchange().send(0, "C", 1, 10, ack=1).send(10, "S", 1, 5_000, ack=11).send(20, "C", 11, ack=5_001)
    head = report.data(replace(analysis(download), accounts=accounts))["headline"]
    assert head["ends"] == "10.0.0.2:80 → 10.0.0.1:40000"
    assert head["bar"] is not None
    assert [(part["cause"], part["ns"]) for part in head["bar"]["parts"]] == [("receiver-window", 9 * MS), ("network", MS)]
    assert head["sentence"].startswith("A full receive window on 10.0.0.1 took 90% of 10 ms")


def test_every_cause_and_every_figure_of_a_direction_is_defined() -> None:
    words = definitions.words()
    assert [one["word"] for one in words["Why a direction did not send its next byte"]] == list(schema.CAUSES)
    assert len(words["Figures of a direction"]) == len(schema.STATISTICS) + len(schema.SPREADS)
    assert all(one["means"] for part in words.values() for one in part)
