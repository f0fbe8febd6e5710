"""Each capture of an archive is opened only once, and opening does not block the pages of the archive.

The explorer stops opening a capture if other captures displace it.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import shutil
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab.view import explorer
from tcptrace_lab.view.archive_api import OPEN_CAPTURES, ArchiveApi
from tcptrace_lab.view.cached import cache
from tests.support.command import new_process
from tests.support.packets import capture

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

CAPTURES = OPEN_CAPTURES + 1
WAIT_S = 20


@pytest.fixture(name="root", scope="module")
def _root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opening")
    (folder / "captures").mkdir()
    for number in range(CAPTURES):
        capture(folder / "captures" / f"{number}.pcap", f"0 C > S S {number}:{number} win 1000\n1 C > S S {number}:{number} win 1000")
    assert new_process("batch", folder / "captures", "-o", folder / "archive", "-q").returncode == 0
    return folder / "archive"


def names(archive: ArchiveApi) -> list[str]:
    return [row["capture_id"] for row in archive.captures({})["rows"]]


def together(count: int, work: Callable[[], object]) -> list[object]:
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(work())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    return results


def test_a_capture_is_built_once_for_all_who_ask(root: Path) -> None:
    built: list[Sequence[str]] = []

    def slow(paths: Sequence[str]) -> Any:  # noqa: ANN401  (stands for a CaptureApi)
        built.append(paths)
        threading.Event().wait(0.2)
        return object()

    archive = ArchiveApi(str(root), slow)
    [name, *_] = names(archive)
    results = together(6, lambda: archive.capture(name))
    assert len(built) == 1
    assert len(results) == 6
    assert len({id(result) for result in results}) == 1


def test_the_archive_answers_while_a_capture_is_being_built(root: Path) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def endless(_: Sequence[str]) -> Any:  # noqa: ANN401  (stands for a CaptureApi)
        begun.set()
        may_end.wait(WAIT_S)
        return object()

    archive = ArchiveApi(str(root), endless)
    [name, *_] = names(archive)
    builder = threading.Thread(target=archive.capture, args=(name,))
    builder.start()
    assert begun.wait(WAIT_S)
    assert together(1, lambda: archive.overview()["captures"]) == [CAPTURES]
    may_end.set()
    builder.join(WAIT_S)


def test_after_a_failure_a_capture_can_be_opened(root: Path) -> None:
    answers: list[Any] = [object(), OSError("disk full")]

    def once(_: Sequence[str]) -> Any:  # noqa: ANN401  (stands for a CaptureApi)
        answer = answers.pop()
        if isinstance(answer, OSError):
            raise answer
        return answer

    archive = ArchiveApi(str(root), once)
    [name, *_] = names(archive)
    with pytest.raises(OSError, match="disk full"):
        archive.capture(name)
    assert archive.capture(name) is archive.capture(name)


def locked(folder: Path) -> bool:
    """Return whether a lock keeps the tables in `folder` from being removed."""
    with (folder / "lock").open("r+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_tables_of_a_capture_that_made_room_are_no_longer_locked(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with contextlib.ExitStack() as stack:
        archive = ArchiveApi(str(root), explorer.Opener(stack, datetime.now(UTC)).capture)
        for name in names(archive):
            archive.capture(name)
        gc.collect()
        states = [locked(folder) for folder in cache.root().iterdir()]
        assert sorted(states) == [False] + OPEN_CAPTURES * [True]
    assert not any(locked(folder) for folder in cache.root().iterdir())
    shutil.rmtree(tmp_path / "tcptrace-lab")
