"""The explorer of a capture shows the values of `export`, `analyze --json` and tshark."""

from __future__ import annotations

import io
import itertools
import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import polars as pl
import pytest
from scapy.utils import wrpcap

from tcptrace_lab import schema
from tcptrace_lab.analysis import analyze
from tcptrace_lab.report.parts import connection_table
from tcptrace_lab.view import windows
from tcptrace_lab.view.cached import build, cache
from tcptrace_lab.view.cached.store import Store
from tests.support import explorer, needs
from tests.support.command import new_process
from tests.support.places import ROOT
from tests.support.talks import Talk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.report.data_types import Drawings

CAPTURE = ROOT / "captures" / "atm9180-loss.pcap"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[explorer.Explorer]:
    with explorer.exploring(CAPTURE, cache=tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyze(CAPTURE, proofs=True)


def test_the_overview_is_that_of_analyze(shown: explorer.Explorer, analysis: Analysis) -> None:
    overview = shown.get("api/capture")
    document = analysis.to_dict()
    assert overview["headline"] == document["verdict"]["sentence"]
    for name in ("packets", "tcp_segments", "connections", "format"):
        assert overview[name] == document["capture"][name]
    assert [one["id"] for one in overview["findings"]] == [one["id"] for one in document["findings"]]
    assert sum(one["ns"] for one in overview["causes"]) == overview["duration_ns"]  # one connection, from the first packet to the last


def test_the_list_has_the_figures_of_the_report(shown: explorer.Explorer, analysis: Analysis) -> None:
    (row,) = shown.get("api/connections")["rows"]
    connection = analysis.connections.collect().row(0, named=True)
    listed = connection_table.row(connection, analysis.capture["first_ts_ns"])
    assert row["rtt_min_ns"] == listed["rtt_min_ns"]
    assert row["retransmitted"] == listed["resent"]
    assert (row["client"], row["server"]) == (listed["client"], listed["server"])
    assert row["filter"] == "tcp.stream eq 0"


def test_segments_are_those_that_tshark_shows(shown: explorer.Explorer) -> None:
    command = [
        needs.program("tshark"),
        "-r",
        str(CAPTURE),
        "-Y",
        "tcp.stream eq 0",
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-e",
        "tcp.len",
        "-e",
        "frame.time_relative",
    ]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    theirs = [(int(frame), int(length), round(float(time) * 1e9)) for frame, length, time in (line.split("\t") for line in lines)]
    pages = [shown.get("api/connection/0/segments", {"offset": offset, "limit": 50})["rows"] for offset in range(0, len(theirs), 50)]
    assert [(row["frame"], row["payload_bytes"], row["ts_ns"]) for row in itertools.chain(*pages)] == theirs


FIELDS = {
    "seq": "tcp.seq",
    "ACK": "tcp.ack",
    "payload": "tcp.len",
    "window": "tcp.window_size",
    "tsval": "tcp.options.timestamp.tsval",
    "tsecr": "tcp.options.timestamp.tsecr",
    "ip id": "ip.id",
    "ttl": "ip.ttl",
    "flags": "tcp.flags",
}
"""Maps the label of a field to its name in tshark."""

FLAGS = {"FIN": 1, "SYN": 2, "RST": 4, "PSH": 8, "ACK": 16, "URG": 32, "ECE": 64, "CWR": 128}


def test_a_packet_has_the_fields_that_tshark_decodes(shown: explorer.Explorer) -> None:
    options = [part for field in ("frame.number", *FIELDS.values()) for part in ("-e", field)]
    command = [needs.program("tshark"), "-r", str(CAPTURE), "-Y", "tcp", "-T", "fields", *options]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 167
    for line in lines:
        frame, *theirs = line.split("\t")
        fields = {field["label"]: field["value"] for field in shown.get(f"api/frame/{frame}")["fields"]}
        fields["flags"] = sum(FLAGS[name] for name in fields["flags"].split(", "))
        if not fields["flags"] & FLAGS["ACK"]:
            fields["ACK"] = 0  # without the flag, the ACK number is unknown, but tshark shows the bytes of the header
        assert [fields[label] for label in FIELDS] == [int(value, 0) if value else None for value in theirs], frame


@pytest.mark.parametrize("name", ["ledger", "stalls", "messages", "segments"])
def test_downloads_are_those_of_export(shown: explorer.Explorer, name: str) -> None:
    exported = new_process("export", CAPTURE, "--table", name, "-o", "-", "--format", "parquet").stdout
    ours = pl.read_parquet(io.BytesIO(shown.ask(f"api/connection/0/{name}.parquet").body))
    assert ours.select(pl.exclude("layers")).equals(pl.read_parquet(io.BytesIO(exported)).select(pl.exclude("layers")))
    lines = shown.ask(f"api/connection/0/{name}.csv").body.decode().splitlines()
    assert lines == new_process("export", CAPTURE, "--table", name, "-o", "-", "--format", "csv").stdout.decode().splitlines()


def test_transactions_are_those_of_export_in_both_forms(tmp_path: Path) -> None:
    """The capture has two simultaneous connections. The first has one request, and the second has two requests."""
    first = Talk().opened().asks(10, b"GET /a HTTP/1.1\r\n\r\n").says(40, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    second = Talk(client_port=40_001).opened(5)
    for at_ms, target in ((15, b"b"), (50, b"c")):
        second.asks(at_ms, b"GET /" + target + b" HTTP/1.1\r\n\r\n").says(at_ms + 20, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
    capture = tmp_path / "web.pcap"
    wrpcap(str(capture), sorted(first.frames + second.frames, key=lambda frame: float(frame.time)))
    exported = pl.read_csv(new_process("export", capture, "--table", "transactions", "-o", "-", "--format", "csv").stdout)
    with explorer.exploring(capture, cache=tmp_path / "cache") as found:
        for conn, wanted in enumerate([[("/a", 200, 30)], [("/b", 404, 20), ("/c", 404, 20)]]):
            path = f"api/connection/{conn}/transactions"
            saved = pl.read_parquet(io.BytesIO(found.ask(f"{path}.parquet").body))
            assert saved.schema == schema.TRANSACTIONS.polars_schema()
            assert [(row["target"], row["status"], row["server_think_ns"] / 1e6) for row in saved.to_dicts()] == wanted
            theirs = exported.filter(pl.col("conn") == conn).to_dicts()
            assert saved.to_dicts() == pl.read_csv(found.ask(f"{path}.csv").body).to_dicts() == theirs


def test_a_window_has_the_segments_within_it(shown: explorer.Explorer, analysis: Analysis) -> None:
    rows = analysis.segments.filter(from_client=True).filter(pl.col("payload_bytes") > 0).collect()
    times = rows["ts_ns"] - analysis.segments.select(pl.col("ts_ns").first()).collect().item()
    from_ns, to_ns = int(times[20]), int(times[40])
    figures = shown.get("api/connection/0/figures", {"from_ns": from_ns, "to_ns": to_ns, "width": 1_000})["figures"]
    sequence = next(one["figure"] for one in figures if one["key"] == "time-sequence" and one["by"] == "client")
    drawn = {detail[0] for trace in sequence["data"] if trace["name"].startswith("data") for detail in trace["customdata"] if detail}
    wanted = set(rows["frame"][20:41].to_list())
    resent = {detail[0] for trace in sequence["data"] if "retransm" in trace["name"] for detail in trace["customdata"]}
    assert wanted <= drawn | resent
    assert len(drawn | resent) <= len(wanted) + 2  # at most one more segment at each edge


def test_bytes_of_a_window_are_counted_once(shown: explorer.Explorer, analysis: Analysis) -> None:
    whole = shown.get("api/connection/0/figures", {"width": 1_000})["figures"]
    rate = next(one["figure"]["data"][0] for one in whole if one["key"] == "throughput")
    bits = sum(y * (after - x) for (x, after), y in zip(itertools.pairwise(rate["x"]), rate["y"], strict=False))
    unique = analysis.connections.select("client_unique_bytes").collect().item()
    assert bits / 8 == pytest.approx(unique, rel=0.05)


@pytest.mark.parametrize("whole_rows", [100, 400], ids=["by batches", "at once"])
@pytest.mark.parametrize("share", [(0.0, 1.0), (0.0, 0.5), (0.4, 0.6), (0.5, 0.52)])
def test_a_large_connection_is_drawn_as_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: tuple[float, float], whole_rows: int
) -> None:
    build.build([str(CAPTURE)], tmp_path)
    store = Store(cache.capture_of([str(CAPTURE)]), tmp_path)
    row = store.connection(0)
    life_ns = row["last_ts_ns"] - row["first_ts_ns"]
    window_ns = (round(share[0] * life_ns), round(share[1] * life_ns))
    whole = _points(windows.figures(store, row, window_ns, 1_000), window_ns)
    monkeypatch.setattr(windows, "SMALL_ROWS", 100)
    monkeypatch.setattr(windows, "WHOLE_ROWS", whole_rows)  # the capture has 167 segments, the smaller windows fewer than 100
    assert _points(windows.figures(store, row, window_ns, 1_000), window_ns) == whole
    assert whole


def _points(drawings: Drawings, window_ns: tuple[int, int]) -> dict[tuple[str, str], set[tuple[float, float]]]:
    """Return the points of each trace that are within a time window. Throughput is left out."""
    return {
        (figure["key"], trace["name"]): {
            (x, y)
            for x, y in zip(trace["x"], trace["y"], strict=True)
            if x is not None and window_ns[0] / 1e9 < x < window_ns[1] / 1e9 and figure["key"] != "throughput"
        }
        for figure in drawings["figures"]
        for trace in figure["figure"]["data"]
        if "(" not in trace["name"]
    }


def test_the_timeline_adds_up_at_any_width(shown: explorer.Explorer, analysis: Analysis) -> None:
    connection = analysis.connections.collect().row(0, named=True)
    account = analysis.accounts.collect().row(0, named=True)
    for width in (1, 7, 999):
        timeline = shown.get("api/timeline", {"width": width})
        assert len(timeline["open"]) <= width
        assert sum(timeline["client_bytes"]) == connection["client_payload_bytes"]
        spent = {cause: sum(columns) for cause, columns in timeline["causes"].items()}
        assert spent == {cause: ns for cause in schema.CAUSES if (ns := account[f"client_{cause.replace('-', '_')}_ns"])}


def test_a_packet_says_why_it_left(shown: explorer.Explorer, analysis: Analysis) -> None:
    longest = analysis.ledger.filter(pl.col("frame_after").is_not_null(), pl.col("frame_before").is_not_null()).collect()
    row = longest.row(int((longest["end_ns"] - longest["start_ns"]).arg_max() or 0), named=True)
    packet = shown.get(f"api/frame/{row['frame_after']}")
    assert packet["wait"]["cause"] == row["cause"]
    assert packet["wait"]["confidence"] == row["confidence"]
    assert packet["wait"]["end_ns"] - packet["wait"]["start_ns"] == row["end_ns"] - row["start_ns"]
    assert row["cause"] in packet["sentence"]


@pytest.mark.parametrize(
    ("path", "status"), [("api/frame/0", 404), ("api/frame/999999", 404), ("api/connection/7", 404), ("api/connection/0/nothing", 404)]
)
def test_what_is_not_there_is_said_in_one_line(shown: explorer.Explorer, path: str, status: int) -> None:
    answer = shown.ask(path)
    assert answer.status == status
    assert answer.json()["error"]


def test_a_capture_that_changes_or_vanishes_is_reported(tmp_path: Path) -> None:
    copy = tmp_path / "capture.pcap"
    shutil.copy(CAPTURE, copy)
    with explorer.exploring(copy, cache=tmp_path / "cache") as found:
        assert found.ask("api/capture").status == 200
        with copy.open("ab") as file:
            file.write(b"\0" * 100)
        assert (found.ask("api/capture").status, found.ask("").status) == (409, 409)
        assert "changed" in found.ask("api/connections").json()["error"]
        copy.unlink()
        answer = found.ask("api/connection/0/figures")
        assert answer.status == 410
        assert "capture.pcap" in answer.json()["error"]


def test_addresses_are_pseudonyms_with_anonymize(tmp_path: Path) -> None:
    with explorer.exploring(CAPTURE, "--anonymize-key", "k", cache=tmp_path) as found:
        answers = [found.ask(path).body for path in ("", "api/capture", "api/connections", "api/connection/0")]
    assert not any(b"192.0.2." in body or b"atm9180" in body for body in answers)
    assert json.loads(answers[2])["total"] == 1
