"""The short forms of all declared experiments run. Their results agree with the kernel and tshark, and no process is left over."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcptrace_lab.errors import LabFailed
from tcptrace_lab.lab.hosts import endpoints
from tcptrace_lab.lab.studies import experiment_file, study
from tcptrace_lab.lab.studies.experiment_keys import TCP_KINDS
from tests.support import needs, published
from tests.support.command import PROGRAM, TIME_LIMIT_S, new_process, only_line

pytestmark = pytest.mark.live

WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-net_raw,-net_admin,-sys_admin")
KEYS = ("nodelay", "cork", "quickack")
FINISHED = {"report.html", "results.json", "runs.parquet", "tcp_info.parquet", "experiment.toml", "captures"}


@pytest.fixture(scope="module")
def performed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A map from an experiment's name to the folder with the results of its short form.

    The first look-up of a name performs the experiment.
    """
    return Performed(tmp_path_factory.mktemp("lab"))


class Performed(dict[str, Path]):
    """A dictionary that performs an experiment when its name is first looked up."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> Path:
        """Perform the experiment `name`, and return the folder with its results."""
        folder = self._folder / name
        done = new_process("lab", "run", name, "--short", "--quiet", "-o", folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        self[name] = folder
        return folder


def results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_bytes())
    published.check("experiment", found)
    return found


def tshark_bytes(capture: Path) -> dict[int, int]:
    """Return the payload bytes of both ends together, by client port.

    The TCP bytes follow from the highest sequence numbers. The UDP bytes are the sum of the datagrams.
    """
    fields = ["tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.len", "udp.srcport", "udp.dstport", "udp.length"]
    command: list[str | Path] = [needs.program("tshark"), "-r", capture, "-T", "fields", *(f"-e{field}" for field in fields)]
    ends: dict[tuple[int, int], int] = {}
    for line in subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines():
        source, target, seq, size, udp_source, udp_target, udp_size = (int(text) if text else 0 for text in line.split("\t"))
        if source and size:
            ends[source, target] = max(ends.get((source, target), 0), seq + size - 1)  # the first byte of a stream has number 1
        elif udp_source:
            ends[udp_source, udp_target] = ends.get((udp_source, udp_target), 0) + udp_size - 8
    sums: dict[int, int] = {}
    for ports, size in ends.items():
        for port in ports:
            sums[port] = sums.get(port, 0) + size
    return sums


@pytest.mark.parametrize("name", experiment_file.ready_made())
def test_a_short_form_runs_and_all_that_it_says_is_there(name: str, performed: dict[str, Path]) -> None:
    folder = performed[name]
    assert {path.name for path in folder.iterdir()} == FINISHED
    declared, found = experiment_file.load(name, short=True), results(folder)
    rows = pl.read_parquet(folder / "runs.parquet")
    assert [point["label"] for point in found["points"]] == [point.label for point in declared.points]
    assert rows.height == sum(int(point["run.repetitions"]) for point in declared.points)
    assert rows["failure"].drop_nulls().to_list() == []
    page = (folder / "report.html").read_text()
    assert all(point["settings"][key]["text"] in page for point in found["points"] for key in point["settings"])
    seen = {name: tshark_bytes(folder / "captures" / f"{name}-client.pcapng") for name in rows["captures"].unique()}
    for row in rows.iter_rows(named=True):
        point = declared.points[row["point"]]
        # tshark counts all bytes on the wire. For FTP, the client port is the port of the data connection, which carries only the file.
        headers = 1_000 * row["operations"] if point["transfer.kind"] == "http" else 0
        assert (
            row["payload_bytes"]
            <= seen[row["captures"]][row["client_port"]]
            <= row["payload_bytes"] / (1 - (row["lost_share"] or 0)) + headers + 1
        ), row
        assert row["elapsed_ns"] > 0


@pytest.mark.parametrize("name", ["write-sizes", "path-troubles", "http-files"])
def test_the_kernels_account_agrees_with_what_was_transferred(name: str, performed: dict[str, Path]) -> None:
    declared, readings = experiment_file.load(name, short=True), pl.read_parquet(performed[name] / "tcp_info.parquet")
    for row in pl.read_parquet(performed[name] / "runs.parquet").iter_rows(named=True):
        if declared.points[row["point"]]["transfer.kind"] not in TCP_KINDS:
            continue
        own = readings.filter(pl.col("run") == row["run"])
        most = own.group_by("side").agg(pl.col("tcpi_bytes_acked", "tcpi_bytes_received", "tcpi_total_retrans").max()).to_dicts()
        assert {one["side"] for one in most} == {"client", "server"}
        received = max(one["tcpi_bytes_received"] for one in most)
        assert row["payload_bytes"] <= received <= row["payload_bytes"] + 1_000
        assert row["retransmitted_segments"] == sum(one["tcpi_total_retrans"] for one in most)


def test_echoes_stall_by_nagles_rule_and_nodelay_cures_them(performed: dict[str, Path]) -> None:
    """The client sends each message of 8 KB in two writes of 4 KB. The MTU is 9,180 bytes.

    The second write waits for the delayed ACK of the first write. The delay is at least 40 ms on Linux.
    """
    means = {point["label"]: point["measures"]["latency"]["mean"] / 1e6 for point in results(performed["echo-sizes"])["points"]}
    assert means["mtu 9,180, kind echo, message 8K, nodelay no"] > 35
    assert means["mtu 9,180, kind echo, message 8K, nodelay yes"] < 35
    assert means["mtu 9,180, kind udp-echo, message 8K"] < 35
    named = {point["label"]: point["findings"] for point in results(performed["echo-sizes"])["points"]}
    assert "nagle-delayed-ack" in named["mtu 9,180, kind echo, message 8K, nodelay no"]


def requests_in_segments(capture: Path) -> dict[int, list[int]]:
    """Return the payload bytes of each data segment that the client sent, grouped by client port. The values come from tshark."""
    shown: list[str | Path] = [
        needs.program("tshark"),
        "-r",
        capture,
        "-Y",
        "tcp.len > 0 && tcp.dstport == 5001",
        "-T",
        "fields",
        "-e",
        "tcp.srcport",
        "-e",
        "tcp.len",
    ]
    found: dict[int, list[int]] = {}
    for line in subprocess.run(shown, capture_output=True, check=True, text=True).stdout.splitlines():
        port, size = map(int, line.split("\t"))
        found.setdefault(port, []).append(size)
    return found


def test_cork_joins_the_writes_of_a_request_and_nodelay_and_quickack_send_them_apart_at_once(performed: dict[str, Path]) -> None:
    """Linux delays an ACK by at least 40 ms.

    With TCP_CORK, both writes leave in one segment when the program clears the option (tcp(7)).
    """
    folder = performed["nagle-cures"]
    points = results(folder)["points"]
    on = {place: {key for key in KEYS if f"{key} yes" in point["label"]} for place, point in enumerate(points)}
    assert sorted(map(sorted, on.values())) == sorted(
        map(
            sorted,
            [set(), {"cork"}, {"nodelay"}, {"quickack"}, {"cork", "nodelay"}, {"cork", "quickack"}, {"nodelay", "quickack"}, set(KEYS)],
        )
    )
    plain_ms = next(point["measures"]["latency"]["mean"] for place, point in enumerate(points) if not on[place]) / 1e6
    assert plain_ms > 30  # Linux acknowledges the first few segments of a connection at once
    for row in pl.read_parquet(folder / "runs.parquet").iter_rows(named=True):
        sizes = requests_in_segments(folder / "captures" / f"{row['captures']}-client.pcapng")[row["client_port"]]
        assert sizes == ([200] * 20 if "cork" in on[row["point"]] else [100] * 40), (on[row["point"]], sizes)
    for place, point in enumerate(points):
        if on[place]:
            assert point["measures"]["latency"]["mean"] / 1e6 < 0.8 * plain_ms, point["label"]
        else:
            assert "nagle-delayed-ack" in point["findings"]


def test_datagrams_without_a_pace_are_lost_and_paced_ones_are_not(performed: dict[str, Path]) -> None:
    """At 10 Mb/s, a datagram of 1,024 bytes and 28 bytes of headers takes 0.84 ms.

    So the path carries one datagram per millisecond. Without a pace, datagrams overflow the queue of 16 KB.
    """
    lost = {point["label"]: point["measures"]["lost"]["mean"] for point in results(performed["udp-pace"])["points"]}
    assert lost["write 1,024, pace 0s"] > 0.3
    assert lost["write 1,024, pace 1ms"] == 0


def children(process: int) -> list[int]:
    """Return the children of a process and all their descendants."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
    return found


def is_gone(process: int) -> bool:
    """Return whether the process has ended. A zombie counts as ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_behind_when_it_is_ended_in_the_middle(number: signal.Signals, tmp_path: Path) -> None:
    """Processes and network namespaces end with the command.

    All dumpcap and load processes are descendants of the command. The command keeps its network namespaces only as open files.
    """
    text = '[path]\nmedium = "tun"\n[hosts]\nload = 1\n[transfer]\nkind = "bulk"\nwrites = 1000\nwrite = 100\n[run]\nrepetitions = 10000\n'
    (tmp_path / "long.toml").write_text(text)
    folder, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    command: list[str | Path] = [PROGRAM, "lab", "run", tmp_path / "long.toml", "-o", folder]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(scratch)}) as running:
        try:
            while not [path for path in folder.glob("captures/*-server.pcapng") if path.stat().st_size > 100_000]:  # transfers go on
                assert running.poll() is None
                os.sched_yield()
            started = children(running.pid)
            assert len(started) >= 2 + len(os.sched_getaffinity(0))  # two dumpcaps, and a load process for each CPU
            spaces = {space_of(process) for process in started} - {space_of(os.getpid()), None}
            assert len(spaces) == 2
            running.send_signal(number)
            _, reported = running.communicate(timeout=TIME_LIMIT_S)
        finally:
            running.kill()
    assert running.returncode == (-9 if number is signal.SIGKILL else 130)
    assert reported == b""
    assert number is signal.SIGKILL or list(scratch.iterdir()) == []
    while not all(map(is_gone, started)):  # after SIGKILL, the kernel ends the descendants
        os.sched_yield()
    deadline_s = time.monotonic() + TIME_LIMIT_S
    while still := within(spaces):  # a process that was just starting ends shortly after its parent
        assert time.monotonic() < deadline_s, still
        os.sched_yield()


def space_of(process: int) -> Path | None:
    """Return the network namespace of a process, or None if the process has ended."""
    try:
        return Path(f"/proc/{process}/ns/net").readlink()
    except OSError:
        return None


def within(spaces: set[Path | None]) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            if entry.readlink() in spaces:
                found.append(entry.parts[2])
        except OSError:
            continue  # the process has ended, or this user cannot read the link
    return found


def test_captures_that_do_not_show_what_was_sent_last_end_the_experiment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the disk is full, dumpcap possibly continues to run without writing. The experiment must end with an error."""

    def mark(_ends: endpoints.Ends, _seen: object) -> None:
        raise TimeoutError("the captures do not show it")

    monkeypatch.setattr(endpoints.Ends, "mark", mark)
    (tmp_path / "one.toml").write_text('[path]\nmedium = "loopback"\n[transfer]\nkind = "bulk"\ntotal = "40K"\n[run]\nrepetitions = 1\n')
    with pytest.raises(LabFailed, match="check free disk space"):
        study.perform_all(experiment_file.load(str(tmp_path / "one.toml")), tmp_path)


def test_without_rights_or_dumpcap_one_line_says_so(tmp_path: Path) -> None:
    setpriv = shutil.which(WITHOUT_RIGHTS[0])
    assert setpriv is not None
    command: list[str | Path] = [setpriv, WITHOUT_RIGHTS[1], PROGRAM, "lab", "run", "echo-sizes", "--short", "-o", tmp_path / "a"]
    done = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 5
    assert "run it as root" in only_line(done.stderr)
    done = new_process("lab", "run", "echo-sizes", "-o", tmp_path / "b", environment={"PATH": str(tmp_path)})
    assert done.returncode == 5
    assert "not installed: setpriv" in only_line(done.stderr)
    assert list(tmp_path.iterdir()) == []
