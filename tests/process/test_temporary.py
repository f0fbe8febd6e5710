"""A process removes its temporary folder when it ends or is interrupted.

If a process is killed, its folder stays until another process makes a temporary folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.errors import OutputUnwritable
from tcptrace_lab.process import temporary
from tests.support.command import PROGRAM, TIME_LIMIT_S, only_line
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Iterator


LITTLE_BYTES = 2_000
"""A limit on file sizes in bytes. The lock file of a folder is smaller, and a capture is larger."""

MAKES_ONE = """
from pathlib import Path
from tcptrace_lab.process import temporary
with temporary.folder() as folder:
    Path(folder, "capture").write_text("long")
    Path(folder, "deeper", "still").mkdir(parents=True)
    print(folder, flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary folders are made during the test."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def started() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", MAKES_ONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def made(process: subprocess.Popen[str]) -> Path:
    """Wait until the process has made its temporary folder, and return this folder."""
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


@contextlib.contextmanager
def another() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Yield another process and its temporary folder. The process ends together with the `with` block."""
    with started() as process:
        yield process, made(process)
        process.communicate("\n", timeout=TIME_LIMIT_S)


def killed(count: int) -> list[Path]:
    """Start `count` processes together and kill them all. Return their temporary folders."""
    with contextlib.ExitStack() as stack:
        all_of_them = [stack.enter_context(another()) for _ in range(count)]
        for process, _ in all_of_them:
            process.kill()
            process.wait(TIME_LIMIT_S)
    return [folder for _, folder in all_of_them]


def test_a_folder_goes_with_its_block(place: Path) -> None:
    with temporary.folder() as folder:
        (Path(folder) / "deeper").mkdir()
        (Path(folder) / "deeper" / "link").symlink_to(place)
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next(place: Path) -> None:
    (left,) = killed(1)
    assert (left / "capture").read_text() == "long"
    with another() as (_, folder):
        assert list(place.iterdir()) == [folder]
    assert list(place.iterdir()) == []


def test_a_folder_stays_while_its_process_lives(place: Path) -> None:
    with another() as (_, one), another() as (_, two):
        assert sorted(place.iterdir()) == sorted([one, two])
        assert (one / "capture").read_text() == "long"


def test_a_folder_stays_while_a_child_of_a_killed_process_lives(place: Path) -> None:
    """The child possibly still uses the folder."""
    forking = MAKES_ONE.replace("    print(", "    import os\n    if os.fork():\n        os.kill(os.getpid(), 9)\n    print(")
    with subprocess.Popen([sys.executable, "-c", forking], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())  # printed by the child
        process.wait(TIME_LIMIT_S)
        temporary.clear(str(place))
        assert (left / "capture").exists()
        process.communicate("\n", timeout=TIME_LIMIT_S)  # the child ends
    assert list(place.iterdir()) == []


def test_folders_that_nobody_locks_but_that_are_not_ours_stay(place: Path) -> None:
    """A user's folder, a copied folder, a renamed folder, an unfinished folder, and a file must stay."""
    (left,) = killed(1)
    mine, copied, renamed, begun = (place / f"{temporary.PREFIX}{name}" for name in ("captures", "copied", "renamed", "begun"))
    mine.mkdir()
    (mine / "precious.pcap").touch()
    shutil.copytree(left, copied)
    left.rename(renamed)
    begun.mkdir()
    (begun / temporary.LOCK).touch()
    (place / f"{temporary.PREFIX}file").touch()
    before = sorted(place.rglob("*"))
    temporary.clear(str(place))
    assert sorted(place.rglob("*")) == before


def test_links_are_not_followed(place: Path, tmp_path: Path) -> None:
    """There are three symbolic links: in place of a folder, in place of a lock file, and inside of a folder that is removed."""
    (left,) = killed(1)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (left / "link").symlink_to(precious)
    elsewhere = tmp_path / f"{temporary.PREFIX}elsewhere"
    elsewhere.mkdir()
    (elsewhere / temporary.LOCK).write_text(elsewhere.name)
    (place / elsewhere.name).symlink_to(elsewhere)
    locked = place / f"{temporary.PREFIX}locked"
    locked.mkdir()
    (tmp_path / "lock").write_text(locked.name)
    (locked / temporary.LOCK).symlink_to(tmp_path / "lock")
    fifo = place / f"{temporary.PREFIX}fifo"
    fifo.mkdir()
    os.mkfifo(fifo / temporary.LOCK)
    temporary.clear(str(place))
    assert sorted(place.iterdir()) == sorted([fifo, locked, place / elsewhere.name])
    assert (precious / "file").exists()
    assert (elsewhere / temporary.LOCK).exists()


def test_what_another_user_left_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root is able to remove another user's folder, but must not do it."""
    left = killed(1)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    temporary.clear(str(place))
    assert list(place.iterdir()) == left


def test_many_that_clear_at_once_remove_what_is_left_and_nothing_else(place: Path) -> None:
    """Each process keeps its folder until all processes have made theirs."""
    left = killed(3)
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(started()) for _ in range(6)]
        folders = [made(process) for process in processes]
        assert sorted(place.iterdir()) == sorted(folders)
        assert all((folder / "capture").read_text() == "long" for folder in folders)
        for process in processes:
            process.communicate("\n", timeout=TIME_LIMIT_S)
            assert process.returncode == 0
    assert not set(left) & set(folders)
    assert list(place.iterdir()) == []


def test_a_place_that_cannot_be_written_is_reported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = str(place / "missing")
    monkeypatch.setattr(tempfile, "tempdir", missing)
    with pytest.raises(OutputUnwritable) as refusal, temporary.folder():
        pass
    assert str(refusal.value) == f"cannot write: No such file or directory: {missing}; set TMPDIR to a directory with room"


@pytest.mark.parametrize(
    "command",
    [
        ["replay", "whatif", CAPTURES / "ethernet-small-receive-window.pcapng"],
        ["replay", "script", CAPTURES / "ethernet-small-receive-window.pcapng"],
        ["replay", "packets", CAPTURES / "ethernet-offload-bulk.pcapng.gz", "-i", "lo", "--dry-run"],
    ],
    ids=["what-if", "script", "frames"],
)
def test_a_command_without_room_for_temporary_files_says_so_and_leaves_none(command: list[str | Path], place: Path, tmp_path: Path) -> None:
    """A limit on file sizes simulates a full disk."""
    done = subprocess.run(
        ["prlimit", f"--fsize={LITTLE_BYTES}", PROGRAM, *command, "-q"],
        cwd=tmp_path,
        capture_output=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert only_line(done.stderr) == "tcptrace-lab: cannot write: File too large: temporary files; set TMPDIR to a directory with room"
    assert list(place.iterdir()) == []
