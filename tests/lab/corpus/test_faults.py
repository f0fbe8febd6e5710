"""Tests of captures with faults: how each fault changes the packets, and which part of the kernel's ledger the capture is compared with."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab.engine.segments import read
from tcptrace_lab.errors import EXIT_USAGE
from tcptrace_lab.lab.corpus import manifest
from tcptrace_lab.lab.corpus.__main__ import main
from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT
from tcptrace_lab.lab.corpus.faulted import Broken, judge_faulty
from tcptrace_lab.lab.corpus.faults import FAULTS, faulty, read_packets, write_packets
from tests.support import packets as text
from tests.support.kernel.transfer import ENTRY, MS, exchange, transfer

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.lab.corpus.faults import Packets

FRAMES = 13
"""Number of frames of the transfer: three of the handshake, five questions and five answers."""


@pytest.fixture
def sound(tmp_path: Path) -> Packets:
    """The packets of the transfer, captured at the client."""
    return read_packets(text.capture(tmp_path / "sound.pcap", exchange(0)))[1]


def with_fault(sound: Packets, name: str) -> Packets:
    return faulty(sound, name, Random(1))  # noqa: S311  (repeatable)


def judged(folder: Path, name: str) -> Broken:
    """Return the verdicts on the capture with this fault, compared with the hand-written ledger."""
    transfer(folder / "one")
    (broken,) = judge_faulty(folder, [ENTRY], [name], 1, None)
    assert not broken.error
    return broken


def spent_ns(sums: dict[Any, int], **wanted: object) -> int:
    """Return the total time in nanoseconds of all keys that have these values."""
    return sum(ns for key, ns in sums.items() if all(getattr(key, name) == value for name, value in wanted.items()))


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_packets_are_read_and_written_to_the_nanosecond(tmp_path: Path, form: str) -> None:
    path = text.capture(tmp_path / f"one.{form}", exchange(0))
    link, found = read_packets(path)
    write_packets(tmp_path / "again.pcap", link, found)
    assert read_packets(tmp_path / "again.pcap") == (link, found)
    assert len(found) == FRAMES
    assert [packet.from_client for packet in found[:4]] == [True, False, True, True]
    assert found[1].at_ns - found[0].at_ns == 20 * MS


def test_what_is_dropped_is_missing_and_nothing_else_changes(sound: Packets) -> None:
    many = sound * 2_000
    for name, least, most in (("dropped-1-percent", 0.98, 0.995), ("dropped-10-percent", 0.88, 0.92), ("dropped-in-bursts", 0.95, 0.99)):
        kept = with_fault(many, name)
        assert least < len(kept) / len(many) < most
        assert set(kept) <= set(sound)


def test_a_mirror_shows_each_packet_twice_within_microseconds(sound: Packets) -> None:
    twice = with_fault(sound, "every-packet-twice")
    assert len(twice) == 2 * FRAMES
    assert all(0 <= packet.at_ns - packet.passed_ns <= 30_000 for packet in twice)


def test_a_part_of_the_time_and_one_direction(sound: Packets) -> None:
    whole_ns = sound[-1].at_ns - sound[0].at_ns
    assert with_fault(sound, "begun-late")[0].at_ns - sound[0].at_ns >= 0.3 * whole_ns
    assert with_fault(sound, "ended-early")[-1].at_ns - sound[0].at_ns <= 0.7 * whole_ns
    assert all(packet.from_client for packet in with_fault(sound, "only-data")), "questions are longer than answers"
    assert not any(packet.from_client for packet in with_fault(sound, "only-acks"))


def test_clocks_change_the_times_and_keep_the_true_ones(sound: Packets) -> None:
    for name in ("clock-of-1-ms", "clock-of-10-ms", "clock-ahead-50-ms", "clock-back-50-ms"):
        assert [packet.passed_ns for packet in with_fault(sound, name)] == [packet.at_ns for packet in sound]
    assert {packet.at_ns % (10 * MS) for packet in with_fault(sound, "clock-of-10-ms")} == {0}
    late = with_fault(sound, "clock-back-50-ms")
    assert [packet.at_ns - packet.passed_ns for packet in late] == [0] * (FRAMES // 2) + [-50 * MS] * (FRAMES - FRAMES // 2)


def test_headers_only_and_another_address(tmp_path: Path, sound: Packets) -> None:
    assert {len(packet.data) for packet in with_fault(sound, "snaplen-54")} == {54}
    write_packets(tmp_path / "translated.pcap", 1, with_fault(sound, "translated"))
    tables = read(tmp_path / "translated.pcap", worth=())
    (row,) = tables.connections.collect().iter_rows(named=True)
    assert (row["client_addr"], row["client_port"], row["server_addr"]) == ("198.51.100.7", 50_001, "192.0.2.2")


@pytest.mark.parametrize("name", FAULTS)
def test_the_same_time_is_compared_with_and_without_a_fault(tmp_path: Path, name: str) -> None:
    broken = judged(tmp_path, name)
    assert sum(broken.whole.values()) > 0
    assert {key.at for key in broken.sums} <= {"sender", "middle", "receiver"}


@pytest.mark.parametrize("name", ["every-packet-twice", "translated", "snaplen-54", "clock-ahead-50-ms", "clock-back-50-ms"])
def test_faults_that_hide_nothing_leave_the_same_time(tmp_path: Path, name: str) -> None:
    """The client thinks 4 times for 20 ms. Three capture points see this, so 240 ms are expected.

    A clock step shifts a wait in the capture, but not in the kernel's ledger.
    """
    broken = judged(tmp_path, name)
    assert sum(broken.sums.values()) == pytest.approx(sum(broken.whole.values()), abs=MS)
    assert spent_ns(broken.whole, gates="own-turn", is_exact=True) == 3 * 80 * MS
    assert spent_ns(broken.sums, gates="own-turn") == pytest.approx(3 * 80 * MS, abs=MS)


def test_the_command_prints_both_figures_and_knows_its_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    transfer(tmp_path / DEVELOPMENT / "one")
    manifest.append(tmp_path / DEVELOPMENT, ENTRY)
    kept = tmp_path / "kept"
    assert main(["faults", str(tmp_path), "--processes", "1", "--only", "translated", "--keep", str(kept)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("| translated | sender | 0 (0) | 100.0% (100.0%) |") for line in lines)
    assert sorted(path.name for path in (kept / "translated" / "one").iterdir()) == ["client.pcap", "middle.pcap", "server.pcap"]
    assert main(["faults", str(tmp_path), "--only", "nonsense"]) == EXIT_USAGE
    assert "translated" in capsys.readouterr().err
