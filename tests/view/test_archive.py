"""The explorer of an archive: its sums, its list of captures, and which SQL queries it allows."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.errors import UsageError
from tcptrace_lab.view import query_process
from tests.support import explorer
from tests.support.command import new_process
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("atm9180-loss.pcap", "loopback-small-receive-window.pcap")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("archive")
    (made / "captures").mkdir()
    for name in NAMES:
        shutil.copy(CAPTURES / name, made / "captures")
    assert new_process("batch", made / "captures", "-o", made / "archive", "-q").returncode == 0
    return made


@pytest.fixture(scope="module")
def shown(folder: Path) -> Iterator[explorer.Explorer]:
    with explorer.exploring(folder / "archive", cache=folder / "cache") as found:
        yield found


def test_every_capture_opens_its_own_explorer(shown: explorer.Explorer) -> None:
    rows = shown.get("api/archive/captures")["rows"]
    assert sorted(Path(row["path"]).name for row in rows) == sorted(NAMES)
    for row in rows:
        assert shown.get(f"capture/{row['capture_id']}/api/capture")["packets"] == row["packets"]
        assert shown.ask(f"capture/{row['capture_id']}/").status == 200
    assert shown.ask("").status == 200
    assert shown.ask("capture/../../etc/passwd/").status == 404
    assert shown.ask("capture/00000000000000000000/api/capture").status == 404


def test_sums_are_those_of_archive_query(shown: explorer.Explorer, folder: Path) -> None:
    sql = "SELECT SUM(packets) AS packets, SUM(fixable_ns) AS lost FROM captures"
    (line,) = new_process("archive", "query", folder / "archive", sql, "--format", "json").stdout.splitlines()
    expected = json.loads(line)
    assert shown.get("api/archive/query", {"sql": sql}) == {
        "columns": ["packets", "lost"],
        "rows": [[expected["packets"], expected["lost"]]],
        "truncated": False,
    }
    facts = {one["label"]: one["value"] for one in shown.get("api/archive")["facts"]}
    assert (facts["Packets"], facts["Lost time"]) == (expected["packets"], expected["lost"])


def test_the_rows_of_a_query_can_be_downloaded(shown: explorer.Explorer) -> None:
    text = shown.ask("api/archive/query.csv", {"sql": "select name, packets from captures order by name"}).body.decode()
    assert [row["name"] for row in csv.DictReader(io.StringIO(text))] == sorted(name.removesuffix(".pcap") for name in NAMES)


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('/etc/passwd')",
        "SELECT * FROM READ_PARQUET('/etc/passwd')",
        "select * from \"read_csv\"('/etc/passwd')",
        "select * from captures, read_json('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from `/etc/passwd`",
        "select * from captures where name in (table '/etc/passwd')",
        "explain select * from read_csv('/etc/passwd')",
        "select * from rea/**/d_csv('/etc/passwd')",
        "select * from captures where name in (select column_1 from read_csv('/etc/passwd'))",
        "create table x as select * from captures",
        "drop table captures",
        "select 1; drop table captures",
        "with x as (select * from scan_csv('/etc/passwd')) select * from x",
        "",
        "x" * 5_000,
    ],
)
def test_sql_sees_the_tables_and_nothing_else(shown: explorer.Explorer, sql: str) -> None:
    answer = shown.ask("api/archive/query", {"sql": sql})
    assert answer.status == 400
    assert "\n" not in answer.json()["error"].strip()
    assert b"root:" not in answer.body


@pytest.mark.parametrize("sql", ["select * from captures", "WITH a AS (SELECT 1 AS b) SELECT b FROM a", "select name from captures;"])
def test_a_question_is_answered(shown: explorer.Explorer, sql: str) -> None:
    answer = shown.ask("api/archive/query", {"sql": sql})
    assert answer.status == 200
    assert answer.json()["rows"]


def test_a_comment_hides_no_reader() -> None:
    with pytest.raises(UsageError):
        query_process.check("select /* read */ * from read_csv /* */ ('x')")


def test_many_rows_are_cut(shown: explorer.Explorer) -> None:
    crossed = "select a.name from captures a" + "".join(f" cross join connections {name}" for name in "bcdefghijkl")  # noqa: S608
    answer = shown.ask("api/archive/query", {"sql": crossed})
    assert answer.status in {200, 400}
    if answer.status == 200:
        assert answer.json()["truncated"]
        assert len(answer.json()["rows"]) == 1_000
