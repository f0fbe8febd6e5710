"""One program over one path, live: all files are there, the kernel's ledger agrees with what was done, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from tcptrace_lab.errors import LabFailed, MissingTool
from tcptrace_lab.lab.corpus import making, manifest
from tcptrace_lab.lab.corpus.drawn import Drawn
from tcptrace_lab.lab.corpus.judging import judge
from tcptrace_lab.lab.corpus.programs import PROGRAMS
from tcptrace_lab.lab.corpus.programs.program import Program
from tcptrace_lab.lab.kernel_ledger import build
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
    """Needs nothing that is not installed: 20,000 bytes every 50 ms for a second, by the lab's own sampler."""
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


def _command(path: Path) -> str:
    try:
        return (path / "cmdline").read_text()
    except OSError:
        return ""
