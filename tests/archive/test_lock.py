"""Only one run at a time writes to an archive at a URL.

A run first announces itself, and then it looks for the announcements of other runs. If two runs start together, at least one of them
withdraws.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.archive.storage import Folder, Remote
from tcptrace_lab.archive.work import lock
from tcptrace_lab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Meeting(Remote):
    """An archive at a URL.

    It calls `meanwhile` once: after a run has announced itself, and before the run looks for other runs.
    """

    def __init__(self, root: str, meanwhile: Callable[[], None]) -> None:
        super().__init__(root)
        self._meanwhile = [meanwhile]

    def names(self, folder: str) -> dict[str, int]:
        """Call `meanwhile` the first time, then list the folder."""
        if self._meanwhile:
            self._meanwhile.pop()()
        return super().names(folder)


@pytest.fixture
def root(tmp_path: Path) -> str:
    """The URL of an archive in the memory of this process."""
    return f"memory://{tmp_path}"


def announced(root: str) -> list[str]:
    return list(Remote(root).names(lock.ANNOUNCED))


def test_a_second_run_behind_a_url_is_refused_with_the_holder_named(root: str) -> None:
    with (
        lock.hold_lock(Remote(root)),
        pytest.raises(UsageError, match=r"another run writes this archive") as reported,
        lock.hold_lock(Remote(root)),
    ):
        pass
    assert "process" in str(reported.value)
    assert announced(root) == []
    with lock.hold_lock(Remote(root)):
        assert len(announced(root)) == 1


def test_a_run_that_comes_while_another_looks_withdraws_until_that_has_decided(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run sees the announcement of the first run and withdraws. This happens before the first run looks for other runs.

    So the first run gets the lock.
    """
    monkeypatch.setattr(lock, "ATTEMPTS", 1)
    refused = []

    def rival() -> None:
        try:
            with lock.hold_lock(Remote(root)):
                pass
        except UsageError as error:
            refused.append(error)

    with lock.hold_lock(Meeting(root, rival)):
        assert len(refused) == 1
        assert len(announced(root)) == 1


def test_two_that_see_each_other_both_withdraw_and_the_next_attempt_decides(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run finds the announcement of a second run and withdraws.

    When the second announcement has been removed, the first run gets the lock.
    """
    asking = json.dumps({"host": "h", "process": 1, "since": "now", "renewed": time.time(), "holds": False}).encode()
    at_door = f"{lock.ANNOUNCED}/other"
    waited = []

    def wait(_: float) -> None:
        waited.append(announced(root))
        Remote(root).remove(at_door)

    monkeypatch.setattr("time.sleep", wait)
    with lock.hold_lock(Meeting(root, lambda: Remote(root).write(at_door, asking))):
        assert waited == [[at_door]], "while it waits it does not stand in the other's way"
        assert at_door not in announced(root)


def test_however_many_start_at_once_no_two_are_in(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "PAUSE_S", 0.01)
    inside, most, start = [0], [0], threading.Barrier(8)
    counting = threading.Lock()

    def run() -> None:
        start.wait()
        try:
            with lock.hold_lock(Remote(root)):
                with counting:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                with counting:
                    inside[0] -= 1
        except UsageError:
            pass

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] <= 1
    assert announced(root) == []


def test_a_run_that_was_killed_holds_nobody_for_long(root: str) -> None:
    """A lock counts as abandoned if it was last renewed 90 seconds ago."""
    reported = {"host": "h", "process": 7, "since": "then", "renewed": time.time() - lock.STALE_S, "holds": True}
    Remote(root).write(f"{lock.ANNOUNCED}/dead", json.dumps(reported).encode())
    with lock.hold_lock(Remote(root)):
        assert len(announced(root)) == 1
    Remote(root).write(f"{lock.ANNOUNCED}/alive", json.dumps({**reported, "renewed": time.time() - 50}).encode())
    with ExitStack() as stack, pytest.raises(UsageError, match=r"process 7 on h, since then.*holds the archive for (39|40) s more"):
        stack.enter_context(lock.hold_lock(Remote(root)))


def test_what_holds_the_lock_renews_it(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "RENEW_S", 0.001)
    renewed = threading.Event()
    write = Remote.write

    def noted(self: Remote, name: str, data: bytes) -> None:
        write(self, name, data)
        if threading.current_thread().name == "lock":
            renewed.set()

    monkeypatch.setattr(Remote, "write", noted)
    with lock.hold_lock(Remote(root)):
        assert renewed.wait(60)
    assert announced(root) == []


def test_the_holder_of_a_folder_is_named_also_when_it_says_so_a_moment_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has locked a folder, but its lock file is still empty. The run writes this file while a second run checks for locks."""
    place = Folder(str(tmp_path))
    with lock.hold_lock(place):
        file = tmp_path / lock.LOCK
        said = file.read_text(encoding="utf-8")
        file.write_text("", encoding="utf-8")
        monkeypatch.setattr("time.sleep", lambda _: file.write_text(said, encoding="utf-8"))
        with pytest.raises(UsageError, match=rf"process {os.getpid()} on "), lock.hold_lock(place):
            pass
    assert file.read_text(encoding="utf-8") == "", "who let it go is named no more"
