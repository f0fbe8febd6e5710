"""Two captures of one transfer are matched, despite NAT, retransmits and copies. The matched packets show losses, clocks and host delays.

Each exchange is written by hand, with what the path does to each packet. Both captures are made from this text, so the expected values
follow from it. For each committed pair of captures, a JSON file has the log of the path.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import dpkt
import jsonschema
import plotly.graph_objects as go
import polars as pl
import pytest

from tcptrace_lab import analyze, errors
from tcptrace_lab.pair import Pair, document, pair_captures
from tcptrace_lab.report import data, render
from tcptrace_lab.report.figures import pair_ladder
from tests.support import needs, packets
from tests.support.command import only_line, tcptrace_lab
from tests.support.places import CAPTURES

SCHEMA = json.loads((Path(errors.__file__).parent / "outputs/schemas/pair.schema.json").read_text())
MS_NS = 1_000_000

HANDSHAKE = """
    0.000 10ms C > S S  0:0(0)       win 64240 <mss 1460, sackOK, wscale 7>
    0.010 10ms S > C S. 0:0(0) ack 1 win 65160 <mss 1460, sackOK, wscale 7>
    0.020 10ms C > S .  1:1 ack 1 win 502
"""
"""A handshake over a path that takes 10 ms in each direction."""

NAT = "host C 203.0.113.9:61000 isn 1000\nhost S 198.51.100.7:80 isn 5000\n"


def two(folder: Path, text: str, *, at_server: str = "") -> tuple[Path, Path]:
    """Write the captures of an exchange at the client and at the server.

    The word after the time of a line says what the path does to the packet. `10ms`: the packet arrives 10 ms later. `10ms,12ms`: the packet
    arrives twice. `lost`: the packet never arrives. `missed`: the receiver's capture misses the packet. `unsent10ms`: the sender's capture
    misses the packet.

    The text `at_server` comes before the lines of the server's capture. It can define other hosts, for example.
    """
    lines: dict[str, list[tuple[float, str]]] = {"C": [], "S": []}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        time, fate, packet = line.split(maxsplit=2)
        sender = packet[0]
        receiver = {"C": "S", "S": "C"}[sender]
        if not fate.startswith("unsent"):
            lines[sender].append((float(time), packet))
        if fate not in {"lost", "missed"}:
            delays = [float(delay.removesuffix("ms")) / 1000 for delay in fate.removeprefix("unsent").split(",")]
            lines[receiver] += [(float(time) + delay, packet) for delay in delays]
    files = []
    for host, name, head in (("C", "client.pcap", ""), ("S", "server.pcap", at_server)):
        body = "\n".join(f"{time:.6f} {packet}" for time, packet in sorted(lines[host], key=lambda item: item[0]))
        files.append(packets.capture(folder / name, f"{head}\n{body}"))
    return files[0], files[1]


def pair(first: Path, second: Path) -> Pair:
    return pair_captures(analyze(first), analyze(second))


def reported(found: Pair) -> dict[str, Any]:
    """Return the connection and the clock from the JSON document of a pair that has one connection."""
    whole = json.loads(json.dumps(document(found)))
    jsonschema.Draft202012Validator(SCHEMA).validate(whole)
    (connection,) = whole["connections"]
    both: dict[str, Any] = connection | {"clock": whole["clock"]}
    return both


def kinds(direction: dict[str, Any]) -> dict[str, int]:
    names = ("matched", "lost", "not_captured", "only_at_receiver", "duplicated", "outside_overlap", "reordered", "uncertain")
    return {name: direction[name] for name in names if direction[name]}


BULK = """
    0.100 11ms C > S .  1:1461    ack 1 win 502 {id 10}
    0.101 11ms C > S .  1461:2921 ack 1 win 502 {id 11}
    0.102 11ms C > S .  2921:4381 ack 1 win 502 {id 12}
    0.112 10ms S > C .  1:1 ack 2921 win 501 {id 70}
    0.113 10ms S > C .  1:1 ack 4381 win 501 {id 71}
"""


def test_plain_transfer_is_matched_whole_and_its_delays_are_those_of_the_path(tmp_path: Path) -> None:
    found = reported(pair(*two(tmp_path, HANDSHAKE + BULK)))
    there, back = found["client_to_server"], found["server_to_client"]
    assert (kinds(there), kinds(back)) == ({"matched": 5}, {"matched": 3})
    assert (there["one_way_delay_ms"]["min"], there["one_way_delay_ms"]["max"]) == (10.0, 11.0)
    assert (back["one_way_delay_ms"]["min"], back["one_way_delay_ms"]["max"]) == (10.0, 10.0)
    assert found["clock"]["offset_s"] == 0
    assert found["clock"]["rtt_min_s"] == 0.020


def test_order_of_the_captures_does_not_matter(tmp_path: Path) -> None:
    client, server = two(tmp_path, HANDSHAKE + BULK)
    one, other = reported(pair(client, server)), reported(pair(server, client))
    assert (one["near_client"], one["near_client_known_by"]) == ("first", "rtt")
    assert (other["near_client"], other["near_client_known_by"]) == ("second", "rtt")
    for way in ("client_to_server", "server_to_client"):
        assert one[way] == other[way]


def test_ack_delay_of_the_host_is_kept_apart_from_the_path(tmp_path: Path) -> None:
    """The path takes 10 ms in each direction. The server delays its ACK by 40 ms."""
    text = """
    0.100 10ms C > S P. 1:101 ack 1 win 502
    0.150 10ms S > C .  1:1 ack 101 win 501
    """
    there = reported(pair(*two(tmp_path, HANDSHAKE + text)))["client_to_server"]
    assert there["ack_delay_ms"] == {"samples": 2, "min": 0.0, "p50": 40.0, "p95": 40.0, "max": 40.0}, "the SYN's was answered at once"
    assert there["rtt_ms"]["max"] == 60.0
    assert (there["path_rtt_ms"]["min"], there["path_rtt_ms"]["max"]) == (20.0, 20.0)


def test_packets_are_known_again_behind_a_nat(tmp_path: Path) -> None:
    found = reported(pair(*two(tmp_path, HANDSHAKE + BULK, at_server=NAT)))
    assert (kinds(found["client_to_server"]), kinds(found["server_to_client"])) == ({"matched": 5}, {"matched": 3})
    assert found["client"] == {"addr": "10.0.0.1", "port": 40_000}
    assert found["client_in_second"] == {"addr": "203.0.113.9", "port": 61_000}


LOSS = """
    0.100 lost C > S .  1:1461    ack 1 win 502 {id 10}
    0.101 10ms C > S .  1461:2921 ack 1 win 502 {id 11}
    0.112 10ms S > C .  1:1 ack 1 win 501 <sack 1461:2921> {id 70}
    0.122 10ms C > S .  1:1461    ack 1 win 502 {id 12}
    0.132 10ms S > C .  1:1 ack 2921 win 501 {id 71}
"""


def test_lost_original_is_distinguished_from_its_resend_by_ip_identification(tmp_path: Path) -> None:
    there = reported(pair(*two(tmp_path, HANDSHAKE + LOSS)))["client_to_server"]
    assert kinds(there) == {"matched": 4, "lost": 1}
    assert (there["lost_frames"], there["lost_bytes"]) == ([4], 1460)


@pytest.mark.parametrize(("fates", "lost_frame"), [(("lost", "10ms"), 4), (("10ms", "lost"), 7)])
def test_without_marks_time_shows_which_of_two_like_packets_was_lost(fates: tuple[str, str], lost_frame: int, tmp_path: Path) -> None:
    """The segments have no timestamps, and the path sets all IP IDs to 0.

    So the headers do not distinguish the retransmit from the original.
    """
    text = LOSS.replace("0.100 lost", f"0.100 {fates[0]}").replace("0.122 10ms", f"0.122 {fates[1]}")
    client, server = two(tmp_path, HANDSHAKE + "".join(line.split("{")[0] + "{id 0}\n" for line in text.strip().splitlines()))
    there = reported(pair(client, server))["client_to_server"]
    assert there["lost_frames"] == [lost_frame]
    assert there["uncertain"] == 2, "both were distinguished by time only"


def test_identifications_that_the_path_rewrites_do_not_mislead(tmp_path: Path) -> None:
    """A NAT changes all IP IDs, so no ID is equal in both captures. The packets are still matched."""
    client, server = two(tmp_path, HANDSHAKE + BULK)
    rewritten = packets.capture(tmp_path / "renumbered.pcap", renumbered(server))
    assert kinds(reported(pair(client, rewritten))["client_to_server"]) == {"matched": 5}


def renumbered(path: Path) -> str:
    """Return the exchange of `BULK` as the server sees it, with other IP IDs."""
    assert path.exists()
    moved: list[tuple[float, str]] = []
    for line in filter(None, (line.strip() for line in (HANDSHAKE + BULK).splitlines())):
        time, fate, packet = line.split(maxsplit=2)
        at_s = float(time) + (float(fate.removesuffix("ms")) / 1000 if packet[0] == "C" else 0)
        moved.append((at_s, f"{at_s:.6f} {packet.split('{')[0]} {{id {9_000 + 7 * len(moved)}}}"))
    return "\n".join(line for _, line in sorted(moved))


def test_second_copy_made_by_the_path_is_a_copy_not_a_packet(tmp_path: Path) -> None:
    there = reported(pair(*two(tmp_path, HANDSHAKE + BULK.replace("0.101 11ms", "0.101 11ms,13ms"))))["client_to_server"]
    assert kinds(there) == {"matched": 5, "duplicated": 1}
    assert there["duplicated_frames"] == [9]
    assert there["received"] == 6


def test_packet_overtaken_on_the_path_is_reordered_once(tmp_path: Path) -> None:
    """Only the late packet is reordered. The two packets that overtook it are not (RFC 4737, 3.3)."""
    there = reported(pair(*two(tmp_path, HANDSHAKE + BULK.replace("0.100 11ms", "0.100 15ms"))))["client_to_server"]
    assert kinds(there) == {"matched": 5, "reordered": 1}
    assert there["one_way_delay_ms"]["max"] == 15.0


def test_packet_that_the_receivers_capture_missed_is_not_lost(tmp_path: Path) -> None:
    """The receiver acknowledged the bytes of the packet, and no other packet carried them. So the packet arrived."""
    there = reported(pair(*two(tmp_path, HANDSHAKE + BULK.replace("0.101 11ms", "0.101 missed"))))["client_to_server"]
    assert kinds(there) == {"matched": 4, "not_captured": 1}
    assert there["not_captured_frames"] == [5]


def test_an_ack_is_not_surely_lost_where_the_receivers_capture_missed_others(tmp_path: Path) -> None:
    """Nothing acknowledges an ACK. If the receiver's capture missed data packets, it possibly missed an ACK too."""
    ack = "    0.1015 missed C > S . 2921:2921 ack 1 win 503 {id 13}\n"
    whole, missing = (
        reported(pair(*two(tmp_path, HANDSHAKE + ack + BULK.replace("0.101 11ms", fate))))["client_to_server"]
        for fate in ("0.101 11ms", "0.101 missed")
    )
    assert kinds(whole) == {"matched": 5, "lost": 1}
    assert kinds(missing) == {"matched": 4, "lost": 1, "not_captured": 1, "uncertain": 1}


def test_packet_that_the_senders_capture_missed_is_unseen_there(tmp_path: Path) -> None:
    there = reported(pair(*two(tmp_path, HANDSHAKE + BULK.replace("0.101 11ms", "0.101 unsent11ms"))))["client_to_server"]
    assert kinds(there) == {"matched": 4, "only_at_receiver": 1}
    assert there["only_at_receiver_frames"] == [5]


def test_what_was_sent_after_the_other_capture_ended_is_not_lost(tmp_path: Path) -> None:
    client, server = two(tmp_path, HANDSHAKE + BULK)
    short = tmp_path / "short.pcap"
    with server.open("rb") as file, short.open("wb") as cut:
        reader = dpkt.pcap.Reader(file)
        writer = dpkt.pcap.Writer(cut, nano=True)
        for timestamp, frame in list(reader)[:4]:
            writer.writepkt(frame, timestamp)
    found = reported(pair(client, short))
    assert kinds(found["client_to_server"]) == {"matched": 3, "outside_overlap": 2}
    assert kinds(found["server_to_client"]) == {"matched": 1, "outside_overlap": 2}


def test_captures_that_begin_in_mid_stream_at_different_places_are_laid_on_one_another(tmp_path: Path) -> None:
    """Without SYNs, each capture counts bytes of the stream from its own first segment.

    Byte 1 of the server's capture is byte 1461 of the client's capture.
    """
    late = "\n".join(BULK.strip().splitlines()[1:])
    client = two(tmp_path, BULK)[0].rename(tmp_path / "whole.pcap")
    (tmp_path / "late").mkdir()
    server = two(tmp_path / "late", late)[1]
    found = reported(pair(client, server))
    assert kinds(found["client_to_server"]) == {"matched": 2, "outside_overlap": 1}
    assert kinds(found["server_to_client"]) == {"matched": 2}


def test_segments_that_offload_joined_count_as_the_packets_of_the_wire(tmp_path: Path) -> None:
    """The client's network card splits a segment of 4,380 bytes into three packets. The second packet is lost."""
    lost = BULK.replace("0.101 11ms", "0.101 lost").replace("ack 2921", "ack 1461")
    lost = lost.replace("ack 4381 win 501", "ack 1461 win 501 <sack 2921:4381>")
    _, server = two(tmp_path, HANDSHAKE + lost)
    (tmp_path / "joined").mkdir()
    joined = "0.100 11ms C > S . 1:4381 ack 1 win 502 {id 10}\n" + "\n".join(lost.strip().splitlines()[3:])
    client, _ = two(tmp_path / "joined", HANDSHAKE + joined)
    there = reported(pair(client, server))["client_to_server"]
    assert (there["sent"], there["matched"], there["lost"]) == (5, 4, 1)
    assert (there["lost_bytes"], there["lost_frames"]) == (1460, [4])


# ---- captures of this kernel ----


@pytest.fixture(params=["ethernet-loss", "ethernet-reordering", "ethernet-nagle-on", "ethernet-small-receive-window"])
def committed(request: pytest.FixtureRequest) -> tuple[Path, Path, dict[str, Any]]:
    """A committed pair of captures, and the JSON with the log of its path."""
    name = str(request.param)
    beside: dict[str, Any] = json.loads((CAPTURES / f"{name}.json").read_text())
    return CAPTURES / f"{name}.pcapng", CAPTURES / f"{name}-at-server.pcapng", beside


def test_losses_are_exactly_those_of_the_paths_log(committed: tuple[Path, Path, dict[str, Any]]) -> None:
    """The log of the path counts the client's packets from 0, in the order of the client's capture."""
    client, server, beside = committed
    found = reported(pair(client, server))
    log = (beside["relay"] or {"forward": {"log": {"lost_indexes": []}}})["forward"]["log"]["lost_indexes"]
    sent = analyze(client).segments.filter(from_client=True).select("frame").collect()["frame"].to_list()
    assert found["client_to_server"]["lost_frames"] == [sent[index] for index in log]
    assert found["server_to_client"]["lost_frames"] == []
    assert found["client_to_server"]["not_captured"] == found["client_to_server"]["only_at_receiver"] == 0


def test_the_first_screen_of_the_report_says_what_the_pair_found(committed: tuple[Path, Path, dict[str, Any]]) -> None:
    """The page shows the losses in the path's log.

    If no packets queue, the delay on the page is the propagation delay.
    """
    client, server, beside = committed
    first, second = analyze(client), analyze(server)
    page = data(first, pair_captures(first, second))
    assert page["pair"] is not None
    there, back = page["pair"]["answer"]
    log = (beside["relay"] or {"forward": {"log": {"lost_indexes": []}}})["forward"]["log"]["lost_indexes"]
    sent = first.segments.filter(from_client=True).collect().height
    lost = f"{len(log)} of {sent} packets lost ({len(log) / sent:.1%})" if log else f"none of {sent} packets lost"
    assert there.startswith(f"client → server: {lost}")
    assert back.startswith("server → client: none of ")
    path = (beside["relay"] or {}).get("forward", {})
    if "delay_s" in path and "rate_bps" not in path:
        median_ms = float(there.split("one-way delay ")[1].split(" ms (median)")[0])
        assert 1000 * path["delay_s"] <= median_ms < 1000 * path["delay_s"] + 2
    assert "Between the two captures" in render(page)


def test_both_captures_share_a_clock_and_that_is_found(committed: tuple[Path, Path, dict[str, Any]]) -> None:
    """Both captures were made on one machine, so the offset of their clocks is 0."""
    clock = reported(pair(*committed[:2]))["clock"]
    assert abs(clock["offset_s"]) <= clock["offset_error_if_symmetric_s"] <= clock["offset_error_s"]


@pytest.mark.parametrize("shift", ["-0.75", "3.25", "86400.5"])
def test_clock_that_is_ahead_is_found_to_be(committed: tuple[Path, Path, dict[str, Any]], shift: str, tmp_path: Path) -> None:
    client, server, _ = committed
    moved = tmp_path / "moved.pcapng"
    subprocess.run([needs.program("editcap"), "-t", shift, server, moved], check=True, capture_output=True)
    unmoved, clock = reported(pair(client, server)), reported(pair(client, moved))
    assert abs(clock["clock"]["offset_s"] - float(shift)) <= clock["clock"]["offset_error_if_symmetric_s"]
    assert clock["client_to_server"]["lost_frames"] == unmoved["client_to_server"]["lost_frames"]
    moved_ms, unmoved_ms = (one["client_to_server"]["one_way_delay_ms"]["p50"] for one in (clock, unmoved))
    assert moved_ms == pytest.approx(unmoved_ms, abs=1e-3)


@pytest.mark.parametrize("drift", [300e-6, -700e-6])
def test_clock_that_drifts_is_found_to_drift(drift: float, tmp_path: Path) -> None:
    """The test makes the clock of the second capture drift by changing its timestamps.

    The path has almost no delay, so half a second is enough to show the drift.
    """
    client, server = CAPTURES / "ethernet-nagle-on.pcapng", CAPTURES / "ethernet-nagle-on-at-server.pcapng"
    segments = analyze(server).segments.select("ts_ns").collect()["ts_ns"].to_list()
    drifted = tmp_path / "drifted.pcap"
    with server.open("rb") as file, drifted.open("wb") as out:
        dpkt.pcap.Writer(out, nano=True)  # writes only the file header: dpkt's times are floats
        for (_, frame), ts_ns in zip(dpkt.pcapng.Reader(file), segments, strict=True):
            moved_ns = ts_ns + round((ts_ns - segments[0]) * drift)
            header = dpkt.pcap.LEPktHdr(tv_sec=moved_ns // 10**9, tv_usec=moved_ns % 10**9, caplen=len(frame), len=len(frame))
            out.write(bytes(header) + bytes(frame))
    clock = reported(pair(client, drifted))["clock"]
    assert abs(clock["drift_ppm"] - drift * 1e6) <= clock["drift_error_ppm"] <= 150
    middle_s = (clock["reference_ts_ns"] - segments[0]) / 1e9
    assert abs(clock["offset_s"] - middle_s * drift) <= clock["offset_error_if_symmetric_s"]


def test_captures_without_a_connection_in_common_are_refused() -> None:
    with pytest.raises(errors.UsageError, match="no connection in common"):
        pair(CAPTURES / "ethernet-loss.pcapng", CAPTURES / "ethernet-reordering-at-server.pcapng")


# ---- as people use it ----


def test_command_prints_a_table_of_80_columns_and_writes_json_and_report(tmp_path: Path) -> None:
    client, server = two(tmp_path, HANDSHAKE + LOSS)
    done = tcptrace_lab("analyze", "--pair", client, server, "--json", "pair.json", "-o", "pair.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads((tmp_path / "pair.json").read_text()))
    lines = done.stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:3] == ["10.0.0.1:40000", "5", "1"] for line in lines), lines
    assert "Between two captures" in (tmp_path / "pair.html").read_text()
    reported = " ".join(done.stdout.decode().split())
    for heading in ("lost", "copies", "late", "ACK delay"):
        assert f"{heading}: " in reported, "each heading that is no plain word is explained"


def test_the_findings_that_the_exit_code_minds_are_those_of_the_first_capture(tmp_path: Path) -> None:
    files = [CAPTURES / "ethernet-nagle-on.pcapng", CAPTURES / "ethernet-nagle-on-at-server.pcapng"]
    done = tcptrace_lab("analyze", "--pair", *files, "--fail-on", "high", folder=tmp_path)
    reported = " ".join(done.stdout.decode().split())
    assert done.returncode == 1
    assert re.search(r"Findings in the first capture, \S*/ethernet-nagle-on\.pcapng \(these decide --fail-on\):", reported)
    assert re.search(r"high +Nagle's algorithm .* 91% of 527 ms active · saves up to 477 ms · proved · connection 0 →", reported)


def test_a_condition_that_keeps_nothing_of_the_first_capture_is_reported_as_that(tmp_path: Path) -> None:
    client, server = two(tmp_path, HANDSHAKE + LOSS)
    done = tcptrace_lab("analyze", "--pair", client, server, "--where", "server_port = 1", "--quiet", folder=tmp_path)
    assert done.returncode == 2
    assert only_line(done.stderr) == (
        "tcptrace-lab: --where matches no connection of the first capture, so there is nothing to compare: server_port = 1"
    )


def test_report_of_a_pair_draws_delays_and_losses(tmp_path: Path) -> None:
    first, second = (analyze(path) for path in two(tmp_path, HANDSHAKE + LOSS))
    page = data(first, pair_captures(first, second))
    assert page["pair"] is not None
    (drawn,) = page["pair"]["drawn"]
    _, delay, round_trips = (go.Figure(figure["figure"]) for figure in drawn["figures"])
    by_name = {trace.name: trace for trace in delay.data}
    assert list(by_name["client → server"].y) == pytest.approx([0.010] * 4)
    assert list(by_name["client → server: lost (1)"].x) == pytest.approx([0.100])
    assert {trace.name for trace in round_trips.data} >= {"path, data client → server", "ACK delay, data client → server"}
    assert data(first)["pair"] is None


def test_the_ladder_of_a_pair_leads_each_packet_from_its_sender_to_its_receiver(tmp_path: Path) -> None:
    """The expected times, sizes and frames are those of `HANDSHAKE` and `LOSS`.

    Each packet takes 10 ms. The packet sent at 0.1 s is lost, and a cross marks it.
    """
    client, server = two(tmp_path, HANDSHAKE + LOSS)
    section = data(analyze(client), pair_captures(analyze(client), analyze(server)))["pair"]
    assert section is not None
    ladder = section["drawn"][0]["figures"][0]
    by_name = {trace["name"]: trace for trace in ladder["figure"]["data"]}
    up = by_name["client → server"]
    assert up["y"] == [1, 0, None] * 4
    sent, arrived = [0.0, 0.020, 0.101, 0.122], [0.010, 0.030, 0.111, 0.132]
    assert (up["x"][::3], up["x"][1::3]) == (pytest.approx(sent, abs=1e-9), pytest.approx(arrived, abs=1e-9))
    assert up["customdata"][::3] == [(1, 1, 0, "10 ms"), (3, 3, 0, "10 ms"), (5, 4, 1460, "10 ms"), (7, 6, 1460, "10 ms")]
    down = by_name["server → client"]
    assert (down["y"], down["x"][::3]) == ([0, 1, None] * 3, pytest.approx([0.010, 0.112, 0.132], abs=1e-9))
    lost = by_name["client → server: lost (1)"]
    assert (lost["x"], lost["y"], lost["customdata"]) == (pytest.approx([0.1]), [1], [(4, 1460)])
    assert ladder["text"].startswith("client to server: 4 packets arrived, 10 ms to 10 ms on the path, 1 lost.")


def test_a_long_ladder_has_consecutive_packets_around_the_first_loss() -> None:
    """The ladder must not omit a packet, because an omitted packet would look like a lost one."""
    count, first_lost = 3 * pair_ladder.PACKETS, 2 * pair_ladder.PACKETS
    fates = ["lost" if place == first_lost else "matched" for place in range(count)]
    delays = [None if fate == "lost" else 10 for fate in fates]
    rows = pair_ladder.shown(pl.DataFrame({"fate": fates, "delay_ns": delays, "t_ns": range(count)}))
    assert rows["t_ns"].to_list() == list(
        range(first_lost - pair_ladder.BEFORE_LOSS, first_lost - pair_ladder.BEFORE_LOSS + pair_ladder.PACKETS)
    )


@pytest.mark.parametrize(
    ("files", "code", "words"),
    [
        (["client.pcap"], 2, "--pair needs two captures, not 1"),
        (["client.pcap", "server.pcap", "server.pcap"], 2, "--pair needs two captures, not 3"),
        (["client.pcap", "client.pcap"], 2, "both captures are the same file"),
        (["client.pcap", "missing.pcap"], 3, "missing.pcap"),
        (["client.pcap", "text.pcap"], 3, "text.pcap"),
        (["client.pcap", "foreign.pcap"], 2, "no connection in common"),
        (["client.pcap", "empty.pcap"], 2, "no connection in common"),
    ],
)
def test_pair_that_cannot_be_is_one_line_and_the_designs_exit_code(files: list[str], code: int, words: str, tmp_path: Path) -> None:
    two(tmp_path, HANDSHAKE + BULK)
    (tmp_path / "text.pcap").write_text("no capture at all, but some words")
    packets.capture(
        tmp_path / "foreign.pcap", "host C 10.9.9.9:4000 isn 77\nhost S 10.9.9.8:80 isn 99\n0 C > S S 0:0\n0.1 S > C S. 0:0 ack 1"
    )
    packets.capture(tmp_path / "empty.pcap", "")
    done = tcptrace_lab("analyze", "--pair", *files, folder=tmp_path)
    assert done.returncode == code
    assert words in only_line(done.stderr)
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-reordering", "ethernet-offload-bulk"])
def test_result_is_the_same_however_few_packets_are_held(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client, server = (next(CAPTURES.glob(f"{name}{place}.pcap*")) for place in ("", "-at-server"))
    whole = pair(client, server)
    monkeypatch.setattr("tcptrace_lab.pair.match.PART_PACKETS", 50)
    monkeypatch.setattr("tcptrace_lab.pair.packet_store.KEPT_PACKETS", 20)
    parts = pair(client, server)
    assert document(parts) == document(whole)
    assert parts.packets.equals(whole.packets)


def test_segments_that_would_be_cut_into_too_many_packets_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an MSS of 1 byte, a segment of 1,460 bytes would be split into 1,460 packets."""
    monkeypatch.setattr("tcptrace_lab.pair.packets.MAX_PIECES", 1_000)
    captures = two(tmp_path, HANDSHAKE.replace("mss 1460", "mss 1") + BULK)
    with pytest.raises(errors.UsageError, match="more than 1,000 packets"):
        pair(*captures)
