"""Valid entries of the cache of tables are found again, and invalid entries are removed."""

from __future__ import annotations

import os
import signal
import stat
import time
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from tcptrace_lab.errors import CaptureUnreadable, UsageError
from tcptrace_lab.view.cached import cache
from tcptrace_lab.view.cached.by_connection import Reader, Shares, Writer
from tests.support import explorer
from tests.support.command import new_process, only_line
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CAPTURE = ROOT / "captures" / "atm9180-loss.pcap"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _builder(calls: list[Path], size_bytes: int = 10) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        calls.append(folder)
        (folder / cache.DONE).write_bytes(b"x" * size_bytes)

    return build


def test_tables_are_made_once_for_a_capture_and_again_after_a_change(tmp_path: Path) -> None:
    file = tmp_path / "a.pcap"
    file.write_bytes(b"one")
    calls: list[Path] = []
    for _ in range(2):
        with cache.opened(cache.capture_of([str(file)]), _builder(calls)) as folder:
            assert (folder / cache.DONE).exists()
    assert len(calls) == 1
    file.write_bytes(b"two")
    with cache.opened(cache.capture_of([str(file)]), _builder(calls)):
        pass
    assert len(calls) == 2


def test_only_its_owner_can_read_the_cache(tmp_path: Path) -> None:
    assert stat.S_IMODE(cache.root().stat().st_mode) == 0o700
    (tmp_path / "cache/tcptrace-lab/view").chmod(0o755)
    assert stat.S_IMODE(cache.root().stat().st_mode) == 0o700


def test_the_oldest_tables_go_first_and_those_in_use_stay(tmp_path: Path) -> None:
    captures = []
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode())
        captures.append(cache.capture_of([str(tmp_path / name)]))
    first, second, third = captures
    with cache.opened(first, _builder([], 600), 1_000) as in_use:
        os.utime(in_use, (0, 0))
        with cache.opened(second, _builder([], 300), 1_000):
            pass
        with cache.opened(third, _builder([], 300), 1_000) as newest:
            assert sorted(one.name for one in newest.parent.iterdir()) == sorted([first.key, third.key])


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")

    def fails(folder: Path) -> None:
        (folder / "half").write_bytes(b"half")
        raise CaptureUnreadable("no")

    with pytest.raises(CaptureUnreadable), cache.opened(cache.capture_of([str(tmp_path / "a")]), fails):
        pass
    assert not list(cache.root().iterdir())


def test_a_pipe_is_refused() -> None:
    with pytest.raises(UsageError, match="standard input"):
        cache.capture_of(["-"])


@pytest.mark.parametrize("file_rows", [1, 3, 10, 1_000])
def test_rows_by_connection_are_those_that_came(tmp_path: Path, file_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcptrace_lab.view.cached.by_connection._HELD_ROWS", 7)
    monkeypatch.setattr("tcptrace_lab.view.cached.by_connection.FILE_ROWS", file_rows)
    conns = np.random.default_rng(1).integers(0, 9, 200).astype(np.uint32)
    conns[conns == 4] = 5  # connection 4 has no rows
    rows = pl.DataFrame({"conn": conns, "place": range(200)})
    writer = Writer(tmp_path, "t", dict(rows.schema), Shares.by_rows(np.bincount(conns, minlength=10).astype(np.int64), file_rows))
    for piece in rows.iter_slices(11):
        writer.add(piece)
    writer.finish()
    reader = Reader(tmp_path, "t")
    for conn in range(11):
        assert reader.of(conn).collect().equals(rows.filter(pl.col("conn") == conn)), conn
    assert not list(tmp_path.glob("*.waiting"))


def test_the_second_view_reads_the_tables_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "cache/tcptrace-lab/view"
    made = []
    for _ in range(2):
        with explorer.exploring(CAPTURE, cache=tmp_path / "cache") as found:
            assert found.get("api/capture")["packets"] == 167
        (tables,) = [one for one in folder.iterdir() if one.is_dir()]
        made.append((tables / cache.DONE).stat().st_mtime_ns)
    assert made[0] == made[1]


def test_an_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    with explorer.exploring(CAPTURE, cache=tmp_path / "cache") as found:
        found.ask("api/capture")
        begin_s = time.monotonic()
        found.process.send_signal(signal.SIGINT)
        assert found.process.wait(5) == 130
        assert time.monotonic() - begin_s < 2


def test_it_ends_when_nobody_asks(tmp_path: Path) -> None:
    with explorer.exploring(CAPTURE, "--idle", "1s", cache=tmp_path / "cache") as found:
        assert found.process.wait(10) == 0


@pytest.mark.parametrize(("arguments", "code"), [(("--idle", "soon"), 2), (("--port", "70000"), 2), (("nothing.pcap",), 3)])
def test_wrong_use_is_one_line(arguments: tuple[str, ...], code: int) -> None:
    capture = () if arguments[0].endswith(".pcap") else (CAPTURE,)
    done = new_process("view", *capture, *arguments, "--no-browser")
    assert done.returncode == code
    assert only_line(done.stderr)


def test_without_its_packages_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['uvicorn'] = None\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = new_process("view", CAPTURE, "--no-browser", environment={"PYTHONPATH": path})
    assert done.returncode == 5
    assert "pip install 'tcptrace-lab[view]'" in only_line(done.stderr)
