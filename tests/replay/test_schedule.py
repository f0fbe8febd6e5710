"""The schedule that is reconstructed from a capture equals the schedule that made the capture."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import dpkt
import jsonschema
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tcptrace_lab.errors import CaptureInsufficient, UsageError
from tcptrace_lab.replay.changes import Changes
from tcptrace_lab.replay.evidence import gather
from tcptrace_lab.replay.reconstruct import reconstruct
from tcptrace_lab.replay.schedule import End, Schedule, from_dict, read_schedule, schema
from tcptrace_lab.stacks.setting import Think, Write
from tests.support.command import only_line, tcptrace_lab
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

SCENARIOS = sorted(path.with_suffix("") for path in CAPTURES.glob("*.json"))
EXCHANGES = [path.name for path in SCENARIOS if json.loads(path.with_suffix(".json").read_text())["schedule"]["program"] == "Exchanges"]


def made_by(stem: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CAPTURES / f"{stem}.json").read_text())
    return found


def schedule_of(stem: str) -> Schedule:
    return reconstruct(gather([str(CAPTURES / made_by(stem)["file"])]))


def writes(end: End) -> list[tuple[int, int]]:
    return [(step.size_bytes, step.call_bytes) for task in end.tasks for step in task if isinstance(step, Write)]


def thoughts_s(end: End, min_s: float) -> list[float]:
    found = [step.for_ns / 1e9 for task in end.tasks for step in task if isinstance(step, Think)]
    return [spent for spent in found if spent >= min_s]


@pytest.mark.parametrize("stem", EXCHANGES)
def test_exchanges_have_the_writes_and_thoughts_of_the_programs_that_made_them(stem: str) -> None:
    program = made_by(stem)["schedule"]
    schedule = schedule_of(stem)
    assert writes(schedule.client) == [(size, 0) for size in program["writes_bytes"]] * program["count"]
    assert writes(schedule.server) == [(program["answer_bytes"], 0)] * program["count"]
    for end, think_s in ((schedule.client, program["client_think_s"]), (schedule.server, program["server_think_s"])):
        if think_s:
            assert thoughts_s(end, 0.02)[: program["count"] - 1] == pytest.approx([think_s] * (program["count"] - 1), rel=0.1)


def test_a_writer_on_a_clock_keeps_its_beat() -> None:
    schedule = schedule_of("ethernet-application-limited")
    assert writes(schedule.client) == [(20_000, 0)] * 16
    assert thoughts_s(schedule.client, 0.02)[:15] == pytest.approx([0.05] * 15, rel=0.05)


@pytest.mark.parametrize("stem", [path.name for path in SCENARIOS if "slow-reader" in path.name])
def test_a_slow_reader_pauses_in_all_as_long_as_it_slept(stem: str) -> None:
    program = made_by(stem)["schedule"]
    slept_s = program["pause_s"] * program["total_bytes"] / program["read_bytes"]
    found = thoughts_s(schedule_of(stem).server, 0.1)
    assert sum(found) <= slept_s * 1.02
    assert sum(found) >= slept_s - program["pause_s"] * 1.02  # if all data have arrived before the last pause, no window shows it


@pytest.mark.parametrize("stem", [path.name for path in SCENARIOS if "small-send-buffer" in path.name and "loopback" not in path.name])
def test_a_writer_that_keeps_to_a_bound_has_it_and_its_calls(stem: str) -> None:
    program = made_by(stem)["schedule"]
    client = schedule_of(stem).client
    assert client.max_unacked_bytes == program["max_unacked_bytes"]
    assert writes(client) == [(program["total_bytes"], program["write_bytes"])]
    assert client.nodelay


@pytest.mark.parametrize(
    "stem",
    [path.name for path in SCENARIOS if "receive-window" in path.name or ("slow-reader" in path.name and "loopback" not in path.name)],
)
def test_a_fixed_receive_buffer_is_what_was_asked_for(stem: str) -> None:
    assert schedule_of(stem).server.receive_buffer_bytes == made_by(stem)["socket_options"]["SO_RCVBUF (server, requested)"]


@pytest.mark.parametrize("stem", ["ethernet-loss", "atm9180-loss", "atm9188-loss", "ethernet-tail-loss", "ethernet-syn-loss"])
def test_lost_packets_are_those_that_the_path_lost(stem: str) -> None:
    assert list(schedule_of(stem).path.forward.lost) == made_by(stem)["relay"]["forward"]["log"]["lost_indexes"]


def test_losses_that_are_seen_behind_the_path_are_a_share_and_a_doubt() -> None:
    schedule = schedule_of("ethernet-loss-at-server")
    assert schedule.path.forward.lost == ()
    assert 0 < schedule.path.forward.loss_share < 0.03
    assert any("drawn at random" in unknown for unknown in schedule.unknowns)


@pytest.mark.parametrize("stem", [path.name for path in SCENARIOS if made_by(path.name)["relay"]])
def test_the_path_is_as_long_and_as_wide_as_the_one_that_was_built(stem: str) -> None:
    made = made_by(stem)
    path = schedule_of(stem).path
    own_s = made["relay"]["forward"]["delay_s"] + made["relay"]["backward"]["delay_s"]
    assert path.base_rtt_ns / 1e9 == pytest.approx(own_s, rel=0.06)
    assert path.mtu_bytes == made["medium"]["mtu_bytes"]
    assert path.ipv6 == made["medium"]["ipv6"]


@pytest.mark.parametrize("stem", [path.name for path in SCENARIOS])
def test_every_schedule_is_written_by_its_published_schema_and_read_again(stem: str, tmp_path: Path) -> None:
    schedule = schedule_of(stem)
    document = json.loads(schedule.to_json())
    jsonschema.Draft202012Validator(schema()).validate(document)
    place = tmp_path / "schedule.json"
    place.write_bytes(schedule.to_json())
    assert read_schedule(str(place)) == from_dict(document)
    assert from_dict(document).to_dict() == schedule.to_dict()


def both_ways_told(stem: str) -> tuple[int, int]:
    made = schedule_of(stem)
    return made.client.written_bytes, made.server.written_bytes


def test_ends_that_send_at_once_have_a_task_that_writes_and_one_that_reads() -> None:
    schedule = schedule_of("ethernet-two-way")
    assert [len(end.tasks) for end in schedule.ends()] == [2, 2]
    assert both_ways_told("ethernet-two-way") == (200_000, 200_000)


WRONG: dict[str, Any] = {
    "client.tasks[0][0].write_bytes": {"write_bytes": 0},
    "client.tasks[0][0].think_s": {"think_s": -1},
    "client.tasks[0][0].await": {"await": "tea"},
    "client.tasks[0][0]": {"sing": 1},
    "client.tasks[0][0].loud": {"read_bytes": 1, "loud": True},
}


@pytest.mark.parametrize("place", WRONG)
def test_a_schedule_with_a_mistake_is_refused_with_its_place(place: str) -> None:
    with pytest.raises(UsageError, match=place.replace("[", r"\[").replace("]", r"\]").replace(".", r"\.")):
        from_dict({"schema_version": 2, "path": {"mtu_bytes": 1500}, "client": {"tasks": [[WRONG[place]]]}, "server": {"tasks": [[]]}})


def test_a_schedule_of_the_older_version_is_refused_in_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"schema_version": 1, "doubts": [], "path": {"mtu_bytes": 1500}}')
    done = tcptrace_lab("replay", "transfer", "--from-schedule", "old.json", "-q", folder=tmp_path)
    assert done.returncode == 2
    line = only_line(done.stderr)
    assert line.startswith("tcptrace-lab: schema_version is 1, and only 2 can be read: old.json; write it again with")


def test_changes_are_reported_as_the_options_that_make_them() -> None:
    changes = Changes(nodelay=True, send_buffer_bytes=65_536, delay_ns=5_000_000, congestion="reno")
    assert changes.words() == "--nodelay --send-buffer 65536 --congestion reno --delay 5ms"
    assert [one.words() for one in changes.one_by_one()] == ["--nodelay", "--send-buffer 65536", "--congestion reno", "--delay 5ms"]
    assert not Changes()


def test_a_larger_send_buffer_moves_the_bound_that_the_program_keeps() -> None:
    schedule = Changes(send_buffer_bytes=1 << 20).applied(schedule_of("ethernet-small-send-buffer"))
    assert (schedule.client.max_unacked_bytes, schedule.client.send_buffer_bytes, schedule.server.max_unacked_bytes) == (
        1 << 20,
        1 << 20,
        None,
    )


def test_a_capture_of_one_direction_cannot_be_made_again(tmp_path: Path) -> None:
    source = (CAPTURES / "atm9180-loss.pcap").open("rb")
    half = tmp_path / "half.pcap"
    with source, half.open("wb") as out:
        writer = dpkt.pcap.Writer(out)
        for ts, frame in dpkt.pcap.Reader(source):
            if frame[26:30] == bytes((192, 0, 2, 1)):
                writer.writepkt(frame, ts)
    with pytest.raises(CaptureInsufficient, match="one direction only: nothing from the server"):
        gather([str(half)])
    done = tcptrace_lab("replay", "transfer", half, "-q")
    assert (done.returncode, "one direction only" in only_line(done.stderr)) == (3, True)


def test_headers_that_were_cut_off_are_reported_in_one_line(tmp_path: Path) -> None:
    short = tmp_path / "short.pcap"
    with (CAPTURES / "atm9180-loss.pcap").open("rb") as source, short.open("wb") as out:
        writer = dpkt.pcap.Writer(out, snaplen=40)
        for ts, frame in dpkt.pcap.Reader(source):
            writer.writepkt(frame[:40], ts)
    done = tcptrace_lab("replay", "transfer", short, "-q")
    assert (done.returncode, "capture at least 96 bytes per frame" in only_line(done.stderr)) == (3, True)


def test_a_capture_without_tcp_is_not_advised_to_be_cut(tmp_path: Path) -> None:
    with (tmp_path / "udp.pcap").open("wb") as out:
        dpkt.pcap.Writer(out).writepkt(bytes(Ether() / IP(src="192.0.2.1", dst="192.0.2.2") / UDP() / b"data"), 1.0)
    done = tcptrace_lab("replay", "whatif", "udp.pcap", folder=tmp_path)
    assert done.returncode == 3
    assert only_line(done.stderr) == "tcptrace-lab: no TCP connection with data: udp.pcap"


@pytest.mark.parametrize("command", [["transfer", "--schedule", "-"], ["whatif"], ["script"]])
def test_a_capture_without_times_is_reported_in_one_line(command: list[str], tmp_path: Path) -> None:
    """The capture has simple packet blocks, which have no timestamps (draft-ietf-opsawg-pcapng, section 4.4)."""
    with (tmp_path / "untimed.pcapng").open("wb") as out, (CAPTURES / "atm9180-loss.pcap").open("rb") as source:
        reader = dpkt.pcap.Reader(source)
        out.write(struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28))
        out.write(struct.pack("<IIHHII", 1, 20, reader.datalink(), 0, 65_535, 20))
        for _, frame in reader:
            size = 16 + len(frame) + -len(frame) % 4
            out.write(struct.pack("<III", 3, size, len(frame)) + frame + bytes(-len(frame) % 4) + struct.pack("<I", size))
    done = tcptrace_lab("replay", command[0], "untimed.pcapng", *command[1:], "-q", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, b"")
    assert "segments of connection 0 are unknown: untimed.pcapng" in only_line(done.stderr)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a capture, or a schedule"),
        (["-"], "read only once"),
        (["x.pcap", "--serve", "1.2.3.4:1", "--connect", "1.2.3.4:1"], "exclude each other"),
        (["x.pcap", "--at", "middle"], "is not an end"),
        (["x.pcap", "--loss", "2"], "not a share"),
        (["x.pcap", "--send-buffer", "0"], "at least 1 byte"),
        (["x.pcap", "--mtu", "10"], "not between"),
        (["--from-schedule", "/nonexistent"], "cannot be read"),
    ],
)
def test_options_that_cannot_be_right_are_refused(arguments: list[str], words: str) -> None:
    done = tcptrace_lab("replay", "transfer", *arguments)
    assert (done.returncode, words in only_line(done.stderr)) == (2, True)
