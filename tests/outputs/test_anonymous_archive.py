"""With `batch --anonymize`, no file of an archive contains an address or a name of the captures.

A later run can continue the archive only with the key of the first run.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.archive.dataset import query
from tcptrace_lab.connections.anonymizer import Anonymizer
from tests.support.captures import archives
from tests.support.captures.hostile import NAMES, SECRETS, leaks, write, written
from tests.support.command import new_process, only_line

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A folder of files whose names contain host names.

    The files are a capture, its copy, a truncated capture, an unreadable file, a file that is not a capture, and a note.
    """
    folder = tmp_path / "198.51.100.77" / NAMES[0]
    folder.mkdir(parents=True)
    whole = write(folder / f"{NAMES[1]}-203.0.113.45.pcapng")
    shutil.copy(whole, folder / f"{NAMES[1]}-again.pcapng")
    (folder / f"{NAMES[2]}-cut.pcapng").write_bytes(whole.read_bytes()[:-30])
    (folder / f"{NAMES[3]}.pcap").write_bytes(b"this is no capture at all, whatever it is called")
    (folder / f"{NAMES[0]}-gone.pcap").symlink_to(folder / "nowhere.pcap")
    (folder / f"{NAMES[3]}.txt").write_text("from Monday")
    return folder


def run(named: Path, work: Path, *options: str) -> tuple[int, dict[str, bytes]]:
    """Run `batch` on the files, which writes to `archive`. Return its exit code and all outputs."""
    done = new_process("batch", named, "-o", "archive", "--jobs", "1", *options, folder=work)
    return done.returncode, written(work) | {"stdout": done.stdout, "stderr": done.stderr}


def test_no_file_of_an_archive_holds_an_address_or_a_name(named: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    code, outputs = run(named, work, "--anonymize")
    assert code == 4
    assert {name.rpartition(".")[2].partition(":")[0] for name in outputs} >= {"html", "part", "parquet", "json", "stdout"}
    assert not leaks(outputs)
    assert b"failed: capture-" in outputs["stderr"]


def test_without_the_option_an_archive_holds_them(named: Path, tmp_path: Path) -> None:
    """Without `--anonymize`, the names are in pages, parts, tables, the registry and the terminal output."""
    work = tmp_path / "work"
    work.mkdir()
    _, outputs = run(named, work)
    found = {name.partition(":")[0].rpartition(".")[2] for _, name in leaks(outputs)}
    assert found >= {"html", "part", "parquet", "json", "stdout", "stderr"}


def test_an_anonymous_archive_has_the_same_rows_but_for_names(named: Path, tmp_path: Path) -> None:
    key = "a key"
    for folder, options in (("plain", ()), ("hidden", ("--anonymize-key", key))):
        (tmp_path / folder).mkdir()
        run(named, tmp_path / folder, "--no-reports", *options)
    hidden = Anonymizer(key)

    def rows(folder: str, table: str) -> pl.DataFrame:
        with query.opened(str(tmp_path / folder / "archive")) as tables:
            return tables[table].collect()

    plain, anonymous = rows("plain", "connections"), rows("hidden", "connections")
    assert set(plain["client_addr"]) < set(SECRETS)
    assert anonymous.equals(hidden.rows(plain.lazy()).collect())
    times = rows("hidden", "ledger_totals")
    assert times.height > 10
    assert times.equals(rows("plain", "ledger_totals"))
    files, paths = rows("hidden", "files"), rows("plain", "files")["path"]
    assert sorted(files["path"]) == sorted(map(hidden.file, paths))
    assert sorted(files["state"]) == sorted(rows("plain", "files")["state"])
    assert set(rows("hidden", "captures")["path"]) < set(files["path"])


def test_another_run_with_the_key_analyzes_only_what_is_new(named: Path, tmp_path: Path) -> None:
    key = "--anonymize-key=k"
    run(named, tmp_path, key, "--no-reports")
    before = archives.parts(tmp_path / "archive")
    write(named / "new.pcapng").write_bytes((named / f"{NAMES[1]}-203.0.113.45.pcapng").read_bytes()[:-60])
    _, outputs = run(named, tmp_path, key, "--no-reports")
    assert b"1 analyzed now, 3 already analyzed" in outputs["stderr"]
    assert len(archives.parts(tmp_path / "archive") - before) == 1
    assert b"0 analyzed now, 4 already analyzed" in run(named, tmp_path, key, "--no-reports")[1]["stderr"]


@pytest.mark.parametrize(
    ("first", "second"), [("--anonymize", "--anonymize"), ("--anonymize-key=k", "--anonymize-key=l"), ("--quiet", "--anonymize")]
)
def test_a_run_with_another_key_is_refused(first: str, second: str, named: Path, tmp_path: Path) -> None:
    run(named, tmp_path, first, "--no-reports")
    before = written(tmp_path / "archive")
    done = new_process("batch", named, "-o", "archive", second, "--no-reports", folder=tmp_path)
    assert done.returncode == 2
    assert "the archive was not written with this key" in only_line(done.stderr)
    assert new_process("batch", named, "-o", "archive", "--no-reports", folder=tmp_path).returncode == (4 if first == "--quiet" else 2)
    assert written(tmp_path / "archive") == before


def test_gc_forgets_no_capture_of_an_anonymous_archive(named: Path, tmp_path: Path) -> None:
    run(named, tmp_path, "--anonymize", "--no-reports")
    before = written(tmp_path / "archive")
    done = new_process("archive", "gc", "archive", "--missing", folder=tmp_path)
    assert done.returncode == 2
    assert "the archive is anonymous" in only_line(done.stderr)
    assert new_process("archive", "gc", "archive", folder=tmp_path).returncode == 0
    assert written(tmp_path / "archive") == before


def test_a_ring_in_an_anonymous_archive_is_watched(tmp_path: Path) -> None:
    ring, work = tmp_path / NAMES[0], tmp_path / "work"
    ring.mkdir()
    work.mkdir()
    for number in (1, 2):
        archives.capture(ring / f"{NAMES[1]}_{number:05}_2026112106{number:02}00.pcap", number)
    code, outputs = run(ring, work, "--anonymize", "--watch", "--stop-after", "1", "--no-reports")
    assert code == 0
    assert not leaks(outputs)
    with query.opened(str(work / "archive")) as tables:
        assert tables["captures"].select("state", "files").collect().rows() == [("whole", 1)] * 2
