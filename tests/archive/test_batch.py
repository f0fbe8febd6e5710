"""The tables of an archive depend only on its captures. The tables are equal after a run that fails, is repeated or is killed."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab import analysis, analyze
from tcptrace_lab.archive import fingerprint
from tcptrace_lab.archive.dataset import query
from tcptrace_lab.archive.run import Means, batch
from tcptrace_lab.archive.storage import at
from tcptrace_lab.archive.work import lock, workers
from tcptrace_lab.archive.work.task import Analyze, WriteTable
from tcptrace_lab.errors import OutputUnwritable, UsageError
from tests.support import needs
from tests.support.captures import archives
from tests.support.command import PROGRAM, new_process, only_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcptrace_lab.archive.work.task import Result, Task


def is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with captures and other files.

    It has twelve captures, a copy of one of them, a truncated copy of another, a file that is not a capture, and a note.
    """
    folder = archives.folder_of(tmp_path_factory.mktemp("captures") / "in", 12)
    shutil.copy(folder / "c03.pcap", folder / "same.pcap")
    whole = (folder / "c05.pcap").read_bytes()
    (folder / "cut.pcap").write_bytes(whole[:-20])
    (folder / "none.pcap").write_bytes(b"this is no capture at all, whatever it is called")
    (folder / "note.txt").write_text("from Monday")
    return folder


@pytest.fixture(scope="module")
def undisturbed(twelve: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of the folder `twelve`, made by one run without interruption."""
    output = tmp_path_factory.mktemp("archive") / "out"
    archives.made(twelve, output)
    return output


def column(archive: Path, table: str, *names: str) -> list[tuple[Any, ...]]:
    with query.opened(str(archive)) as tables:
        return tables[table].select(names).sort(names).collect().rows()


def test_every_file_is_accounted_for(twelve: Path, undisturbed: Path) -> None:
    states = dict(column(undisturbed, "files", "path", "state"))
    assert set(states) == {str(path) for path in twelve.iterdir()}
    assert states[str(twelve / "same.pcap")] == "duplicate"
    assert states[str(twelve / "note.txt")] == "other"
    assert sum(state == "capture" for state in states.values()) == 14
    captures = dict(column(undisturbed, "captures", "name", "state"))
    assert len(captures) == 14
    assert captures["none"] == "failed"
    assert captures["cut"] == "part"
    assert set(captures.values()) == {"whole", "part", "failed"}


def test_one_bad_file_is_listed_with_its_reason(twelve: Path, undisturbed: Path) -> None:
    reported = dict(column(undisturbed, "problems", "path", "what"))
    assert "not a capture" in str(reported[str(twelve / "none.pcap")])
    assert str(twelve / "cut.pcap") in reported


def test_rows_are_those_of_analyze(twelve: Path, undisturbed: Path) -> None:
    path = twelve / "c06.pcap"
    one = analyze(path)
    ((name,),) = (
        pl.DataFrame(column(undisturbed, "captures", "path", "capture"), orient="row")
        .filter(pl.col("column_0") == str(path))
        .select("column_1")
        .rows()
    )
    with query.opened(str(undisturbed)) as tables:
        rows = {
            table: frame.filter(pl.col("capture") == name).drop("capture", "month").collect()
            for table, frame in tables.items()
            if table != "files"
        }
    expected = one.connections.with_columns(pl.selectors.enum().cast(pl.String)).collect()
    assert rows["connections"].equals(expected)
    assert rows["findings"]["title"].to_list() == [finding.title for finding in one.findings]
    assert rows["ledger_totals"].group_by("from_client").agg(pl.col("cause_ns").sum()).rows() != []
    for own_ns, life_ns in (
        rows["ledger_totals"]
        .group_by("conn", "from_client")
        .agg(pl.col("cause_ns").sum(), pl.col("life_ns").first())
        .select("cause_ns", "life_ns")
        .rows()
    ):
        assert own_ns == life_ns, "the causes of a direction add up to its life"


def test_each_capture_that_was_read_has_its_report_and_they_share_a_script(twelve: Path, tmp_path: Path) -> None:
    archives.made([twelve / "c01.pcap", twelve / "cut.pcap", twelve / "none.pcap"], tmp_path / "out", reports=True)
    reports = dict(column(tmp_path / "out", "captures", "name", "report"))
    assert reports["none"] is None
    for name in ("c01", "cut"):
        page = (tmp_path / "out" / reports[name]).read_bytes()
        assert b"TCP report" in page
        assert len(page) < 300_000
    assert len(list((tmp_path / "out" / "reports").glob("*.js"))) == 1


def test_a_second_run_repeats_nothing_and_changes_nothing(twelve: Path, undisturbed: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in [*undisturbed.rglob("*.part"), *undisturbed.rglob("*.parquet")]}
    reported = archives.made(twelve, undisturbed)
    assert reported.made == 0
    assert reported.kept == 14
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_nothing_is_left_in_tmp(undisturbed: Path) -> None:
    assert not (undisturbed / "tmp").exists()


def test_two_workers_give_the_same_bytes_as_one(twelve: Path, undisturbed: Path, tmp_path: Path) -> None:
    batch(twelve, tmp_path / "out", means=Means(jobs=2), reports=False)
    assert archives.tables(tmp_path / "out") == archives.tables(undisturbed)


def test_captures_that_come_later_give_the_same_bytes_as_all_at_once(twelve: Path, undisturbed: Path, tmp_path: Path) -> None:
    first = sorted(twelve.iterdir())[:5]
    archives.made(first, tmp_path / "out")
    reported = archives.made(twelve, tmp_path / "out")
    assert reported.made == 14 - 5
    assert archives.tables(tmp_path / "out") == archives.tables(undisturbed)


def test_a_table_that_was_lost_is_written_again(twelve: Path, undisturbed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(undisturbed, copy)
    for lost in (copy / "tables" / "messages").rglob("*.parquet"):
        lost.unlink()
    archives.made(twelve, copy)
    assert archives.tables(copy) == archives.tables(undisturbed)


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_run_is_finished_by_the_next_and_leaves_no_trace(seed: int, twelve: Path, undisturbed: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    after = random.Random(seed).randrange(1, 12)  # noqa: S311  (moments, not secrets)
    command: list[str | Path] = [PROGRAM, "batch", twelve, "-o", output, "--jobs", "2", "--no-reports", "--quiet"]
    with subprocess.Popen(command) as running:
        archives.until(lambda: len(archives.parts(output)) >= after)
        running.send_signal(signal.SIGKILL)
    there = archives.parts(output)
    reported = archives.made(twelve, output)
    assert reported.made == 14 - len(there)
    assert archives.tables(output) == archives.tables(undisturbed)
    assert not (output / "tmp").exists()


def test_a_full_disk_ends_the_run_in_one_line_and_the_next_finishes(twelve: Path, undisturbed: Path, tmp_path: Path) -> None:
    needs.root()
    output = tmp_path / "small"
    output.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tcptrace-lab-test", output], check=True)
    try:
        done = new_process("batch", twelve, "-o", output, "--jobs", "1", "--no-reports", "--quiet")
        assert done.returncode == 2
        assert "No space left on device" in only_line(done.stderr)
        assert 0 < len(archives.parts(output)) < 14
        subprocess.run(["mount", "-o", "remount,size=64m", output], check=True)
        archives.made(twelve, output)
        assert archives.tables(output) == archives.tables(undisturbed)
    finally:
        subprocess.run(["umount", output], check=True)


def test_two_runs_on_one_archive_are_refused_with_the_holder_named(twelve: Path, tmp_path: Path) -> None:
    with (
        lock.hold_lock(at(str(tmp_path / "out"))),
        pytest.raises(UsageError, match=f"another run writes this archive.*process {os.getpid()} on "),
    ):
        archives.made(twelve, tmp_path / "out")


def test_the_lock_of_a_killed_run_holds_nobody(tmp_path: Path) -> None:
    script = (
        "import os, signal; from tcptrace_lab.archive.storage import at; from tcptrace_lab.archive.work import lock\n"
        f"with lock.hold_lock(at({str(tmp_path)!r})): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    with lock.hold_lock(at(str(tmp_path))):
        assert (tmp_path / lock.LOCK).exists()


def test_a_worker_that_is_killed_costs_one_capture_and_not_the_run(twelve: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The default interval between memory checks is longer than the time that a worker needs for a small capture.
    monkeypatch.setattr(workers, "LOOK_S", 0.001)
    reported = batch(sorted(twelve.iterdir())[:3], tmp_path / "out", means=Means(jobs=1, memory_bytes=10_000_000), reports=False)
    assert reported.unreadable or set(reported.captures["state"]) == {"lost"}
    reasons = [*reported.unreadable.values(), *reported.captures["reason"]]
    assert all("needs more than 0.01 GB of memory" in reason for reason in reasons)
    again = archives.made(sorted(twelve.iterdir())[:3], tmp_path / "out")
    assert again.complete


def test_a_worker_that_is_killed_while_it_writes_a_table_ends_the_run(
    twelve: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = workers.Pool.run

    def killed(pool: workers.Pool, tasks: Sequence[Task]) -> Iterator[Result]:
        if isinstance(tasks[0], WriteTable):
            return iter([task.lost("its worker was killed by SIGKILL") for task in tasks])
        return run(pool, tasks)

    with monkeypatch.context() as patch:
        patch.setattr(workers.Pool, "run", killed)
        with pytest.raises(OutputUnwritable, match="a table could not be written: its worker was killed by SIGKILL"):
            archives.made(twelve, tmp_path / "out")
    assert archives.made(twelve, tmp_path / "out").made == 0
    assert archives.tables(tmp_path / "out") == archives.tables(undisturbed)


def test_a_file_that_was_replaced_is_another_capture(tmp_path: Path) -> None:
    path = archives.capture(tmp_path / "one.pcap", 1)
    archives.made(path, tmp_path / "out")
    archives.capture(path, 2)
    reported = archives.made(path, tmp_path / "out")
    assert reported.made == 1
    assert reported.captures.height == 1


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archives.capture(tmp_path / "one.pcap", 1)
    digest, size_bytes = fingerprint.contents(str(path))
    looks = tuple(fingerprint.looks(str(path)) or ())
    settings = fingerprint.settings(reports=False)
    task = Analyze("x" * 20, (str(path),), (digest,), (looks,), size_bytes, settings, str(tmp_path / "out"), reports=False)
    read = analysis.analyze

    def grown(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401  (whatever analyze takes)
        made = read(*arguments, **options)
        with path.open("ab") as file:
            file.write(b"more")
        return made

    monkeypatch.setattr(analysis, "analyze", grown)
    assert task.run().state == "lost"
    assert archives.parts(tmp_path / "out") == set()


def test_rotated_files_are_analyzed_as_one(tmp_path: Path) -> None:
    ring = [archives.capture(tmp_path / f"net_{number:05}_2026112106{number:02}00.pcap", number, hours=number) for number in (1, 2)]
    reported = archives.made(tmp_path, tmp_path / "out")
    assert reported.captures.select("files", "connections", "packets").rows() == [(2, 2, 14)]
    apart = archives.made(ring, tmp_path / "apart", apart=True)
    assert apart.captures["connections"].to_list() == [1, 1]


def test_a_folder_with_something_else_is_not_written_into(twelve: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(UsageError, match="the folder has other contents"):
        archives.made(twelve, tmp_path)


def test_an_archive_that_cannot_be_written_is_said(twelve: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputUnwritable, match="Not a directory"):
        archives.made(twelve, tmp_path / "file" / "out")


def test_the_command_says_what_failed_and_exits_with_4(twelve: Path, undisturbed: Path) -> None:
    done = new_process("batch", twelve, "-o", undisturbed, "--no-reports", "--jobs", "1")
    assert done.returncode == 4
    lines = done.stderr.decode().splitlines()
    assert "14 captures: 12 whole, 1 in part, 1 failed; 0 analyzed now, 14 already analyzed" in lines[0]
    assert any(f"failed: {twelve / 'none.pcap'}: " in line for line in lines)


def test_the_command_ends_with_the_captures_that_lost_most(twelve: Path, undisturbed: Path) -> None:
    """The output ends with a list of captures. The capture with the most fixable time comes first."""
    done = new_process("batch", twelve, "-o", undisturbed, "--no-reports", "--jobs", "1")
    lost = sorted(column(undisturbed, "captures", "path", "fixable_ns"), key=lambda row: (-(row[1] or 0), row[0]))
    worst = [Path(path).name for path, ns in lost if ns][:5]
    assert worst
    assert re.findall(r" of \S+ \S+  /.*/([^/]+\.pcap)$", done.stdout.decode(), re.MULTILINE) == worst, "each path is on one line"


def test_fail_on_looks_at_all_captures(twelve: Path, undisturbed: Path) -> None:
    worst = set(dict(column(undisturbed, "captures", "name", "worst_severity")).values())
    done = new_process("batch", twelve, "-o", undisturbed, "--no-reports", "--jobs", "1", "--quiet", "--fail-on", "high")
    assert done.returncode == (1 if "high" in worst else 4)
    assert new_process("batch", twelve, "-o", undisturbed, "--no-reports", "--jobs", "1", "--quiet", "--fail-on", "info").returncode == 1


def test_ctrl_c_leaves_nothing_half_written_and_no_worker(twelve: Path, undisturbed: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with subprocess.Popen(
        [PROGRAM, "batch", twelve, "-o", output, "--jobs", "2", "--no-reports"], stderr=subprocess.PIPE, start_new_session=True
    ) as running:
        archives.until(lambda: len(archives.parts(output)) >= 2)
        os.killpg(running.pid, signal.SIGINT)
        _, stderr = running.communicate(timeout=archives.PATIENCE_S)
        assert running.returncode == 130
        assert b"Traceback" not in stderr
        archives.until(lambda: is_gone(running.pid))
    assert not (output / "tmp").exists()
    archives.made(twelve, output)
    assert archives.tables(output) == archives.tables(undisturbed)
