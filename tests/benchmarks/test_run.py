"""The benchmark measures whole processes and compares the measurements with their limits.

The benchmark also checks that each process reads every packet.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import needs
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from measure import Command, Measured

BENCHMARKS = ROOT / "benchmarks" / "speed"
MIB = 1 << 20


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))  # the benchmark's folder is not a package
    return importlib.import_module("measure")


@pytest.fixture
def promises(measure: ModuleType) -> ModuleType:
    assert measure.__file__ is not None
    return importlib.import_module("promises")


def python(
    measure: ModuleType, program: str, check: Callable[[str], None] = lambda _: None, packets: int = 1, of_packets: int = 1
) -> Command:
    """Return a benchmark command that runs `program` as Python code."""
    command: Command = measure.Command("tool", "capture", (sys.executable, "-c", program), packets, of_packets, check)
    return command


def measured(measure: ModuleType, wall_s: float, peak_bytes: int = MIB, packets: int = 10_000_000) -> Measured:
    """Return a measurement with this wall time and this peak memory."""
    command = measure.Command("tool", "capture", (), packets, packets, lambda _: None)
    measurement: Measured = measure.Measured(command, [wall_s], [wall_s], [peak_bytes])
    return measurement


def test_peak_memory_and_time_are_those_of_the_child(measure: ModuleType) -> None:
    (found,) = measure.measure([python(measure, f"x = bytearray({200 * MIB}); x[::4096] = b'1' * len(x[::4096])")], 2, lambda _: None)
    assert found.works
    assert len(found.wall_s) == 2
    assert all(peak > 200 * MIB for peak in found.peak_bytes), "at most a few MiB more, but for the peak of this process itself"
    assert all(0 < cpu <= wall + 0.1 for cpu, wall in zip(found.cpu_s, found.wall_s, strict=True))


def test_commands_take_turns(measure: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = [python(measure, f"open({str(log)!r}, 'a').write({letter!r})") for letter in "ABC"]
    measure.measure(commands, 2, lambda _: None)
    assert log.read_text() == "ABC" * 3, "one warm-up and two counted rounds"


def test_a_failing_command_is_reported_with_its_last_words(measure: ModuleType) -> None:
    (found,) = measure.measure([python(measure, "raise SystemExit('no such capture')")], 3, lambda _: None)
    assert not found.works
    assert found.failure == "exit 1: no such capture"
    assert found.wall_s == []


def test_a_command_that_did_not_read_everything_is_not_measured(measure: ModuleType) -> None:
    peers = importlib.import_module("peers")
    capture = peers.Capture("mixed", Path("mixed.pcap"), 10, 2, 0, 0)
    check = next(command.check for command in peers.commands(capture, Path()) if command.tool == peers.TCPTRACE)
    program = "print('9 packets seen, 9 TCP packets traced'); print('2 TCP connections traced:')"
    (found,) = measure.measure([python(measure, program, check)], 1, lambda _: None)
    assert found.failure == "packets seen: 9, expected 10"


def test_the_time_of_a_prefix_is_scaled_to_the_whole(measure: ModuleType) -> None:
    command = python(measure, "", packets=1_000_000, of_packets=10_000_000)
    found = measure.Measured(command, wall_s=[2.0, 1.0, 9.0], cpu_s=[1.0], peak_bytes=[1])
    assert found.wall_median_s == pytest.approx(20.0)
    assert found.packets_per_s == pytest.approx(500_000)


def test_promises_are_judged_by_wall_time_of_the_frames(measure: ModuleType, promises: ModuleType) -> None:
    peers = importlib.import_module("peers")
    results = {
        ("mixed", peers.ENGINE_FRAMES): measured(measure, 1.0, peak_bytes=400 * MIB),
        ("mixed", peers.ENGINE_DRAIN): measured(measure, 0.5),
        ("mixed", peers.ANALYZE): measured(measure, 2.5, peak_bytes=1600 * 1_000_000),
        ("mixed", peers.TCPTRACE): measured(measure, 3.1),
        ("mixed", peers.TSHARK): measured(measure, 99.0),
        ("mixed", peers.WALK): measured(measure, 0.3),
    }
    verdicts = {verdict.promise: verdict.holds for verdict in promises.judge(results, 5_000_000)}
    assert verdicts == {
        "table >= 3 x tcptrace -lr": True,
        "table >= 100 x tshark, same fields": False,
        "table within 3 x of the bare walk": False,
        "analyze <= tcptrace -lr": True,
        "memory <= 1.5 GB": False,
        "memory <= 300 MB for 100 MB": None,
        "1 M connections >= 0.5 x rate of 1": None,
        "--help <= 0.2 s": None,
        "analyze of 1,000 packets <= 1.5 s": None,
        "small analyze <= 1.5 x tshark conv": None,
        "batch <= 1/3 of tshark, all cores": None,
        "report of 10 M packets <= 6 MB": True,
    }


@pytest.mark.parametrize(("kinds", "holds"), [(("mixed",), None), (("mixed", "full", "single", "short"), True)])
def test_memory_holds_only_when_every_capture_was_measured(
    measure: ModuleType, promises: ModuleType, kinds: tuple[str, ...], *, holds: bool | None
) -> None:
    peers = importlib.import_module("peers")
    results = {(kind, tool): measured(measure, 1.0) for kind in kinds for tool in peers.OURS}
    verdict = next(verdict for verdict in promises.judge(results, None) if verdict.promise == "memory <= 1.5 GB")
    assert verdict.holds is holds


@pytest.mark.parametrize(
    ("peaks_mb", "holds"),
    [({"mixed": 250}, None), ({"mixed": 250, "single": 250, "short": 250}, True), ({"mixed": 250, "short": 301}, False)],
)
def test_memory_for_100_mb_holds_only_when_it_does_for_one_connection_and_for_many(
    measure: ModuleType, promises: ModuleType, peaks_mb: dict[str, int], *, holds: bool | None
) -> None:
    peers = importlib.import_module("peers")
    results = {(peers.HUNDRED_MB[kind], peers.ANALYZE): measured(measure, 1.0, peak_bytes=mb * 1_000_000) for kind, mb in peaks_mb.items()}
    verdict = next(verdict for verdict in promises.judge(results, None) if "100 MB" in verdict.promise)
    assert verdict.holds is holds


def test_the_rate_of_many_connections_is_taken_without_the_start_of_the_process(measure: ModuleType, promises: ModuleType) -> None:
    peers = importlib.import_module("peers")
    results = {
        ("short", peers.ENGINE_DRAIN): measured(measure, 2.1),
        ("single", peers.ENGINE_DRAIN): measured(measure, 0.4, packets=3_000_000),
        (peers.START, peers.ENGINE_DRAIN): measured(measure, 0.1, packets=1000),
    }
    verdict = next(verdict for verdict in promises.judge(results, None) if "1 M connections" in verdict.promise)
    assert verdict.measured == "0.50 (5.0 of 10.0 M/s)"
    assert verdict.holds


@pytest.mark.parametrize(("small_s", "batch_s", "hold"), [(0.75, 10.0, (True, True)), (0.76, 10.1, (False, False))])
def test_small_captures_are_held_against_tsharks_conversations(
    measure: ModuleType, promises: ModuleType, small_s: float, batch_s: float, hold: tuple[bool, bool]
) -> None:
    peers, small_captures = importlib.import_module("peers"), importlib.import_module("small_captures")
    results = {
        ("small", peers.ANALYZE): measured(measure, small_s),
        ("small", small_captures.TSHARK_CONVERSATIONS): measured(measure, 0.5),
        ("batch", small_captures.BATCH_TABLES): measured(measure, batch_s),
        ("batch", small_captures.TSHARK_LOOP): measured(measure, 30.0),
    }
    verdicts = [verdict for verdict in promises.judge(results, None) if "tshark" in verdict.promise and verdict.measured]
    assert tuple(verdict.holds for verdict in verdicts) == hold


def test_copies_of_captures_differ_in_their_times(measure: ModuleType, tmp_path: Path) -> None:
    assert measure.__file__ is not None
    needs.program("editcap")
    made = importlib.import_module("small_captures").copies(tmp_path)
    assert len(made) >= 2 * 50
    assert len({path.read_bytes() for path in made}) == len(made), "batch analyzes equal files once"


def test_a_stage_may_take_five_percent_more_instructions_than_its_figure(measure: ModuleType) -> None:
    assert measure.__file__ is not None
    instructions = importlib.import_module("instructions")
    figures = {"segments": 1000, "accounts": 2000}
    assert instructions.compared(figures, {"segments": 1049.0, "accounts": 1500.0}) == []
    assert instructions.compared(figures, {"segments": 1051.0}) == ["segments: 1,051 instructions per packet, +5.1% of 1,000"]
    assert instructions.compared(figures, {"ledger": 1.0}) == ["ledger: no figure to compare with; make instructions"]


@pytest.mark.parametrize(("variables", "status"), [({}, 0), ({"CI": "true"}, 1)])
def test_without_valgrind_nothing_is_counted_and_ci_says_so(variables: dict[str, str], status: int) -> None:
    environment = {"PATH": "/nowhere"} | variables
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "instructions.py")], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (status, "instructions are not counted: valgrind is not installed\n")


def test_the_engine_reads_all_of_a_made_capture_and_the_table_fits_a_terminal(tmp_path: Path) -> None:
    small = ("--quick", "--only", "short", "--tools", "engine", "--runs", "1", "--data", str(tmp_path), "--results", str(tmp_path))
    done = subprocess.run([sys.executable, str(BENCHMARKS / "run.py"), *small], capture_output=True, text=True, check=True)
    kept = json.loads((tmp_path / "latest.json").read_text())
    assert {row["tool"]: (row["failure"], len(row["wall_s"])) for row in kept["measured"]} == {
        "engine, drained": (None, 1),
        "engine, Polars frames": (None, 1),
        "engine, small frames": (None, 1),
        "engine, everything": (None, 1),
    }
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert (tmp_path / "latest.txt").read_text() == done.stdout
