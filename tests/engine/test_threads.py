"""The number of threads changes nothing in the output of the engine: rows, their order and connection numbers stay the same."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

from tcptrace_lab import _core, causes, schema
from tcptrace_lab.engine import reread
from tests.support.places import CAPTURES, ROOT

STREAM = ROOT / "benchmarks" / "traffic" / "stream.py"

MANY = {"short": 30_000, "syns": 135_000}
"""The numbers of connections that end (`short`) and of connections that do not (`syns`).

The engine tracks fewer connections at a time, so it has to close some of them.
"""


@pytest.fixture(scope="module", params=["short", "syns", "several"])
def paths(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The paths of one capture with many connections, or of several captures that are read together."""
    if request.param not in MANY:
        return [str(CAPTURES / name) for name in ("ethernet-loss.pcapng", "ethernet-two-way.pcapng", "ethernet-random-loss.pcapng")]
    path = tmp_path_factory.mktemp("threads") / f"{request.param}.pcap"
    with path.open("wb") as target:
        subprocess.run([sys.executable, STREAM, request.param, str(MANY[request.param])], stdout=target, check=True)
    return [str(path)]


def tables(paths: list[str], threads: int, *, segments: bool = False) -> dict[str, pl.DataFrame]:
    """Return all tables that the engine makes with `threads` threads. One thread always makes the rows of segments."""
    columns = ["frame", "conn", "kind"] if segments else []
    engine = _core.Engine(paths, columns=columns, ledger=schema.LEDGER.names, worth=causes.worth(), threads=threads)
    pulled = list(reread.pulled_all(engine))
    whole = ("segments", "connections", "accounts", "ledger", "notes")
    found = {name: pl.concat([getattr(rows, name) for rows in pulled]) for name in whole}
    found |= reread.judged(engine)._asdict()
    found["revisions"] = reread.frame(engine.revisions(), schema.SEGMENTS)
    return found


@pytest.fixture(scope="module")
def expected(paths: list[str]) -> dict[str, pl.DataFrame]:
    return tables(paths, 1)


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_change_nothing(paths: list[str], expected: dict[str, pl.DataFrame], threads: int) -> None:
    assert all(expected[name].height for name in ("connections", "accounts"))
    for name, table in tables(paths, threads).items():
        assert table.equals(expected[name]), name


def test_connections_have_the_numbers_that_their_segments_have(paths: list[str], expected: dict[str, pl.DataFrame]) -> None:
    with_segments = tables(paths, 8, segments=True)
    assert with_segments["connections"].equals(expected["connections"])
    firsts = with_segments["segments"].group_by("conn").agg(first_frame=pl.col("frame").min()).sort("conn")
    assert firsts["first_frame"].is_sorted()
    assert firsts["conn"].to_list() == list(range(expected["connections"].height))
    assert expected["connections"].sort("conn")["first_frame"].to_list() == firsts["first_frame"].to_list()
