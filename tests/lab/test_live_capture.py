"""`tcptrace-lab capture` captures an interface until a signal or a limit, then analyzes the capture. Each error is one line."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.lab.capturing.capture import ended_connections
from tcptrace_lab.lab.capturing.dumpcap import Dumpcap
from tcptrace_lab.lab.capturing.live import Ring
from tests.support import needs
from tests.support.command import PROGRAM, TIME_LIMIT_S, new_process, only_line

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.live

QUESTION_BYTES, ANSWER_BYTES = 300, 700
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-net_raw,-net_admin")


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def talk(server: socket.socket) -> None:
    """Open a connection to `server`, exchange a question and an answer, and close both ends."""
    with socket.create_connection(server.getsockname()) as client:
        peer, _ = server.accept()
        with peer:
            client.sendall(bytes(QUESTION_BYTES))
            assert len(peer.recv(QUESTION_BYTES, socket.MSG_WAITALL)) == QUESTION_BYTES
            peer.sendall(bytes(ANSWER_BYTES))
            assert len(client.recv(ANSWER_BYTES, socket.MSG_WAITALL)) == ANSWER_BYTES
            client.shutdown(socket.SHUT_WR)
            assert peer.recv(1) == b""
        assert client.recv(1) == b""


@contextmanager
def capturing(folder: Path, server: socket.socket, *options: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `tcptrace-lab capture` and yield its process as soon as it prints that it captures."""
    command = [PROGRAM, "capture", "-i", "lo", "--filter", f"tcp port {server.getsockname()[1]}", *options]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        try:
            assert b"Ctrl-C stops the capture" in running.stderr.readline()
            kept = b"3 files of 2.05 kB" if "--ring" in options else b"10 files of 105 MB"
            assert running.stderr.readline().endswith(b"; a long session keeps its last " + kept + b"\n")
            yield running
        finally:
            running.kill()


def await_connections(path: Path, count: int) -> None:
    """Wait until the first capture file has this many closed connections.

    The time limit of the test stops a wait that never ends.
    """
    (first,) = path.parent.glob(f"{path.stem}_00001_*{path.suffix}")
    while ended_connections(first) < count:
        os.sched_yield()


def dumpcaps(path: Path) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"dumpcap") and os.fsencode(path) in words:
            found.append(folder.name)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_capture_and_what_is_there_is_analyzed(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, scratch = tmp_path / "kept.pcapng", tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with listening() as server, capturing(tmp_path, server, "-w", target, "--json", "-", "-o", tmp_path / "kept.html") as running:
        for _ in range(3):
            talk(server)
        await_connections(target, 3)
        running.send_signal(number)
        out, err = running.communicate(timeout=TIME_LIMIT_S)
        assert running.returncode == 0, err
    document = json.loads(out)
    assert document["capture"]["connections"] == 3
    sent = [(one["client_to_server"]["unique_bytes"], one["server_to_client"]["unique_bytes"]) for one in document["connections"]]
    assert sent == [(QUESTION_BYTES, ANSWER_BYTES)] * 3
    assert sorted(path.name for path in tmp_path.glob("kept*")) == ["kept.html", "kept.pcapng"], "one file has the name that was asked for"
    assert b"packets captured" in err
    assert dumpcaps(target) == []
    assert list(scratch.iterdir()) == []


def test_a_wait_for_a_silent_dumpcap_asks_again_whether_it_is_over() -> None:
    """A signal possibly arrives between Python's last check and the wait. It then does not interrupt the wait.

    So the condition is checked at intervals.
    """
    asked = itertools.count(1)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as silent:
        Dumpcap(silent, "silent").read_until(lambda: next(asked) > 1, TIME_LIMIT_S)
    assert next(asked) == 3


def test_a_capture_goes_on_where_the_terminal_that_it_shall_survive_is_closed(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # like nohup(1): programs started from here on ignore SIGHUP
    try:
        with listening() as server, capturing(tmp_path, server, "-w", tmp_path / "kept.pcapng", "--json", "-") as running:
            running.send_signal(signal.SIGHUP)
            talk(server)
            await_connections(tmp_path / "kept.pcapng", 1)
            running.send_signal(signal.SIGTERM)
            out, err = running.communicate(timeout=TIME_LIMIT_S)
            assert running.returncode == 0, err
    finally:
        signal.signal(signal.SIGHUP, before)
    assert json.loads(out)["capture"]["connections"] == 1


def test_a_kill_leaves_no_dumpcap_behind(tmp_path: Path) -> None:
    target = tmp_path / "killed.pcapng"
    with listening() as server, capturing(tmp_path, server, "-w", target) as running:
        assert len(dumpcaps(target)) == 1
        running.kill()
        running.wait(TIME_LIMIT_S)
    while dumpcaps(target):
        os.sched_yield()


def test_a_number_of_packets_ends_the_capture(tmp_path: Path) -> None:
    with listening() as server, capturing(tmp_path, server, "--packets", "5", "--snaplen", "80", "--json", "-") as running:
        talk(server)
        out, err = running.communicate(timeout=TIME_LIMIT_S)
        assert running.returncode == 0, err
    document = json.loads(out)
    assert document["capture"]["packets"] == 5
    assert document["capture"]["quality"]["truncated_packets"] >= 1  # the snaplen of 80 bytes truncates the question
    names = sorted(path.name for path in (tmp_path / "reports").iterdir())
    assert [Path(name).suffix for name in names] == [".html", ".pcapng"]
    assert len({Path(name).stem for name in names}) == 1
    assert names[0].startswith("lo-")


def test_a_ring_keeps_its_last_files_and_they_are_one_capture(tmp_path: Path) -> None:
    with (
        listening() as server,
        capturing(tmp_path, server, "--ring", "3×2K", "-w", tmp_path / "ring.pcapng", "--json", "ring.json") as running,
    ):
        for _ in range(30):
            talk(server)
        while (newest := max((_number(path) for path in tmp_path.glob("ring_*.pcapng")), default=0)) < 5:  # two of five are deleted
            talk(server)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=TIME_LIMIT_S)
        assert running.returncode == 0, err
    kept = sorted(tmp_path.glob("ring_*.pcapng"))
    assert len(kept) == 3
    assert _number(kept[-1]) >= newest
    tshark = needs.program("tshark")
    shown = [subprocess.run([tshark, "-r", path, "-T", "fields", "-e", "tcp.seq"], capture_output=True, check=True) for path in kept]
    counts = [one.stdout.count(b"\n") for one in shown]
    assert all(counts[:2]), "only the last may just have begun"
    assert json.loads((tmp_path / "ring.json").read_text())["capture"]["packets"] == sum(counts)
    verdicts = [line for line in out.decode().splitlines() if line.startswith(str(tmp_path / "ring_"))]
    assert len(verdicts) >= len(kept), "each file has a verdict, too"


def _number(path: Path) -> int:
    """Return the number of a ring file, for example 5 for `ring_00005_20261121064918.pcapng`."""
    return int(path.stem.split("_")[1])


@pytest.mark.parametrize("options", [("--list",), ()])
def test_interfaces_are_listed_on_standard_output(options: tuple[str, ...]) -> None:
    done = new_process("capture", *options)
    assert done.returncode == 0
    assert (b"capture -i NAME" in done.stderr) is not bool(options)
    (loopback,) = [line for line in done.stdout.decode().splitlines() if line.split()[0] == "lo"]
    assert "127.0.0.1" in loopback
    assert all(len(line) <= 80 for line in done.stdout.decode().splitlines())


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    for options, words in (
        (("-i", "nosuch0"), 'no device named "nosuch0"'),
        (("-i", "lo", "--filter", "tcp prt 80"), "Invalid capture filter"),
        (("-i", "lo", "--ring", "many"), "not a file ring"),
        (("-i", "lo", "--ring", "3x10"), "file ring too small"),
        (("-i", "lo", "-w", "nowhere/x.pcapng"), "no such directory"),
        (("-i", "lo", "-w", "x.pcapng", "-o", "x.pcapng"), "cannot write to the same place"),
        (("-i", "lo", "--duration", "0"), "it must be 1 or more"),
        (("-i", "lo", "-w", "/proc/x.pcapng"), "dumpcap cannot write"),
    ):
        done = new_process("capture", *options, folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, b""), done.stderr
        assert words in only_line(done.stderr)


def test_without_dumpcap_or_rights_one_line_says_so(tmp_path: Path) -> None:
    for arguments in (("capture", "--list"), ("capture", "-i", "lo", "--duration", "1")):
        done = new_process(*arguments, folder=tmp_path, environment={"PATH": str(tmp_path)})
        assert done.returncode == 5
        assert "not installed: " in only_line(done.stderr)
    setpriv = shutil.which(WITHOUT_RIGHTS[0])
    assert setpriv is not None
    command: list[str | Path] = [
        setpriv,
        WITHOUT_RIGHTS[1],
        PROGRAM,
        "capture",
        "-i",
        "lo",
        "--duration",
        "1",
        "-w",
        tmp_path / "no.pcapng",
    ]
    done = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=False, cwd=tmp_path)
    assert done.returncode == 5
    assert "no permission to capture: lo" in only_line(done.stderr)


def test_a_ring_is_given_in_units_of_thousand_bytes() -> None:
    from tcptrace_lab.lab.capturing.live import Request  # noqa: PLC0415

    words = Request(("lo",), ring=Ring(5, 2_000_000)).arguments(Path("x.pcapng"))
    assert words[words.index("files:5") + 2] == "filesize:2000"  # dumpcap(1): kB are 1000 bytes
