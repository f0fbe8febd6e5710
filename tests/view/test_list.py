"""Each filter of the list of connections works, and each column has a right order.

The expected values come from tshark or from `analyze`.
"""

from __future__ import annotations

import csv
import io
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tcptrace_lab.analysis import analyze
from tcptrace_lab.view.cached import build, cache
from tcptrace_lab.view.cached.store import Store
from tcptrace_lab.view.connections import _SORTED_BY as SORTED_BY
from tcptrace_lab.view.connections import Connections
from tcptrace_lab.view.problem import NotFound
from tests.support import explorer, needs
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILES = [CAPTURES / f"ethernet-{name}.pcapng" for name in ("short-connections", "loss", "ipv6-bulk")]
IPV6 = "2001:db8::2"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[explorer.Explorer]:
    with explorer.exploring(*FILES, cache=tmp_path_factory.mktemp("cache")) as found:
        yield found


class Theirs(NamedTuple):
    """The values of one connection, computed from the segments that tshark shows."""

    addresses: set[str]
    ports: set[int]
    payload_bytes: int
    is_retransmitted: bool


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Theirs]:
    """A map from the number of a connection to its values. tshark calls the number a stream."""
    merged = tmp_path_factory.mktemp("merged") / "merged.pcapng"
    subprocess.run([needs.program("mergecap"), "-w", merged, *FILES], check=True)
    fields = "tcp.stream ip.src ip.dst ipv6.src ipv6.dst tcp.srcport tcp.dstport tcp.len tcp.analysis.retransmission"
    command = [needs.program("tshark"), "-r", str(merged), "-T", "fields", *(part for name in fields.split() for part in ("-e", name))]
    found: dict[int, Theirs] = {}
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        stream, *addresses, source, target, length, again = line.split("\t")
        before = found.get(int(stream), Theirs(set(), set(), 0, is_retransmitted=False))
        found[int(stream)] = Theirs(
            before.addresses | set(filter(None, addresses)),
            {int(source), int(target)},
            before.payload_bytes + int(length),
            before.is_retransmitted or bool(again),
        )
    return found


def listed(shown: explorer.Explorer, query: dict[str, Any]) -> set[int]:
    """Return the numbers of the connections that a search finds.

    The page and the download must have the same connections.
    """
    page = shown.get("api/connections", query)
    numbers = {row["id"] for row in page["rows"]}
    assert page["total"] == len(page["rows"]) == len(numbers)
    saved = csv.DictReader(io.StringIO(shown.ask("api/connections.csv", query).body.decode()))
    assert {int(row["id"]) for row in saved} == numbers
    return numbers


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, lambda _: True),
        ({"address": "192.0.2.1"}, lambda one: "192.0.2.1" in one.addresses),
        ({"address": "2001:0DB8:0000:0000:0000:0000:0000:0002"}, lambda one: IPV6 in one.addresses),
        ({"port": 5999}, lambda one: 5999 in one.ports),
        ({"port": 40000}, lambda one: 40000 in one.ports),
        ({"min_bytes": 3000}, lambda one: one.payload_bytes >= 3000),
        ({"max_bytes": 3000}, lambda one: one.payload_bytes <= 3000),
        ({"min_bytes": 1, "max_bytes": 10_000, "port": 5001}, lambda one: 1 <= one.payload_bytes <= 10_000 and 5001 in one.ports),
        ({"lost": 1}, lambda one: one.is_retransmitted),
        ({"text": "5999"}, lambda one: 5999 in one.ports),
        ({"text": f"{IPV6} 5001"}, lambda one: IPV6 in one.addresses and 5001 in one.ports),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_filter_finds_the_connections_that_tshark_has(
    shown: explorer.Explorer, theirs: dict[int, Theirs], query: dict[str, Any], wanted: Callable[[Theirs], bool]
) -> None:
    expected = {stream for stream, one in theirs.items() if wanted(one)}
    assert expected
    assert listed(shown, query) == expected
    assert not query or len(expected) < len(theirs), "the filter leaves something out"


def test_a_filter_by_finding_or_cause_finds_those_that_analyze_names(shown: explorer.Explorer) -> None:
    analysis = analyze([str(path) for path in FILES])
    found: dict[str, set[int]] = {}
    for finding in analysis.to_dict()["findings"]:
        if finding["connection"] is not None:
            found.setdefault(finding["id"], set()).add(finding["connection"])
    assert len(found) > 1
    for kind, connections in found.items():
        assert listed(shown, {"finding": kind}) == connections, kind
    causes: dict[str, set[int]] = {}
    for row in shown.get("api/connections")["rows"]:
        if row["dominant_cause"]:
            causes.setdefault(row["dominant_cause"], set()).add(row["id"])
            assert row["causes"][row["dominant_cause"]] == max(ns for cause, ns in row["causes"].items() if cause != "idle")
    assert len(causes) > 1
    for cause, connections in causes.items():
        assert listed(shown, {"cause": cause}) == connections, cause


@pytest.mark.parametrize("column", SORTED_BY)
@pytest.mark.parametrize("descending", [0, 1])
def test_each_column_sorts(shown: explorer.Explorer, column: str, descending: int) -> None:
    rows = list(csv.DictReader(io.StringIO(shown.ask("api/connections.csv", {"sort": column, "descending": descending}).body.decode())))
    page = [row["id"] for row in shown.get("api/connections", {"sort": column, "descending": descending})["rows"]]
    assert [int(row["id"]) for row in rows] == page
    if SORTED_BY[column] in rows[0] and column not in {"client", "server", "label", "dominant_cause"}:
        values = [float(row[SORTED_BY[column]]) for row in rows if row[SORTED_BY[column]]]
        assert values == sorted(values, reverse=bool(descending))
        assert all(row[SORTED_BY[column]] for row in rows[: len(values)]), "what is unknown comes last"


def test_connections_in_several_files_are_those_of_analyze(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test lowers two limits. A file has two connections instead of thousands, and a download has blocks of two rows."""
    monkeypatch.setattr("tcptrace_lab.engine.sorting.RANGE_ROWS", 2)
    monkeypatch.setattr("tcptrace_lab.view.connections._BLOCK_ROWS", 2)
    paths = [str(path) for path in FILES]
    build.build(paths, tmp_path)
    store = Store(cache.capture_of(paths), tmp_path)
    analysis = analyze(paths)
    connections, accounts = (rows.collect().to_dicts() for rows in (analysis.connections, analysis.accounts))
    assert len(list(tmp_path.glob("connections-0*.parquet"))) == len(connections) / 2 == 3
    assert [store.connection(row["conn"]) for row in connections] == connections
    assert [store.account(row["conn"]) for row in accounts] == accounts
    with pytest.raises(NotFound):
        store.connection(len(connections))
    for query in ({}, {"sort": "bytes"}, {"sort": "retransmitted", "descending": "1"}, {"port": "5001"}, {"text": "no such word"}):
        found = Connections(store)
        shown = [row["id"] for row in found.page(query)["rows"]]
        assert found.all(query).collect()["id"].to_list() == shown
        if "sort" in query:
            sign = -1 if "descending" in query else 1
            rows = {row["id"]: row[query["sort"]] for row in found.page({})["rows"]}
            assert shown == sorted(rows, key=lambda conn: (sign * rows[conn], conn))
        parts = [found.page({**query, "offset": str(start), "limit": "2"})["rows"] for start in range(0, len(shown), 2)]
        assert [row["id"] for part in parts for row in part] == shown
