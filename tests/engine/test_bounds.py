"""A capture can have more connections and flows than the engine tracks at a time.

The engine still returns all of them in order of their number, and it needs bounded memory.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tcptrace_lab import analyze, read, report
from tcptrace_lab.report.data import data as report_data
from tcptrace_lab.udp.datagrams import read_datagrams
from tests.support import needs
from tests.support.captures import crowd
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab import Analysis

CAPTURES = sorted(path for path in ROOT.joinpath("captures").iterdir() if ".pcap" in path.name)
LINES_OF_WHOLE_NS = needs.SHARED / "zeek-zeek__206_example_c.pcap"
"""A capture whose bottleneck carries a full segment in a whole number of nanoseconds.

If the last bit of the quotient were wrong, the truncated time would be 1 ns less.
"""
FAR = 10**12
"""A limit (rows or bytes) that no test reaches."""

FOLLOWED = 131_072
"""Number of connections, and of flows, that the engine tracks at a time (`MAX_LIVE`)."""
FEW = 16_384
"""If the engine tracks at least this number of connections, it closes those that have ended (`FEW`)."""


def said(analysis: Analysis) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the document of the JSON and the data of the report."""
    return analysis.to_dict(), json.loads(json.dumps(report_data(analysis), default=str))


@pytest.mark.parametrize("capture", needs.each([*CAPTURES, LINES_OF_WHOLE_NS]))
def test_json_and_report_are_the_same_when_nothing_stays_in_memory(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = said(analyze(capture, spill_rows=FAR, reread_bytes=FAR))
    monkeypatch.setattr("tcptrace_lab.engine.reread.PULL_ROWS", 500)
    monkeypatch.setattr("tcptrace_lab.engine.sorting.RANGE_ROWS", 2)
    assert said(analyze(capture, spill_rows=0, reread_bytes=FAR)) == expected


@pytest.fixture(scope="module")
def flood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture with SYNs of more clients than the engine tracks at a time. Every seventh client repeats its SYN at the end."""
    count = FOLLOWED + 9_000
    again = np.arange(0, count, 7)
    folder = tmp_path_factory.mktemp("flood")
    first = crowd.tcp(np.arange(count), np.arange(count) * 1e-5)
    return crowd.write(folder / "flood.pcap", first, crowd.tcp(again, 5 + again * 1e-5))


def test_connections_beyond_those_followed_are_each_handed_out_once_by_number(flood: Path) -> None:
    kept = read(flood, spill_rows=FAR, reread_bytes=FAR)
    spilled = read(flood, spill_rows=FOLLOWED, reread_bytes=FAR)
    connections = kept.connections.collect()
    assert connections["conn"].to_list() == list(range(kept.info["connections"]))
    assert_frame_equal(spilled.connections.collect(), connections)
    counted = kept.segments.group_by("conn").agg(segments=pl.len().cast(pl.Int64)).sort("conn").collect()
    assert connections["client_segments"].to_list() == counted["segments"].to_list()
    assert connections["client_segments"].sum() == kept.info["tcp_segments"]


def test_what_a_connection_sends_after_it_made_room_is_another_one_and_reported(flood: Path) -> None:
    tables = read(flood, reread_bytes=FAR)
    clients = FOLLOWED + 9_000
    (problem,) = tables.problems
    closed = tables.connections.filter(closed_by="room").select(pl.len()).collect().item()
    assert "more connections at a time than are followed" in problem["what"]
    assert problem["count"] == closed
    assert not problem["loses_data"]
    assert clients <= tables.info["connections"] <= clients + closed
    assert tables.connections.filter(closed_by="end").select(pl.len()).collect().item() == FOLLOWED
    assert closed == tables.info["connections"] - FOLLOWED


def test_one_connection_of_very_many_is_found_in_every_table(flood: Path) -> None:
    for reread_bytes in (0, FAR):
        analysis = analyze(flood, connection=70_000, reread_bytes=reread_bytes)
        (connection,) = analysis.to_dict()["connections"]
        assert connection["id"] == 70_000
        assert connection["client"] == {"addr": "20.1.17.112", "port": crowd.CLIENT_PORT}  # the address encodes 70,000 = 0x11170
        assert analysis.segments.select("frame").collect().row(0) == (70_001,)


def test_a_report_of_very_many_connections_counts_those_it_does_not_list(flood: Path) -> None:
    analysis = analyze(flood)
    page = report_data(analysis)
    assert (len(page["rows"]), page["connections_total"]) == (report.selection.LISTED_CONNECTIONS, analysis.capture["connections"])


def others(count: int, at_s: float) -> np.ndarray:
    """Return the SYNs of `count` clients within one second. No other packet has the address of one of these clients."""
    first = 1_000_000 + int(at_s) * 50_000
    return crowd.tcp(np.arange(first, first + count), at_s + np.linspace(0, 1, count))


def exchange(client: int, at_s: float, *, ends: bool) -> np.ndarray:
    """Return a handshake. If `ends` is true, FINs of both hosts follow."""
    flags = [crowd.SYN, crowd.SYN_ACK, crowd.ACK] + [crowd.FIN_ACK, crowd.FIN_ACK, crowd.ACK] * ends
    from_client = np.array([True, False, True] + [True, False, True] * ends)
    seq = np.array([1_000, 5_000, 1_001] + [1_001, 5_001, 1_002] * ends)
    return crowd.tcp(np.full(len(flags), client), at_s + np.arange(len(flags)) * 1e-3, np.array(flags), from_client=from_client, seq=seq)


LATE = 3 * 3_600.0


def late_segments_open(folder: Path, crowd_size: int, late_s: float, *, ends: bool) -> tuple[bool, list[str]]:
    """Return whether a late segment opens a new connection, and return the reported problems.

    Between the connection and its late segment, a crowd of other connections is captured.
    """
    late = crowd.tcp([5], late_s + 2, crowd.ACK, seq=1_002 if ends else 1_001)
    path = crowd.write(folder / "late.pcap", others(crowd_size, 0), exchange(5, 1, ends=ends), others(crowd_size, late_s), late)
    tables = read(path)
    own = tables.connections.filter(client_addr="20.0.0.5").select("client_segments", "closed_by").collect()
    assert own["client_segments"].sum() == (5 if ends else 3)
    return own.height == 2, [problem["what"] for problem in tables.problems]


def test_among_few_connections_a_segment_hours_later_still_belongs_to_its_own(tmp_path: Path) -> None:
    assert late_segments_open(tmp_path, FEW // 2 - 10, LATE, ends=True) == (False, [])
    assert late_segments_open(tmp_path, FEW // 2 - 10, LATE, ends=False) == (False, [])


def test_among_many_a_connection_that_ended_is_closed_after_its_time_wait(tmp_path: Path) -> None:
    assert late_segments_open(tmp_path, 2 * FEW, 200.0, ends=True) == (False, [])
    assert late_segments_open(tmp_path, 2 * FEW, 300.0, ends=True) == (True, [])


def test_among_many_a_silent_connection_is_closed_after_two_hours_and_reported(tmp_path: Path) -> None:
    assert late_segments_open(tmp_path, 2 * FEW, 7_400.0, ends=False) == (False, [])
    opened, (problem,) = late_segments_open(tmp_path, 2 * FEW, LATE, ends=False)
    assert opened
    assert "silent for more than 2 hours" in problem


def test_ports_that_are_used_again_and_again_take_one_place(tmp_path: Path) -> None:
    rounds = np.arange(3_000)
    path = crowd.write(tmp_path / "again.pcap", crowd.tcp(rounds * 0 + 9, rounds * 1e-3, seq=rounds * 70_001))
    connections = read(path, spill_rows=10).connections.collect()
    assert connections["conn"].to_list() == rounds.tolist()
    assert connections["closed_by"].to_list() == ["reuse"] * 2_999 + ["end"]


def test_udp_flows_beyond_those_followed_are_each_handed_out_once_by_number(tmp_path: Path) -> None:
    count = FOLLOWED + 30_000
    number = np.repeat(np.arange(count), 2)
    asked = np.tile([True, False], count)
    path = crowd.write(tmp_path / "udp.pcap", crowd.udp(number, number * 1e-5 + ~asked * 2e-6, from_client=asked), crowd.udp([3], 9.0))
    read_so = {spill_rows: read_datagrams(path, spill_rows=spill_rows, reread_bytes=FAR) for spill_rows in (FAR, FOLLOWED)}
    flows = read_so[FAR].flows.collect()
    assert_frame_equal(read_so[FOLLOWED].flows.collect(), flows)
    assert flows["flow"].to_list() == list(range(count + 1)), "the flow that made room is another one when it goes on"
    assert flows.filter(client_addr="20.0.0.3")["client_datagrams"].to_list() == [1, 1]
    assert flows["echo_min_ns"].drop_nulls().to_list() == [2_000] * count
    (problem,) = read_so[FAR].problems
    assert ("more UDP flows at a time" in problem["what"], problem["count"]) == (True, 30_001)
