"""The JSON of every kind of capture is valid against the published schema.

Its values equal those of tshark or those calculated by hand.
"""

from __future__ import annotations

import importlib.resources
import json
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema
import polars as pl
import pytest

from tcptrace_lab import Finding, _core, analyze, causes, schema
from tcptrace_lab.engine import reread
from tcptrace_lab.findings.finding import FINDING_IDS, Severity
from tests.support import needs, packets, transfer
from tests.support.peers import tshark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHARED = [
    "Zious11-wirerust__nfs_bad_stalls.cap",
    "chrissanders-packets__tcp_zerowindowrecovery.pcapng",
    "seladb-PcapPlusPlus__four_ipv6_http_streams.pcap",
    "seladb-PcapPlusPlus__example.pcap",
    "simsong-tcpflow__test1-out-of-order.pcap",
    "the-tcpdump-group-tcpdump__empty.pcapng",
    "seladb-PcapPlusPlus__microsecs_big_endian.pcap",
]
"""Captures with stalls, truncated packets, zero windows, IPv6, many connections, reordering, no packets, or an unknown link type."""


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    text = importlib.resources.files("tcptrace_lab").joinpath("outputs/schemas/analysis.schema.json").read_text()
    document: dict[str, Any] = json.loads(text)
    return document


@pytest.fixture
def valid(published: dict[str, Any]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(published)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)


def test_the_schema_is_a_schema(published: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(published)


OPEN = {"/$defs/statistics", "/$defs/direction/properties/ledger_s"}
"""Objects with many values of one kind. The schema fixes their keys by a list of names and by the number of keys."""


def test_every_object_of_the_schema_names_all_its_keys_and_admits_no_other(published: dict[str, Any]) -> None:
    objects = dict(_objects(published, ""))
    assert len(objects) > 30
    for place, reported in objects.items():
        if place in OPEN:
            count = len(reported.get("required") or reported["propertyNames"]["enum"])
            assert reported.get("maxProperties", reported.get("minProperties")) == count, place
        else:
            assert reported["additionalProperties"] is False, place
            assert set(reported["required"]) == set(reported["properties"]), place


def _objects(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401  (JSON)
    if isinstance(part, dict):
        if part.get("type") == "object":
            yield place, part
        for key, value in part.items():
            yield from _objects(value, f"{place}/{key}")
    elif isinstance(part, list):
        for number, value in enumerate(part):
            yield from _objects(value, f"{place}/{number}")


def test_the_verdict_of_the_json_rests_on_findings_of_the_json() -> None:
    document = analyze("captures/ethernet-tail-loss.pcapng").to_dict()
    reported = document["verdict"]
    assert set(reported["findings"]) == {"loss", "timeout"}
    assert reported["cost_s"] == pytest.approx(sum(one["cost_s"] for one in document["findings"] if one["id"] in reported["findings"]))
    assert reported["life_s"] == pytest.approx(document["connections"][0]["client_to_server"]["life_s"])
    share = f"{reported['cost_s'] / reported['life_s']:.0%}"
    assert reported["sentence"].startswith(
        f"Most likely packet loss (loss recovery and a reduced congestion window) took {share} of 977 ms;"
    )


@needs.shared_captures
@pytest.mark.parametrize("name", SHARED)
def test_the_json_of_real_captures_is_valid(valid: jsonschema.Draft202012Validator, name: str) -> None:
    document = analyze(needs.SHARED / name).to_dict()
    valid.validate(document)
    assert len(document["connections"]) == document["capture"]["connections"]


@needs.shared_captures
@pytest.mark.parametrize("name", SHARED)
def test_counts_and_times_are_those_of_tshark(name: str) -> None:
    path = needs.SHARED / name
    opinion = tshark.opinion(path).segments
    document = analyze(path).to_dict()
    assert document["capture"]["tcp_segments"] == opinion.height
    assert document["capture"]["packets"] == int(capinfos(path, "-c"))
    for connection in document["connections"]:
        own = opinion.filter(pl.col("conn") == connection["id"]).sort("frame")
        assert (connection["first_frame"], connection["last_frame"]) == (own["frame"][0], own["frame"][-1])
        times_ns: list[int] = own["ts_ns"].sort().to_list()  # timestamps can run backwards
        assert connection["duration_s"] == pytest.approx((times_ns[-1] - times_ns[0]) / 1e9, abs=1e-9)
        sent = {"client_to_server": connection["client"]["port"], "server_to_client": connection["server"]["port"]}
        for key, port in sent.items():
            by_port = own.filter(pl.col("source_port") == port)
            assert connection[key]["segments"] == by_port.height
            assert connection[key]["payload_bytes"] == by_port["payload_bytes"].sum()


def capinfos(path: Path, option: str) -> str:
    """Return the figure that Wireshark's capinfos prints for this option."""
    command = [needs.program("capinfos"), "-T", "-r", "-M", option, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split("\t")[1].strip()


def test_a_transfer_with_a_lost_segment_in_json(path: Path, valid: jsonschema.Draft202012Validator) -> None:
    document = analyze(path).to_dict()
    valid.validate(document)
    assert document["capture"]["duration_s"] == transfer.DURATION_S
    assert document["capture"]["first_ts_ns"] == packets.BASE_NS
    (connection,) = document["connections"]
    assert connection["client"] == {"addr": "10.0.0.1", "port": 40_000}
    assert connection["handshake"] == {"seen": True, "syn_to_synack_s": 0.01, "synack_to_ack_s": 0.001}
    assert connection["duration_s"] == transfer.DURATION_S
    client, server = connection["client_to_server"], connection["server_to_client"]
    assert {key: client[key] for key in transfer.CLIENT} == transfer.CLIENT
    assert {key: server[key] for key in transfer.SERVER} == transfer.SERVER
    assert client["rtt_ms"] == transfer.CLIENT_RTT_MS
    assert server["rtt_ms"] == transfer.SERVER_RTT_MS
    assert client["throughput_bps"] is None
    assert server["throughput_bps"] == pytest.approx(transfer.SERVER_THROUGHPUT_BPS)
    assert (client["duplicate_acks"], server["mss_bytes"], server["window_scale"]) == (1, 1460, 7)


def test_what_was_not_seen_is_null_and_never_zero(tmp_path: Path, valid: jsonschema.Draft202012Validator) -> None:
    document = analyze(packets.capture(tmp_path / "middle.pcap", "0 C > S P. 1:101 ack 1")).to_dict()
    valid.validate(document)
    (connection,) = document["connections"]
    assert connection["handshake"] == {"seen": False, "syn_to_synack_s": None, "synack_to_ack_s": None}
    client = connection["client_to_server"]
    assert [client[key] for key in ("mss_bytes", "window_scale", "max_window_bytes", "throughput_bps")] == [None] * 4
    assert client["rtt_ms"] == {"samples": 0, "min": None, "mean": None, "p50": None, "p95": None, "max": None}


def test_an_empty_capture_is_valid_json(tmp_path: Path, valid: jsonschema.Draft202012Validator) -> None:
    document = analyze(packets.capture(tmp_path / "nothing.pcap", "")).to_dict()
    valid.validate(document)
    assert document["connections"] == []
    assert document["capture"]["duration_s"] is None


def test_connections_beyond_one_slice_keep_their_commas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcptrace_lab.outputs.json_output.SLICE_CONNECTIONS", 3)
    hosts = "\n".join(f"host H{number} 10.0.1.{number}:50000" for number in range(7))
    data = "\n".join(f"{number} H{number} > S P. 1:10 ack 1" for number in range(7))
    document = analyze(packets.capture(tmp_path / "seven.pcap", f"{hosts}\n{data}")).to_dict()
    assert [connection["id"] for connection in document["connections"]] == list(range(7))


def test_findings_are_valid_json(path: Path, valid: jsonschema.Draft202012Validator) -> None:
    finding = Finding(
        id="nagle-delayed-ack",
        severity=Severity.HIGH,
        confidence=causes.Confidence.PROVED,
        conn=0,
        from_client=True,
        cost_ns=1_500_000_000,
        cost_share=0.5,
        title="held by Nagle",
        mechanism="a small segment waits for a delayed ACK",
        evidence_frames=(4, 5),
        limits="",
        remedy=("set TCP_NODELAY",),
        predicted_gain=None,
        source="RFC 9293, 3.7.4",
    )
    whole_capture = replace(finding, id="clock", conn=None, from_client=None, cost_ns=None, cost_share=None, severity=Severity.INFO)
    document = replace(analyze(path), findings=(finding, whole_capture)).to_dict()
    valid.validate(document)
    assert document["findings"][0]["severity"] == "high"
    assert document["findings"][0]["cost_s"] == 1.5
    assert document["findings"][0]["evidence"] == {"frames": [4, 5]}
    assert document["findings"][1]["connection"] is None


def test_an_unknown_key_or_a_missing_one_is_not_valid(path: Path, valid: jsonschema.Draft202012Validator) -> None:
    document = analyze(path).to_dict()
    del document["connections"][0]["vantage"]
    document["connections"][0]["server_to_client"]["novelty"] = 1
    missing, unknown = sorted(error.message for error in valid.iter_errors(document))
    assert missing == "'vantage' is a required property"
    assert "'novelty' was unexpected" in unknown


def test_ids_of_findings_stand_once_in_code_and_schema(published: dict[str, Any]) -> None:
    assert tuple(published["$defs"]["finding"]["properties"]["id"]["enum"]) == FINDING_IDS
    severities = [str(severity) for severity in sorted(Severity, reverse=True)]
    assert published["$defs"]["finding"]["properties"]["severity"]["enum"] == severities
    assert published["$defs"]["finding"]["properties"]["confidence"]["enum"] == list(causes.Confidence)


@pytest.mark.parametrize("table", schema.TABLES.values(), ids=lambda table: table.name)
def test_every_column_says_what_it_means(table: schema.Table) -> None:
    assert len(set(table.names)) == len(table.names)
    for column in table:
        assert column.meaning
        assert column.polars_type() is not None
        assert (column.dtype == "Enum") == bool(column.values)
        if column.name.endswith("_ns"):
            assert (column.unit, column.dtype) == (schema.Unit.NS, "Int64")
        if column.name.endswith("_bytes"):
            assert (column.unit, column.dtype) == (schema.Unit.BYTES, "Int64")


def test_engine_and_schema_have_the_same_columns_of_the_same_types(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "both.pcap", f"{transfer.TEXT}\n0.4 C > S udp 100\n0.5 S > C udp 100")
    engine = _core.Engine([str(path)], datagrams=True, flows=True, ledger=schema.WAITS.names, worth=())
    (pulled,) = reread.pulled_all(engine)
    tables = {
        schema.SEGMENTS: pulled.segments,
        schema.DATAGRAMS: pulled.datagrams,
        schema.CONNECTIONS: pulled.connections,
        schema.ACCOUNTS: pulled.accounts,
        schema.WAITS: pulled.ledger,
        schema.NOTES: pulled.notes,
        schema.FLOWS: pulled.flows,
    }
    for table, rows in tables.items():
        assert not rows.is_empty()
        assert dict(rows.schema) == table.polars_schema()
    found = reread.judged(engine)
    judged = {schema.KINDS_OF_WAITS: found.kinds, schema.LONGEST: found.waits, schema.LOCKS: found.locks, schema.PLACES: found.places}
    assert {table.name: dict(rows.schema) for table, rows in judged.items()} == {table.name: table.polars_schema() for table in judged}


def test_the_causes_of_the_engine_are_those_of_the_schema_in_the_same_order(path: Path) -> None:
    """The order of causes must be equal in the engine and in the schema.

    Tables store a cause as a code, and accounts have one column for each cause.
    """
    engine = _core.Engine([str(path)], ledger=(), worth=())
    (pulled,) = reread.pulled_all(engine)
    assert tuple(pulled.accounts.columns) == schema.ACCOUNTS.names
    assert not pulled.accounts.is_empty()


def test_figures_of_a_flow_have_the_columns_and_types_of_the_schema(tmp_path: Path) -> None:
    flows = analyze(packets.capture(tmp_path / "udp.pcap", "0 C > S udp 100\n1 S > C udp 100\n2 C > S udp 9")).flows
    assert dict(flows.collect_schema()) == dict(flows.collect().schema) == schema.FLOWS.polars_schema()
    assert flows.collect().height == 1
