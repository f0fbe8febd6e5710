"""One live transfer: all files exist, the kernel's ledger agrees with the program, and no process or file is left over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tcptrace_lab.engine.segments import read
from tcptrace_lab.errors import LabFailed, MissingTool
from tcptrace_lab.lab.corpus import making, manifest
from tcptrace_lab.lab.corpus.drawn import Drawn
from tcptrace_lab.lab.corpus.judging import judge
from tcptrace_lab.lab.corpus.programs import PROGRAMS
from tcptrace_lab.lab.corpus.programs.program import Program
from tcptrace_lab.lab.kernel_ledger import build
from tcptrace_lab.lab.kernel_ledger.agreement import capture_of
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import PathModel

pytestmark = pytest.mark.live

SINK = "{python} -c 'import socket; one = socket.create_server((\"{address}\", {port})).accept()[0]\nwhile one.recv(65536): pass'"
PATH = PathModel(0.010)


@pytest.fixture(autouse=True, scope="module")
def _can_trace() -> None:
    try:
        build.tracer()
    except (MissingTool, LabFailed) as error:
        pytest.skip(str(error))


def test_a_program_on_a_clock_is_recorded_at_three_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lab's own program writes 20,000 bytes every 50 ms for a second, so no other program needs to be installed."""
    clock = Program("clock", SINK, "{python} {here}/sampler.py {address} {port} 20000 50 1")
    monkeypatch.setitem(PROGRAMS, "clock", clock)
    drawn = Drawn("clock", 0, 0, "clock", "short", Medium("tap", 1_500, forward=PATH, backward=PATH), "cubic", None)
    before = set(Path("/proc").glob("[0-9]*"))
    entry = making.make_one(drawn, tmp_path / "clock")
    jsonschema.validate(entry, manifest.SCHEMA)
    assert entry["is_complete"]
    assert len(set(entry["frames"].values())) == 1
    judged = judge(tmp_path, entry)
    assert not judged.error
    for at in ("sender", "middle", "receiver"):
        own_turn_ns = sum(ns for key, ns in judged.sums.items() if key.at == at and key.gates == "own-turn")
        assert own_turn_ns > 0.8e9 * 0.5
    left = [path for path in set(Path("/proc").glob("[0-9]*")) - before if "sampler" in _command(path)]
    assert not left


def test_programs_of_other_hosts_over_the_same_bottleneck_are_in_the_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two other programs share the bottleneck with the clock program.

    One of them writes to another host, and the other writes to another port. All three programs end within two seconds.
    """
    for name, every_ms in (("clock", 50), ("beside", 20)):
        monkeypatch.setitem(PROGRAMS, name, Program(name, SINK, f"{{python}} {{here}}/sampler.py {{address}} {{port}} 20000 {every_ms} 1"))
    beside = (("beside", True), ("beside", False))
    path = replace(PATH, rate_bps=20_000_000, queue_bytes=200_000)
    drawn = Drawn("clock", 0, 0, "clock", "short", Medium("tap", 1_500, forward=path, backward=path), "cubic", None, beside)
    entry = making.make_one(drawn, tmp_path / "clock")
    jsonschema.validate(entry, manifest.SCHEMA)
    assert entry["competing"] == [{"program": "beside", "is_other_host": True}, {"program": "beside", "is_other_host": False}]
    for point in ("client", "middle", "server"):
        connections = read(capture_of(tmp_path / "clock", point), worth=()).connections
        servers = connections.select("server_addr", "server_port").collect().rows()
        assert sorted(servers) == [("192.0.2.10", 8_100), ("192.0.2.2", 8_000), ("192.0.2.2", 8_101)]
    assert not judge(tmp_path, entry).error


def _command(path: Path) -> str:
    try:
        return (path / "cmdline").read_text()
    except OSError:
        return ""
