"""`batch --watch` adds each file of a ring buffer once, as soon as the file is closed.

The results stay in the archive after the ring buffer deletes the file.
"""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

from tcptrace_lab.archive.ring_buffer import watch
from tcptrace_lab.archive.sources.completeness import SETTLED_S, Closed
from tests.support.captures import archives
from tests.support.command import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tcptrace_lab.archive.run import Batch


def test_a_file_that_somebody_writes_is_not_closed(tmp_path: Path) -> None:
    path = archives.capture(tmp_path / "one.pcap", 1)
    with path.open("ab"):
        assert Closed().of([str(path)]) == []
    assert Closed().of([str(path)]) == [str(path)]


def test_where_the_kernel_does_not_report_it_the_next_file_closes_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcptrace_lab.archive.sources.completeness._is_written", lambda _: None)
    ring = [str(archives.capture(tmp_path / f"net_{number:05}_2026112106{number:02}00.pcap", number)) for number in (1, 2)]
    assert Closed().of(ring) == ring[:1]


def test_where_nothing_reports_it_a_file_is_closed_when_it_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcptrace_lab.archive.sources.completeness._is_written", lambda _: None)
    now = 0.0
    closed = Closed(clock=lambda: now)
    path = archives.capture(tmp_path / "one.pcap", 1)
    assert closed.of([str(path)]) == []
    now = SETTLED_S
    with path.open("ab") as file:
        file.write(b"more")
    assert closed.of([str(path)]) == []
    now = 2 * SETTLED_S
    assert closed.of([str(path)]) == [str(path)]


def never_ended() -> Closed:
    """Return a rule that never considers the ring buffer ended.

    On a slow machine, the default rule would consider the ring buffer ended too early.
    """
    return Closed(now=lambda: 0.0)


def test_a_ring_is_taken_in_file_by_file_and_stays_when_its_first_are_gone(tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    ring.mkdir()
    names = [ring / f"net_{number:05}_2026112106{number:02}00.pcap" for number in range(1, 5)]
    steps: list[Callable[[], object]] = [
        lambda: archives.capture(names[0], 1),
        lambda: archives.capture(names[1], 2),
        names[0].unlink,
        lambda: archives.capture(names[2], 3),
    ]

    def step() -> bool:
        if steps:
            steps.pop(0)()
        else:
            return False
        return True

    reported = watch([str(ring)], str(tmp_path / "out"), means=archives.ONE, reports=False, closed=never_ended(), pause=step)
    assert reported.captures["path"].sort().to_list() == [str(path) for path in names[:3]]
    assert reported.made == 3
    assert set(reported.captures["state"]) == {"whole"}


def ended_ring(folder: Path, *, gone: int = 0, apart: bool = False) -> Batch:
    """Watch a ring of three files that appear one by one. The first `gone` files are deleted before the ring ends."""
    ring = folder / "ring"
    ring.mkdir(parents=True)
    names = [ring / f"net_{number:05}_2026112106{number:02}00.pcap" for number in (1, 2, 3)]
    now = [0.0]
    steps: list[Callable[[], object]] = [
        *(lambda name=name, number=number: archives.capture(name, number, hours=number) for number, name in enumerate(names)),
        *(name.unlink for name in names[:gone]),
        lambda: now.__setitem__(0, max(name.stat().st_mtime for name in names[gone:]) + SETTLED_S),
        lambda: None,
    ]

    def step() -> bool:
        if steps:
            steps.pop(0)()
            return True
        return False

    closed = Closed(now=lambda: now[0])
    return watch([str(ring)], str(folder / "out"), means=archives.ONE, reports=False, apart=apart, closed=closed, pause=step)


def test_a_ring_that_has_ended_is_one_capture_in_place_of_its_files_as_batch_would_take_it(tmp_path: Path) -> None:
    reported = ended_ring(tmp_path)
    assert reported.made == 4, "each file as it came, and all as one"
    assert reported.captures["connections"].to_list() == [3]
    assert set(reported.named) == set(reported.captures["capture"])
    archives.made(tmp_path / "ring", tmp_path / "at-once")
    assert archives.tables(tmp_path / "out") == archives.tables(tmp_path / "at-once")
    again = watch([str(tmp_path / "ring")], str(tmp_path / "out"), means=archives.ONE, reports=False, pause=lambda: False)
    assert (again.made, again.captures.height) == (0, 1)


def test_of_a_ring_that_has_ended_what_was_thrown_away_stays_by_itself(tmp_path: Path) -> None:
    reported = ended_ring(tmp_path, gone=1)
    assert reported.captures["connections"].sort().to_list() == [1, 2]


def test_files_of_a_ring_stay_apart_where_that_is_asked_for(tmp_path: Path) -> None:
    reported = ended_ring(tmp_path, apart=True)
    assert reported.captures["connections"].to_list() == [1, 1, 1]


def test_a_ring_that_ended_long_ago_is_taken_in_as_one_at_once(tmp_path: Path) -> None:
    for number in (1, 2):
        path = archives.capture(tmp_path / f"net_{number:05}_2026112106{number:02}00.pcap", number)
        os.utime(path, (0, 0))
    reported = watch([str(tmp_path)], str(tmp_path / "out"), means=archives.ONE, reports=False, pause=lambda: False)
    assert (reported.made, reported.captures.height) == (1, 1)


def test_a_name_that_a_ring_uses_again_is_another_capture_and_the_first_stays(tmp_path: Path) -> None:
    path = archives.capture(tmp_path / "net.pcap0", 1)
    steps: list[Callable[[], object]] = [lambda: archives.capture(path, 2)]

    def step() -> bool:
        if steps:
            steps.pop(0)()
            return True
        return False

    reported = watch([str(tmp_path)], str(tmp_path / "out"), means=archives.ONE, reports=False, pause=step)
    assert reported.captures.height == 2


def test_watching_ends_well_by_ctrl_c(tmp_path: Path) -> None:
    ring, output = tmp_path / "ring", tmp_path / "out"
    ring.mkdir()
    archives.capture(ring / "one.pcap", 1)
    command: list[str | Path] = [PROGRAM, "batch", "--watch", ring, "-o", output, "--jobs", "1", "--no-reports"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as running:
        archives.until((output / "index.html").exists)
        os.killpg(running.pid, signal.SIGINT)
        _, stderr = running.communicate(timeout=archives.PATIENCE_S)
    assert running.returncode == 0, stderr
    assert b"1 capture: 1 whole" in stderr
    assert len(archives.parts(output)) == 1
    assert not (output / "tmp").exists()


def test_watching_ends_after_so_many_captures(tmp_path: Path) -> None:
    for number in range(2):
        archives.capture(tmp_path / f"{number}.pcap", number)
    reported = watch([str(tmp_path)], str(tmp_path / "out"), means=archives.ONE, reports=False, stop_after=2, pause=lambda: True)
    assert reported.made == 2
