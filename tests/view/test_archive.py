"""The explorer of an archive shows the right sums and the right list of captures. The explorer accepts only some SQL queries."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab.errors import UsageError
from tcptrace_lab.view import query_process
from tests.support import explorer, needs
from tests.support.captures import archives
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


DAY_S = 86_400


def test_servers_and_links_have_their_lost_time_over_time(tmp_path: Path) -> None:
    """The first server has a transfer on days 1, 6 and 11: with Nagle's algorithm on days 1 and 11, and without it on day 6.

    The second server has one capture on day 11, in which only the client sends data. A direction without data is in no sum.
    """
    captures = tmp_path / "captures"
    captures.mkdir()
    for name, day, file in (
        ("a", 0, "ethernet-nagle-on.pcapng"),
        ("b", 5, "ethernet-nagle-off.pcapng"),
        ("c", 10, "ethernet-nagle-on.pcapng"),
        ("d", 10, "loopback-small-receive-window.pcap"),
    ):
        began_s = float(tshark(CAPTURES / file, "frame.time_epoch")[0])
        shift = str(1_000_000_000 + day * DAY_S - began_s)
        command = [needs.program("editcap"), "-t", shift, str(CAPTURES / file), str(captures / f"{name}.pcapng")]
        subprocess.run(command, check=True, capture_output=True)
    assert new_process("batch", captures, "-o", tmp_path / "archive", "-q").returncode == 0
    sql = """
        SELECT captures.name, SUM(CASE WHEN is_fixable THEN cause_ns ELSE 0 END) AS lost, SUM(cause_ns) AS active
        FROM ledger_totals JOIN captures ON captures.capture = ledger_totals.capture
        WHERE cause != 'idle' AND (captures.name != 'd' OR from_client) GROUP BY captures.name
    """
    lines = new_process("archive", "query", tmp_path / "archive", sql, "--format", "json").stdout.splitlines()
    share = {row["name"]: round(row["lost"] / row["active"] * 100) for row in map(json.loads, lines)}
    assert share["a"] > 40
    assert share["b"] < 5
    with explorer.exploring(tmp_path / "archive", cache=tmp_path / "cache") as found:
        archive, page = found.get("api/archive"), found.ask("").body.decode()
    tables = {table["key"]: table["rows"] for table in archive["tables"]}
    periods = [place for place, period in enumerate(archive["trend"]) if period["captures"]]
    address = tshark(CAPTURES / "ethernet-nagle-on.pcapng", "ip.dst")[0]
    for key in ("hosts", "links"):
        (row,) = [row for row in tables[key] if row["server_addr"] == address]
        (other,) = [row for row in tables[key] if row["server_addr"] != address]
        assert (row["captures"], other["captures"]) == (3, 1)
        assert [row["trend"][place] for place in periods] == [share["a"], share["b"], share["c"]]
        assert [other["trend"][place] for place in periods] == [None, None, share["d"]]
        assert len(row["trend"]) == len(archive["trend"])
    assert page.count('<svg class="trend"') == 4
    assert f"<title>in 3 of {len(archive['trend'])} periods; at most {share['a']}%</title>" in page


def tshark(path: Path, field: str) -> list[str]:
    command = [needs.program("tshark"), "-r", str(path), "-T", "fields", "-e", field]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_worst_captures_are_those_that_lost_most(shown: explorer.Explorer, folder: Path) -> None:
    sql = "SELECT name, fixable_ns FROM captures WHERE fixable_ns > 0 ORDER BY fixable_ns DESC"
    lines = new_process("archive", "query", folder / "archive", sql, "--format", "json").stdout.splitlines()
    (worst,) = [table["rows"] for table in shown.get("api/archive")["tables"] if table["key"] == "worst"]
    assert [{name: row[name] for name in ("name", "fixable_ns")} for row in worst] == list(map(json.loads, lines))
    assert worst


def test_outliers_have_the_score_that_is_computed_by_hand(tmp_path: Path) -> None:
    """The score of a handshake follows from its distance to the median. A distance is the logarithm of a ratio.

    The median of the nine handshakes is 10 ms. The ratios are 10/6, 10/7, 10/8, 10/9, 1, 1.1, 1.2, 1.3 and 8. The median of the nine
    distances is the fifth largest, ln(10/8).

    In the slow handshake, the client's RTT is 20 ms, and the median RTT is 10 ms. This RTT is no outlier, because its score is only 0.6745
    ln(2) / ln(10/8) = 2.1.
    """
    (tmp_path / "captures").mkdir()
    for place, time_ms in enumerate((6, 7, 8, 80, 9, 10, 11, 12, 13)):
        archives.handshake(tmp_path / "captures" / f"h{place}.pcap", place, time_ms / 1_000)
    archives.made(tmp_path / "captures", tmp_path / "archive")
    with explorer.exploring(tmp_path / "archive", cache=tmp_path / "cache") as found:
        (rows,) = [table["rows"] for table in found.get("api/archive")["tables"] if table["key"] == "outliers"]
    captures = pl.read_parquet(tmp_path / "archive" / "tables" / "captures" / "**" / "*.parquet")
    slow = captures.filter(name="h3")["capture"].item()
    shown = [(row["capture_id"], row["client_addr"], row["metric"], row["value"], row["median"]) for row in rows]
    assert shown == [(slow, "10.0.0.1", "handshake", "80 ms", "10 ms")]
    assert rows[0]["z"] == pytest.approx(0.6745 * math.log(8) / math.log(10 / 8))


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
