"""The tables of an archive match their schema in every program that reads Parquet.

The command `archive` queries, lists and cleans an archive.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from typing import TYPE_CHECKING

import duckdb
import pandas as pd
import polars as pl
import pytest

from tcptrace_lab import schema
from tcptrace_lab.archive import garbage_collection
from tcptrace_lab.archive.dataset import query
from tcptrace_lab.archive.dataset.tables import table_types
from tcptrace_lab.archive.index.overview import overview
from tcptrace_lab.errors import UsageError
from tests.support import packets
from tests.support.captures import archives
from tests.support.command import new_process, only_line

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a folder with eight captures and a file that is not a capture."""
    folder = archives.folder_of(tmp_path_factory.mktemp("tables") / "in", 8)
    (folder / "none.pcap").write_bytes(b"this is no capture at all, whatever it is called")
    archives.made(folder, folder.parent / "out")
    return folder.parent / "out"


@pytest.mark.parametrize("table", schema.ARCHIVE_TABLES.values(), ids=lambda table: table.name)
def test_each_table_has_the_columns_of_its_schema_in_three_readers(archive: Path, table: schema.Table) -> None:
    files = sorted((archive / "tables" / table.name).rglob("*.parquet"))
    assert files
    by_polars = pl.concat([pl.read_parquet(file) for file in files])
    assert dict(by_polars.schema) == table_types(table)
    by_pandas = pd.concat([pd.read_parquet(file) for file in files])
    assert tuple(by_pandas.columns) == table.names
    glob = str(archive / "tables" / table.name / "**" / "*.parquet")
    (counted,) = duckdb.execute(f"SELECT COUNT(*) FROM '{glob}'").fetchall()  # noqa: S608  (a path of ours)
    assert counted == (by_polars.height,) == (len(by_pandas),)


def test_duckdb_and_archive_query_give_the_same_sums(archive: Path) -> None:
    glob = str(archive / "tables" / "ledger_totals" / "**" / "*.parquet")
    theirs = duckdb.execute(f"SELECT cause, SUM(cause_ns)::BIGINT FROM '{glob}' GROUP BY cause ORDER BY cause").fetchall()  # noqa: S608
    with query.opened(str(archive)) as tables:
        ours = query.run(tables, "SELECT cause, SUM(cause_ns) FROM ledger_totals GROUP BY cause ORDER BY cause").rows()
    assert ours == theirs
    assert ours


def test_every_month_is_a_partition_that_a_query_can_ask_for(archive: Path) -> None:
    with query.opened(str(archive)) as tables:
        rows = query.run(tables, "SELECT month, COUNT(*) AS n FROM captures GROUP BY month ORDER BY month").rows()
    assert rows == [("2023-11", 4), ("2023-12", 4), ("unknown", 1)]  # the captures are 100 hours apart; the first is from 14 November


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_query_writes_the_rows_in_each_format(archive: Path, tmp_path: Path, form: str) -> None:
    sql = "SELECT name, connections FROM captures WHERE state = 'whole' ORDER BY name LIMIT 2"
    done = new_process("archive", "query", archive, sql, "--format", form, "-o", tmp_path / "rows")
    assert done.returncode == 0, done.stderr
    data = (tmp_path / "rows").read_bytes()
    if form == "table":
        assert [line.split() for line in data.decode().splitlines()] == [["name", "connections"], ["c00", "1"], ["c01", "1"]]
    elif form == "csv":
        assert list(csv.reader(io.StringIO(data.decode()))) == [["name", "connections"], ["c00", "1"], ["c01", "1"]]
    elif form == "json":
        assert [json.loads(line) for line in data.splitlines()] == [{"name": "c00", "connections": 1}, {"name": "c01", "connections": 1}]
    else:
        assert pl.read_parquet(io.BytesIO(data)).rows() == [("c00", 1), ("c01", 1)]


@pytest.mark.parametrize("sql", ["SELECT nothing FROM captures", "SELEC", "SELECT * FROM nowhere", ""])
def test_a_wrong_query_is_one_line_that_names_the_tables(archive: Path, sql: str) -> None:
    done = new_process("archive", "query", archive, sql)
    assert done.returncode == 2
    assert "tables: files, captures, connections" in only_line(done.stderr)


def test_what_is_no_archive_is_said(tmp_path: Path) -> None:
    for command in (["query", str(tmp_path), "SELECT 1"], ["list", str(tmp_path)], ["gc", str(tmp_path)]):
        done = new_process("archive", *command)
        assert done.returncode == 2
        assert "not an archive" in only_line(done.stderr)


def test_an_archive_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "archive.json").write_text('{"store_version": 99}')
    with pytest.raises(UsageError, match="archive version 99"), query.opened(str(tmp_path)):
        pass


def test_list_shows_each_capture_and_only_those_asked_for(archive: Path) -> None:
    lines = new_process("archive", "list", archive).stdout.decode().splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("9 captures: 1 failed, 8 whole")
    assert not any(" 1 connections" in line for line in lines)
    assert any(": 1 connection, " in line for line in lines)
    failed = new_process("archive", "list", archive, "--state", "failed").stdout.decode().splitlines()
    assert len(failed) == 2
    assert "none.pcap: failed: " in failed[0]


def test_every_table_and_column_is_explained() -> None:
    assert len(new_process("archive", "tables").stdout.decode().splitlines()) == len(schema.ARCHIVE_TABLES)
    lines = new_process("archive", "tables", "findings").stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == list(schema.ARCHIVE_TABLES["findings"].names)


def test_gc_removes_what_no_capture_needs_and_nothing_else(archive: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    shutil.copytree(archive, output)
    before = archives.tables(output)
    old = next(output.rglob("*.part"))
    stale = output / "parts" / "0123456789ab" / old.parent.name / old.name
    stale.parent.mkdir(parents=True)
    shutil.copy(old, stale)
    (output / "tmp" / "x").mkdir(parents=True)
    (output / "tmp" / "x" / "half").write_bytes(b"half")
    reported = garbage_collection.collect_garbage(str(output), dry_run=True)
    assert set(reported.files) == {stale.relative_to(output).as_posix(), "tmp/x/half"}
    assert stale.exists()
    garbage_collection.collect_garbage(str(output))
    assert not stale.exists()
    assert not (output / "tmp").exists()
    assert archives.tables(output) == before
    assert garbage_collection.collect_garbage(str(output)).files == {}


def test_gc_missing_forgets_captures_whose_files_are_gone(tmp_path: Path) -> None:
    folder = archives.folder_of(tmp_path / "in", 3)
    archives.made(folder, tmp_path / "out")
    (folder / "c01.pcap").unlink()
    assert garbage_collection.collect_garbage(str(tmp_path / "out")).captures == {}
    reported = garbage_collection.collect_garbage(str(tmp_path / "out"), missing=True)
    assert list(reported.captures.values()) == [str(folder / "c01.pcap")]
    archives.made(folder, tmp_path / "again")
    assert garbage_collection.collect_garbage(str(tmp_path / "out")).files == {}
    assert archives.tables(tmp_path / "out") == archives.tables(tmp_path / "again")


def test_captures_of_poor_quality_and_silent_directions_are_in_no_sum(tmp_path: Path) -> None:
    """The capture has two uploads. One takes 60 ms, and in the other one, timestamps jump by 25 days.

    The server sends no data in either upload. The sums leave out the second upload and the server's direction.
    """
    text = """
        0.00 C > S S 0:0(0) win 64240 <mss 1460>
        0.02 S > C S. 0:0(0) ack 1 win 65160 <mss 1460>
        0.02 C > S . ack 1
        0.03 C > S P. 1:1001 ack 1
        0.06 S > C . ack 1001
    """
    (tmp_path / "in").mkdir()
    packets.capture(tmp_path / "in" / "good.pcap", text)
    packets.capture(tmp_path / "in" / "jumped.pcap", text.replace("0.03 ", "2160000.03 ").replace("0.06 ", "2160000.06 "))
    archives.made(tmp_path / "in", tmp_path / "out")
    with query.opened(str(tmp_path / "out")) as tables:
        reported = overview(tables, None)
    totals = reported["totals"]
    assert (totals["left_out"], totals["connections"], totals["transfers"], totals["payload_bytes"]) == (1, 1, 1, 1_000)
    assert (totals["active_ns"], totals["last_ts_ns"] - totals["first_ts_ns"]) == (60_000_000, 60_000_000)
    assert sorted(reported["captures"]["quality"]) == ["good", "poor"]
    assert sum(reported["causes"]["ns"]) == 60_000_000
    assert len(set(reported["causes"]["cause"])) == len(reported["causes"]["cause"])
