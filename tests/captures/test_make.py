"""`captures/make.py` makes the captures that it lists and says what it needs. If it is stopped, it leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import needs
from tests.support.places import CAPTURES

sys.path.insert(0, str(CAPTURES))

import figures
import make
from _scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def root() -> None:
    """Skip the test if it does not run as root, because captures are made between network namespaces."""
    needs.root()


def test_make_needs_root_and_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert make.main(["loopback-bulk"]) == make.EXIT_USAGE
    words = capsys.readouterr()
    assert (words.out, words.err.count("\n")) == ("", 1)
    assert "needs root" in words.err


def test_make_lists_every_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert make.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(SCENARIOS)


@pytest.mark.usefixtures("root")
def test_make_remakes_captures(tmp_path: Path) -> None:
    names = ["loopback-nagle-off", "ethernet-tail-loss"]
    done = subprocess.run([sys.executable, CAPTURES / "make.py", *names, "-o", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [figures.stem(path) for path in figures.captures(tmp_path)] == sorted(names)
    for path in figures.captures(tmp_path):
        segments = figures.frames(path)
        (connection,) = json.loads(path.with_name(f"{figures.stem(path)}.json").read_text())["connections"]
        info = connection["client"]["tcp_info"]
        # TCP_INFO was read before the close, so it does not count the FIN and the last ACK.
        sent = [segment for segment in segments if segment.source_port >= figures.FIRST_CLIENT_PORT]
        assert len(sent) == info["tcpi_segs_out"] + 2
        assert figures.payload_bytes(segments, from_client=True) == info["tcpi_bytes_sent"]


@pytest.mark.usefixtures("root")
def test_make_leaves_nothing_behind_when_it_is_asked_to_end(tmp_path: Path) -> None:
    command = [sys.executable, str(CAPTURES / "make.py"), "ethernet-keepalive", "-o", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)}) as process:
        dumpcap = next(children(process.pid))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert not Path(f"/proc/{dumpcap}").exists()
    assert list(tmp_path.iterdir()) == []


def children(parent: int) -> Iterator[int]:
    """Wait until `parent` has child processes that run dumpcap, and yield them."""
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            with suppress(FileNotFoundError, ProcessLookupError):
                if Path(f"/proc/{child}/comm").read_text().strip() == "dumpcap":
                    yield int(child)
        time.sleep(0.01)
    raise TimeoutError("dumpcap did not start")
