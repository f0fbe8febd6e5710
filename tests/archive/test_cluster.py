"""A Dask cluster and a single process write equal archives, even if a worker of the cluster is killed.

The cluster writes to an S3 store, and the single process writes to a folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import fsspec
import pytest
from distributed import Client, LocalCluster
from moto.server import ThreadedMotoServer

from tcptrace_lab.archive.run import Means, batch
from tcptrace_lab.archive.work.task import Done
from tcptrace_lab.errors import UsageError
from tests.support.captures import archives

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcptrace_lab.archive.work.task import Result

CAPTURES = 10

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
"""Dask leaves open sockets to the garbage collector, which causes these warnings."""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ten captures and a file that is not a capture."""
    folder = archives.folder_of(tmp_path_factory.mktemp("cluster") / "in", CAPTURES)
    (folder / "none.pcap").write_bytes(b"this is no capture at all, whatever it is called")
    return folder


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    reported = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in reported.items():
            patch.setenv(name, value)
        yield reported["AWS_ENDPOINT_URL"]
    server.stop()


@pytest.fixture(scope="module")
def scheduler(store: str) -> Iterator[str]:  # noqa: ARG001  (the workers inherit the address of the store)
    """The address of a Dask scheduler with two workers. Each worker is a process with one thread."""
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def local(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an archive of the ten captures, written by a single process."""
    output = tmp_path_factory.mktemp("local") / "out"
    archives.made(captures, output)
    return output


class KillsOne:
    """Kills one worker process of the cluster as soon as `after` captures are done."""

    def __init__(self, scheduler: str, after: int) -> None:
        self._scheduler = scheduler
        self._left = after
        self.killed = 0

    def doing(self, what: str, total: int) -> None:
        """Do nothing."""

    def share(self, share: float) -> None:
        """Do nothing."""

    def done(self, result: Result) -> None:
        """Count a capture that is done. Kill a worker process when the count reaches `after`."""
        self._left -= isinstance(result, Done)
        if not self._left and not self.killed:
            with Client(self._scheduler, set_as_default=False) as client:
                self.killed = min(client.run(os.getpid).values())
            os.kill(self.killed, signal.SIGKILL)


def without_index(tables: dict[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in tables.items() if name.startswith("tables/")}


def test_a_cluster_gives_what_one_process_gives_also_when_a_worker_is_killed(
    captures: Path, local: Path, scheduler: str, tmp_path: Path
) -> None:
    watcher = KillsOne(scheduler, after=3)
    reported = batch(captures, tmp_path / "out", means=Means(scheduler=scheduler), reports=False, watcher=watcher)
    assert watcher.killed
    assert reported.states == {"whole": CAPTURES, "failed": 1}
    assert archives.tables(tmp_path / "out") == archives.tables(local)


def test_captures_and_archive_in_a_bucket_give_the_same_tables(captures: Path, scheduler: str, tmp_path: Path) -> None:
    files = fsspec.filesystem("s3")
    files.mkdir("captures")
    files.mkdir("archives")
    files.put(str(captures) + "/", "captures/in/", recursive=True)
    batch("s3://captures/in", "s3://archives/far", means=Means(scheduler=scheduler), reports=False)
    again = batch("s3://captures/in", "s3://archives/far", means=archives.ONE, reports=False)
    assert (again.made, again.kept) == (0, CAPTURES + 1)
    batch("s3://captures/in", tmp_path / "near", means=archives.ONE, reports=False)
    files.invalidate_cache()
    far = {name.removeprefix("archives/far/"): archives.digest(files.cat_file(name)) for name in files.find("archives/far/tables")}
    assert far == without_index(archives.tables(tmp_path / "near"))


def test_captures_behind_http_are_fetched(captures: Path, local: Path, tmp_path: Path) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Do nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(captures))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        reported = batch(f"http://127.0.0.1:{server.server_port}/c04.pcap", tmp_path / "out", means=archives.ONE, reports=False)
        server.shutdown()
    assert reported.captures["name"].to_list() == ["c04"]
    assert archives.parts(tmp_path / "out") <= archives.parts(local)


def test_a_scheduler_that_is_not_there_is_said(captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcptrace_lab.archive.work.cluster.PATIENCE_S", 0.5)
    with pytest.raises(UsageError, match=r"no scheduler answers: tcp://127\.0\.0\.1:1"):
        batch(captures, tmp_path / "out", means=Means(scheduler="tcp://127.0.0.1:1"))


def test_a_url_without_its_package_is_a_missing_tool(tmp_path: Path) -> None:
    script = "import sys; sys.modules['fsspec'] = None; from tcptrace_lab.cli import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", script, "batch", "s3://bucket/in", "-o", tmp_path / "out"], capture_output=True, check=False
    )
    assert done.returncode == 5
    assert b"pip install 'tcptrace-lab[archive]'" in done.stderr
