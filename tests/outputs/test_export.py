"""The tests read back every export format. The contents must equal the table."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tcptrace_lab import analyze, read, schema, transactions
from tcptrace_lab.connections import rates
from tcptrace_lab.engine.segments import REREAD_BYTES
from tcptrace_lab.findings import table as findings_table
from tcptrace_lab.ledger import stalls
from tcptrace_lab.ledger.departures import departures
from tcptrace_lab.messages import messages
from tcptrace_lab.outputs.export import export
from tcptrace_lab.outputs.formats import Format, TableName
from tcptrace_lab.udp.datagrams import read_datagrams
from tests.support import packets, transfer
from tests.support.command import new_process, only_line, tcptrace_lab
from tests.support.terminals import on_terminal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

UDP = """
    0 C > S udp 100
    0 S > C udp 200
    0 C > S udp 100
"""


LISTS = [
    column.name for table in (schema.CONNECTIONS, schema.MESSAGES, schema.FINDINGS) for column in table if column.dtype.startswith("List(")
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return packets.capture(tmp_path / "transfer.pcap", UDP + transfer.TEXT)


@pytest.fixture
def tables(path: Path) -> Mapping[TableName, pl.LazyFrame]:
    tcp, udp = read(path, worth=()), read_datagrams(path)
    return {
        TableName.SEGMENTS: tcp.segments,
        TableName.CONNECTIONS: tcp.connections,
        TableName.LEDGER: tcp.ledger.select(schema.LEDGER.names),
        TableName.DEPARTURES: departures(tcp.ledger),
        TableName.STALLS: stalls.stalls(tcp.ledger),
        TableName.ACCOUNTS: tcp.accounts,
        TableName.MESSAGES: messages.messages(tcp.segments, tcp.notes, 1),
        TableName.TRANSACTIONS: transactions.found([str(path)], tcp.segments, tcp.connections).lazy(),
        TableName.RATES: rates.table(tcp.connections),
        TableName.FINDINGS: findings_table.rows(analyze(path).findings).lazy(),
        TableName.DATAGRAMS: udp.datagrams,
        TableName.FLOWS: udp.flows,
    }


def exported(tables: Mapping[TableName, pl.LazyFrame], table: TableName, form: Format) -> io.BytesIO:
    return written(tables[table], table, form)


def written(rows: pl.LazyFrame, table: TableName, form: Format) -> io.BytesIO:
    stream = io.BytesIO()
    export(rows, table, form, stream)
    stream.seek(0)
    return stream


@pytest.mark.parametrize("table", TableName)
def test_parquet_and_arrow_keep_every_value_and_type(tables: Mapping[TableName, pl.LazyFrame], table: TableName) -> None:
    assert_frame_equal(pl.read_parquet(exported(tables, table, Format.PARQUET)), tables[table].collect())
    assert_frame_equal(pl.read_ipc(exported(tables, table, Format.ARROW)), tables[table].collect())


@pytest.mark.parametrize("table", TableName)
def test_ndjson_has_one_object_a_row_with_nulls_and_lists(tables: Mapping[TableName, pl.LazyFrame], table: TableName) -> None:
    objects = [json.loads(line) for line in exported(tables, table, Format.NDJSON)]
    assert objects == tables[table].collect().to_dicts()


@pytest.mark.parametrize("table", TableName)
def test_csv_has_the_names_and_values_of_the_table(tables: Mapping[TableName, pl.LazyFrame], table: TableName) -> None:
    types: dict[str, Any] = {
        name: pl.String if dtype in (pl.List(pl.Int64), pl.List(pl.String)) else dtype
        for name, dtype in schema.TABLES[table].polars_schema().items()
    }
    back = pl.read_csv(exported(tables, table, Format.CSV), schema=types)
    lists = [pl.col(name).list.eval(pl.element().cast(pl.String)).list.join(" ") for name in LISTS if name in types]
    plain = [name for name in types if name != "sack_blocks"]
    assert_frame_equal(back.select(plain), tables[table].with_columns(lists).collect().select(plain))


def test_lists_of_numbers_are_text_in_csv(tables: Mapping[TableName, pl.LazyFrame]) -> None:
    back = pl.read_csv(exported(tables, TableName.CONNECTIONS, Format.CSV), infer_schema=False)
    lists = tables[TableName.CONNECTIONS].select("client_acks_by_segments").collect().to_series().to_list()
    assert back["client_acks_by_segments"].to_list() == [" ".join(map(str, numbers)) for numbers in lists]


def test_sack_blocks_are_text_in_csv(tmp_path: Path) -> None:
    path = packets.capture(
        tmp_path / "sack.pcap",
        """
        0.0 C > S  S   0:0(0)        <sackOK>
        0.1 S > C  S.  0:0(0) ack 1  <sackOK>
        0.2 C > S  .          ack 1  <sack 101:201 301:401>
        0.3 C > S  .          ack 1  <sack -99:-49>
        """,
    )
    back = pl.read_csv(written(read(path).segments, TableName.SEGMENTS, Format.CSV), infer_schema=False)
    assert back["sack_blocks"].to_list() == [None, None, "101:201 301:401", "-99:-49"]


def test_the_command_writes_a_file_or_standard_output(path: Path, tables: Mapping[TableName, pl.LazyFrame], tmp_path: Path) -> None:
    expected = exported(tables, TableName.CONNECTIONS, Format.CSV).getvalue()
    arguments = ("export", path, "--table", "connections", "--format", "csv")
    done = tcptrace_lab(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"")
    done = tcptrace_lab("export", path, "--table", "connections", "-o", "out.csv", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert re.fullmatch(r"tcptrace-lab: table connections as csv written: out\.csv \([\d.]+ kB\)\n", done.stderr.decode())
    assert (tmp_path / "out.csv").read_bytes() == expected


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.csv", "csv"),
        ("a.CSV", "csv"),
        ("a.arrow", "arrow"),
        ("a.feather", "arrow"),
        ("a.jsonl", "ndjson"),
        ("a.b", "parquet"),
        ("-", "parquet"),
    ],
)
def test_the_ending_of_the_output_is_its_format(name: str, form: str) -> None:
    assert Format.of_path(name) == form


@pytest.mark.parametrize("table", TableName)
def test_the_command_writes_every_table(path: Path, tables: Mapping[TableName, pl.LazyFrame], table: TableName) -> None:
    done = tcptrace_lab("export", path, "--table", table)
    assert done.returncode == 0
    assert_frame_equal(pl.read_parquet(io.BytesIO(done.stdout)), tables[table].collect())


def test_parquet_goes_through_a_pipe(path: Path, tables: Mapping[TableName, pl.LazyFrame]) -> None:
    done = new_process("export", "-", stdin=path.read_bytes())
    assert done.returncode == 0
    assert_frame_equal(pl.read_parquet(io.BytesIO(done.stdout)), tables[TableName.SEGMENTS].collect())


def test_a_capture_read_in_part_is_exported_in_part(path: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes(path.read_bytes()[:-1])
    done = tcptrace_lab("export", "cut.pcap", "--format", "ndjson", folder=tmp_path)
    assert done.returncode == 4
    assert len(done.stdout.splitlines()) == transfer.SEGMENTS - 1
    assert f"cut.pcap, frame {transfer.SEGMENTS + 3}" in only_line(done.stderr)


def test_the_exported_ledger_sums_to_the_exported_accounts_and_to_each_directions_life(path: Path) -> None:
    """Each direction begins with the first frame (0.000 s) and ends with the last frame (0.341 s)."""
    intervals, sums = (
        pl.read_ndjson(io.BytesIO(tcptrace_lab("export", path, "--table", table, "--format", "ndjson").stdout))
        for table in ("ledger", "accounts")
    )
    lasted = intervals.with_columns(ns=pl.col("end_ns") - pl.col("start_ns")).group_by("from_client", "cause").agg(pl.col("ns").sum())
    reported = {
        (side == "client", cause): sums.item(0, f"{side}_{cause.replace('-', '_')}_ns") for side in schema.SIDES for cause in schema.CAUSES
    }
    assert {(client, cause): ns for client, cause, ns in lasted.iter_rows()} == {key: ns for key, ns in reported.items() if ns != 0}
    assert lasted.filter("from_client")["ns"].sum() == lasted.filter(~pl.col("from_client"))["ns"].sum() == 341_000_000


def test_the_ledger_of_a_capture_that_is_read_again_is_that_of_one_that_is_kept(tmp_path: Path) -> None:
    hosts = "\n".join(f"host H{number} 10.0.1.{number}:50000" for number in range(5))
    data = "\n".join(f"{number} H{number} > S P. 1:11 ack 1\n+10ms S > H{number} P. 1:11 ack 11" for number in range(5))
    path = packets.capture(tmp_path / "many.pcap", f"{hosts}\n{data}")
    kept, again = (read(path, worth=(), reread_bytes=size).ledger for size in (REREAD_BYTES, 0))
    assert kept.collect()["conn"].n_unique() == 5
    assert_frame_equal(again.collect(), kept.collect())
    some = pl.col("conn").is_in([1, 3]) & (pl.col("cause") != "unknown")
    assert_frame_equal(again.filter(some).select("cause", "end_ns").collect(), kept.filter(some).select("cause", "end_ns").collect())


def test_binary_formats_are_kept_off_the_terminal(path: Path, tmp_path: Path) -> None:
    code, shown = on_terminal(["export", path.name], tmp_path, {})
    assert code == 2
    assert shown.strip() == "tcptrace-lab: cannot write parquet to a terminal; name a file with -o, or choose --format csv"
