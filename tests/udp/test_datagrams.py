"""The table of UDP datagrams has the right rows, however the rows are stored. For real captures, all rows equal those of tshark."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scapy.layers.inet import ICMP, IP, UDP, fragment
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from tcptrace_lab import analyze, errors, schema
from tcptrace_lab.udp.datagrams import read_datagrams
from tests.support import needs, packets
from tests.support.command import new_process
from tests.support.peers import reference_udp, tshark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcptrace_lab.udp.datagrams import Datagrams

FAR = 10**12
"""A limit (rows or bytes) that no test reaches."""

TEXT = """
    host D 10.0.0.3:5353
    0       C > S  S   0:0(0)
    1ms     C > S  udp 100  {id 7, ttl 60}
    3ms     S > C  udp 300  {vlan 5, snap 60}
    4ms     D > S  udp 9
    10ms    C > S  udp 0
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return packets.capture(tmp_path / "udp.pcap", TEXT)


@pytest.fixture
def expected(path: Path) -> pl.DataFrame:
    return read_datagrams(path, spill_rows=FAR, reread_bytes=FAR).datagrams.collect()


WAYS: dict[str, Callable[[Path], Datagrams]] = {
    "in memory": lambda path: read_datagrams(path, spill_rows=FAR, reread_bytes=FAR),
    "in temporary files": lambda path: read_datagrams(path, spill_rows=0, reread_bytes=FAR),
    "read again": lambda path: read_datagrams(path, reread_bytes=0),
}


def test_datagrams_carry_what_was_true_before_them(expected: pl.DataFrame) -> None:
    ms = 1_000_000
    assert expected.drop("layers").rows() == [
        (2, packets.BASE_NS + ms, 0, True, 100, 100, 1, None, None, 7, 60),
        (3, packets.BASE_NS + 3 * ms, 0, False, 300, 60 - 18 - 28, 1, None, 2 * ms, 1, 64),
        (4, packets.BASE_NS + 4 * ms, 1, True, 9, 9, 1, None, None, 1, 64),
        (5, packets.BASE_NS + 10 * ms, 0, True, 0, 0, 1, 9 * ms, 7 * ms, 3, 64),
    ]
    assert expected["layers"].to_list() == ["eth/ip/udp", "eth/vlan/ip/udp", "eth/ip/udp", "eth/ip/udp"]


@pytest.mark.parametrize("way", WAYS)
def test_rows_and_types_are_the_same_however_they_are_kept(path: Path, expected: pl.DataFrame, way: str) -> None:
    read = WAYS[way](path)
    assert dict(read.datagrams.collect_schema()) == schema.DATAGRAMS.polars_schema()
    assert dict(read.flows.collect_schema()) == dict(read.flows.collect().schema) == schema.FLOWS.polars_schema()
    assert_frame_equal(read.datagrams.collect(), expected)
    assert_frame_equal(read.datagrams.collect(engine="streaming"), expected)
    some = read.datagrams.filter(pl.col("flow") == 0).select("frame", "payload_bytes")
    assert some.collect().rows() == [(2, 100), (3, 300), (5, 0)]
    assert_frame_equal(read.datagrams.head(2).collect(), expected.head(2))
    assert read.flows.collect()["client_payload_bytes"].to_list() == [100, 9]
    assert read.loss is None


@pytest.mark.parametrize("way", WAYS)
def test_a_capture_without_udp_has_empty_tables(tmp_path: Path, way: str) -> None:
    read = WAYS[way](packets.capture(tmp_path / "tcp.pcap", "0 C > S S 0:0(0)"))
    assert read.datagrams.collect().is_empty()
    assert read.flows.collect().is_empty()
    assert dict(read.datagrams.collect().schema) == schema.DATAGRAMS.polars_schema()
    assert dict(read.flows.collect_schema()) == dict(read.flows.collect().schema) == schema.FLOWS.polars_schema()
    assert (read.info["udp_datagrams"], read.info["tcp_segments"]) == (0, 1)


def test_a_file_that_was_replaced_is_not_taken_for_the_one_that_was_read(path: Path) -> None:
    read = read_datagrams(path, reread_bytes=0)
    packets.capture(path.with_name("other.pcap"), "0 C > S udp 1").replace(path)
    with pytest.raises(errors.CaptureUnreadable, match="changed while it was read"):
        read.datagrams.collect()


def test_datagrams_come_through_a_fifo(path: Path, expected: pl.DataFrame) -> None:
    fifo = path.with_name("fifo")
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(path.read_bytes(),))
    writer.start()
    read = read_datagrams(fifo, reread_bytes=0)
    writer.join()
    assert_frame_equal(read.datagrams.collect(), expected)


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"Dear reader,\nthis is no capture.\n" * 9)
    with pytest.raises(errors.NotACapture):
        read_datagrams(tmp_path / "file")
    with pytest.raises(errors.UsageError):
        read_datagrams([])


def test_a_cut_capture_gives_what_stands_before_the_cut(path: Path, expected: pl.DataFrame) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    read = read_datagrams(path)
    assert_frame_equal(read.datagrams.collect(), expected.head(3))
    assert read.loss is not None


def test_progress_is_reported_in_datagrams(path: Path) -> None:
    reported: list[tuple[int, float | None]] = []
    read_datagrams(path, progress=lambda rows, share: reported.append((rows, share)))
    assert reported[-1] == (4, 1.0)


def capture(folder: Path, *made: Packet) -> Path:
    """Write the packets to a capture, one millisecond apart, and return its path."""
    frames = [packets.Frame(packets.BASE_NS + at * 1_000_000, bytes(packet), len(packet)) for at, packet in enumerate(made)]
    packets.write_pcap(folder / "made.pcap", frames)
    return folder / "made.pcap"


ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
ASKED = IP(src="10.0.0.1", dst="10.0.0.2", id=5) / UDP(sport=4000, dport=53)


def test_a_datagram_in_three_fragments_is_one_row_at_its_last(tmp_path: Path) -> None:
    parts: list[Packet] = fragment(ASKED / Raw(bytes(4000)), fragsize=1480)  # type: ignore[no-untyped-call]
    read = read_datagrams(capture(tmp_path, *(ETHER / part for part in parts), ETHER / ASKED / Raw(bytes(10))))
    assert read.datagrams.select("frame", "payload_bytes", "fragments").collect().rows() == [(3, 4000, 3), (4, 10, 1)]
    assert read.flows.select("client_datagrams", "client_fragmented_datagrams").collect().rows() == [(2, 1)]


def test_a_datagram_that_an_icmp_error_quotes_was_not_sent_again(tmp_path: Path) -> None:
    refused = IP(src="10.0.0.2", dst="10.0.0.1") / ICMP(type=3, code=3) / ASKED
    read = read_datagrams(capture(tmp_path, ETHER / ASKED, ETHER / refused))
    assert read.datagrams.select("frame").collect().rows() == [(1,)]


def test_a_datagram_in_a_tunnel_counts_and_the_tunnels_own_does_not(tmp_path: Path) -> None:
    tunnelled = ETHER / IP(src="1.1.1.1", dst="2.2.2.2") / UDP(sport=9, dport=4789) / VXLAN(vni=1) / ETHER / ASKED / Raw(bytes(10))
    read = read_datagrams(capture(tmp_path, tunnelled))
    assert read.datagrams.select("payload_bytes", "ip_id", "layers").collect().rows() == [(10, 5, "eth/ip/udp/vxlan/eth/ip/udp")]
    assert read.flows.collect()["client_addr"].to_list() == ["10.0.0.1"]


def test_the_analysis_has_the_flows_in_one_pass(path: Path, tmp_path: Path) -> None:
    flows = read_datagrams(path).flows
    for reread_bytes in (0, FAR):
        assert_frame_equal(analyze(path, reread_bytes=reread_bytes).flows, flows)
    assert analyze(path, connection=0).flows.collect().is_empty()
    done = new_process("analyze", "-", "--json", "-", folder=tmp_path, stdin=path.read_bytes())
    assert (done.returncode, json.loads(done.stdout)["udp_flows"]) == (0, analyze(path).to_dict()["udp_flows"])
    assert b"4 UDP datagrams" in new_process("analyze", "-", folder=tmp_path, stdin=path.read_bytes()).stdout
    assert "UDP flows" in (tmp_path / "reports" / "stdin.html").read_text()


def test_udp_flows_in_json(path: Path) -> None:
    document = analyze(path).to_dict()
    jsonschema.Draft202012Validator(
        json.loads((Path(schema.__file__).parents[1] / "outputs/schemas/analysis.schema.json").read_text())
    ).validate(document)
    assert document["capture"]["udp_datagrams"] == 4
    first, second = document["udp_flows"]
    assert (first["id"], first["client"], first["server"]) == (0, {"addr": "10.0.0.1", "port": 40_000}, {"addr": "10.0.0.2", "port": 80})
    assert first["echo_ms"] == {"samples": 1, "min": 2, "p50": 2, "p95": 2, "max": 2}
    assert first["client_to_server"] == {
        "datagrams": 2,
        "payload_bytes": 100,
        "fragmented_datagrams": 0,
        "size_bytes": {"min": 0, "mean": 50, "max": 100, "distinct": 2},
        "first_ts_ns": packets.BASE_NS + 1_000_000,
        "last_ts_ns": packets.BASE_NS + 10_000_000,
        "rate_bps": pytest.approx(800 / 0.009),
        "gap_ms": {"p50": 9, "p95": 9, "max": 9},
        "gap_variation": None,
        "missing_datagrams": None,
        "reordered_datagrams": None,
        "loss_known_by": None,
    }
    assert second["server_to_client"]["rate_bps"] is None


TUNNELS = {"vxlan", "geneve", "gtp", "teredo", "ayiya"}
"""Tunnel protocols over UDP, as tshark names them. The outer datagram of a tunnelled packet has no row."""

NO_LENGTH = {"zeek-zeek__cisco-fabric-path.pcap": 8}
"""For each capture, the number of datagrams whose length tshark reports wrongly.

tshark takes the last four bytes of the inner frame for a checksum.
"""

NO_STREAM = ""
"""The stream number of datagrams inside FabricPath, for which tshark prints none."""

TIME_CARRIED = {"the-tcpdump-group-tcpdump__timestamp_invalid_micro.pcap", "the-tcpdump-group-tcpdump__timestamp_invalid_nano.pcap"}
"""Captures whose timestamps the engine reads differently. `deviations` has the reasons."""

FIELDS = ("frame.number", "frame.protocols", "frame.time_epoch", "udp.stream", "udp.length")


def real() -> list[Path]:
    """Return the shared captures that contain more than TCP and that both programs can open."""
    names = [name for name, row in needs.index().items() if int(row["packets"]) > int(row["tcp_packets"])]
    neither = {"seladb-PcapPlusPlus__solaris.snoop", "the-tcpdump-group-tcpdump__brcm-tag.pcap", "the-tcpdump-group-tcpdump__dsa.pcap"}
    return [needs.SHARED / name for name in names if not name.startswith("malformed/") and name not in neither]


def their_datagrams(path: Path) -> Iterator[dict[str, Any]]:
    """Yield one row for each datagram that tshark shows.

    Datagrams in tunnels are included. Datagrams in ICMP errors or in TCP are left out.
    """
    for fields in tshark.frames(path, FIELDS):
        layers = fields["frame.protocols"].split(":")
        end = min((layers.index(layer) for layer in ("icmp", "icmpv6", "tcp") if layer in layers), default=len(layers))
        places = [at for at, layer in enumerate(layers[:end]) if layer == "udp"]
        ordinal = next((ordinal for ordinal, at in enumerate(places) if not is_entered(layers, at)), None)
        if ordinal is None:
            continue
        lengths = fields["udp.length"].split(",")
        streams = fields["udp.stream"].split(",")
        yield {
            "frame": int(fields["frame.number"]),
            "ts_ns": tshark.time_ns(fields["frame.time_epoch"]),
            "flow": streams[ordinal] if ordinal < len(streams) else NO_STREAM,
            "payload_bytes": int(lengths[ordinal]) - 8 if ordinal < len(lengths) and lengths[ordinal] else None,
        }


def is_entered(layers: list[str], place: int) -> bool:
    """Return whether the datagram at index `place` of `layers` carries another packet."""
    return bool(TUNNELS & set(layers[place + 1 : place + 2])) and len(layers) > place + 2


def by_first_appearance(names: list[Any]) -> list[int]:
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


@needs.shared_captures
def test_shared_captures_are_there() -> None:
    assert len(real()) > 80


@needs.shared_captures
@pytest.mark.parametrize("path", needs.each(real()))
def test_datagrams_and_flows_of_real_captures_are_those_of_tshark(path: Path) -> None:
    theirs = list(their_datagrams(path))
    read = read_datagrams(path)
    ours = read.datagrams.collect()
    assert ours["frame"].to_list() == [row["frame"] for row in theirs]
    numbered = [(flow, row["flow"]) for flow, row in zip(ours["flow"], theirs, strict=True) if row["flow"] != NO_STREAM]
    assert by_first_appearance([flow for flow, _ in numbered]) == by_first_appearance([stream for _, stream in numbered])
    differing = sum(size != row["payload_bytes"] for size, row in zip(ours["payload_bytes"], theirs, strict=True))
    assert differing == NO_LENGTH.get(path.name, 0)
    if path.name not in TIME_CARRIED:
        assert ours["ts_ns"].to_list() == [row["ts_ns"] for row in theirs]


@needs.shared_captures
@pytest.mark.parametrize("path", needs.each(real()))
def test_flows_of_real_captures_add_up(path: Path) -> None:
    read = read_datagrams(path)
    found = {row.pop("flow"): row for row in read.flows.collect().to_dicts()}
    expected = reference_udp.flows(read.datagrams.collect().to_dicts())
    assert list(found) == list(expected)
    for flow, wanted in expected.items():
        for name, value in wanted.items():
            assert found[flow][name] == reference_udp.near(name, value), (flow, name)
