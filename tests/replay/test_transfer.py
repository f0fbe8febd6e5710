"""A replayed transfer stalls like the original, and the remedy of the finding removes the stall.

An interrupted replay removes its processes, network namespaces and files.
"""

from __future__ import annotations

import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.errors import LabFailed
from tcptrace_lab.process import temporary
from tcptrace_lab.replay.changes import Changes, remedy
from tcptrace_lab.replay.evidence import gather
from tcptrace_lab.replay.namespace_replay import patience_s
from tcptrace_lab.replay.reconstruct import reconstruct
from tcptrace_lab.replay.schedule import End, from_dict
from tcptrace_lab.replay.side_by_side import Replayed, original_figures, stall
from tcptrace_lab.replay.socket_replay import EndFailed, connect, serve
from tcptrace_lab.replay.transfer import Order, transfer
from tcptrace_lab.stacks.setting import Read, Write
from tests.support import published
from tests.support.command import TIME_LIMIT_S, new_process, only_line
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable


STALLS = {
    "atm9180-nagle-on.pcapng": "nagle",
    "atm9188-nagle-on.pcapng": "nagle",
    "ethernet-nagle-on.pcapng": "nagle",
    "ethernet-nagle-on-at-server.pcapng": "nagle",
    "loopback-nagle-on.pcapng": "nagle",
    "loopback-ipv6-nagle-on.pcapng": "nagle",
    "atm9180-small-receive-window.pcapng": "window",
    "atm9188-small-receive-window.pcapng": "window",
    "ethernet-small-receive-window.pcapng": "window",
    "ethernet-small-receive-window-at-server.pcapng": "window",
    "atm9180-slow-reader.pcapng": "window",
    "atm9188-slow-reader.pcapng": "window",
    "ethernet-slow-reader.pcapng": "window",
    "loopback-slow-reader.pcapng": "window",
    "atm9180-small-send-buffer.pcapng": "send-buffer",
    "atm9188-small-send-buffer.pcapng": "send-buffer",
    "ethernet-small-send-buffer.pcapng": "send-buffer",
    "ethernet-tail-loss.pcapng": "loss",
    "ethernet-application-limited.pcapng": "application",
}
"""For each capture, its family of causes (`side_by_side.FAMILIES`), according to `captures/README.md`."""

ATTEMPTS = 3
"""Number of attempts per test, because a busy machine possibly delays packets."""


@pytest.mark.live
@pytest.mark.parametrize("name", STALLS)
def test_the_stall_comes_back_and_goes_with_its_cure(name: str) -> None:
    path = str(CAPTURES / name)
    evidence = gather([path])
    schedule, original = reconstruct(evidence), original_figures(evidence)
    reported = stall(original)
    assert reported is not None
    assert reported.family == STALLS[name]
    for _ in range(ATTEMPTS):
        laid = transfer(Order(schedule, remedy(schedule, reported.family)), original)
        if laid.reproduced() and laid.fixed(laid.replays[1]):
            return
    assert (laid.reproduced(), laid.fixed(laid.replays[1]), laid.to_dict()["stall"]) == (True, True, None)


def test_a_stall_that_lasts_eleven_hundredths_longer_has_not_come_back() -> None:
    path = str(CAPTURES / "ethernet-nagle-on.pcapng")
    original = original_figures(gather([path], 0))
    reported = stall(original)
    assert reported is not None
    assert (reported.family, reported.direction, round(reported.seconds, 2)) == ("nagle", "client_to_server", 0.48)

    def returns(factor: float) -> bool | None:
        held = {way: {cause: spent * factor for cause, spent in of.items()} for way, of in original.ledger_s.items()}
        again = type(original)("replay", "", original.duration_s, held)
        replayed = Replayed(original, (again,), reported)
        published.check("transfer", replayed.to_dict())
        return replayed.reproduced()

    assert [returns(factor) for factor in (0.89, 0.91, 1.0, 1.09, 1.11)] == [False, True, True, True, False]


@pytest.mark.live
def test_the_command_lays_original_replay_and_cure_side_by_side(tmp_path: Path) -> None:
    document = tmp_path / "laid.json"
    kept = tmp_path / "kept"
    done = new_process("replay", "transfer", CAPTURES / "ethernet-nagle-on.pcapng", "--nodelay", "--json", document, "-o", kept)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.decode().splitlines())) <= 80
    laid = json.loads(document.read_text())
    published.check("transfer", laid)
    assert [one["name"] for one in laid["replays"]] == ["replay", "--nodelay"]
    assert laid["stall"]["family"] == "nagle"
    assert sorted(path.name for path in kept.iterdir()) == ["compared.html", "nodelay.pcapng", "replay.pcapng"]
    page = (kept / "compared.html").read_text()
    assert f"report written: {kept / 'compared.html'}" in " ".join(done.stderr.decode().split())
    assert "A: original; B: replay; C: --nodelay." in page
    assert "fixed it" in page
    shown = [one["capture"] for one in (laid["original"], *laid["replays"])]
    assert all(html.escape(path) in page for path in shown)
    assert re.search(r"C is \d+% faster: ", page)
    nagle = sum(laid["replays"][1]["ledger_s"]["client_to_server"].get(cause, 0) for cause in ("nagle", "nagle-delayed-ack"))
    assert nagle < 0.1 * laid["stall"]["original_stalled_s"]


@pytest.mark.live
def test_an_edited_schedule_is_performed_as_it_says(tmp_path: Path) -> None:
    place = tmp_path / "schedule.json"
    assert new_process("replay", "transfer", CAPTURES / "ethernet-nagle-on.pcapng", "-q", "--schedule", place).returncode == 0
    data = json.loads(place.read_text())
    data["client"]["tasks"] = [[{"write_bytes": 3_000}, {"read_bytes": 7}, {"think_s": 0.15}, {"close": True}]]
    data["server"]["tasks"] = [[{"read_bytes": 3_000}, {"write_bytes": 7}, {"read_bytes": 0}]]
    place.write_text(json.dumps(data))
    document = tmp_path / "laid.json"
    done = new_process("replay", "transfer", "--from-schedule", place, "-q", "--json", document)
    assert (done.returncode, done.stderr) == (0, b"")
    spent_s = json.loads(document.read_text())["original"]["ledger_s"]["client_to_server"]["application"]
    assert spent_s == pytest.approx(0.15, abs=0.02)


def one_task(*steps: object) -> End:
    return End((tuple(steps),))  # type: ignore[arg-type]


def test_two_ends_meet_over_plain_sockets() -> None:
    client = one_task(Write(5_000_000), Read(10))
    server = one_task(Read(5_000_000), Write(10))
    ready: list[tuple[str, int]] = []
    listening = threading.Event()

    def heard(address: tuple[str, int]) -> None:
        ready.append(address)
        listening.set()

    served: list[object] = []
    thread = threading.Thread(target=lambda: served.append(serve(server, ("127.0.0.1", 0), 10, heard, 10)))
    thread.start()
    listening.wait(10)
    done = connect(client, ready[0], 10)
    thread.join()
    assert (done.written_bytes, done.read_bytes) == (5_000_000, 10)
    assert len(served) == 1


def test_nobody_at_the_other_end_is_one_line_and_no_traceback() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(EndFailed, match="cannot connect: Connection refused"):
            connect(one_task(Write(1)), held.getsockname(), 2)


def test_an_end_that_closes_too_soon_is_reported_with_what_is_missing() -> None:
    listening = threading.Event()
    ready: list[tuple[str, int]] = []

    def heard(address: tuple[str, int]) -> None:
        ready.append(address)
        listening.set()

    thread = threading.Thread(target=lambda: serve(one_task(Write(4)), ("127.0.0.1", 0), 10, heard, 10))
    thread.start()
    listening.wait(10)
    with pytest.raises(EndFailed, match="closed 6 bytes earlier"):
        connect(one_task(Read(10)), ready[0], 10)
    thread.join()


def namespaces(processes: set[int] | None = None) -> set[str]:
    """Return the network namespaces of the processes with these IDs. Without IDs, return those of all processes."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and (processes is None or int(process.name) in processes):
            try:
                found.add(str((process / "ns/net").readlink()))
            except OSError:
                continue
    return found


def children_of(pid: int) -> set[int]:
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.add(int(process.name))
    return found


def until(true: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + TIME_LIMIT_S
    while not true():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.02)


@pytest.mark.live
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_nothing_stays_behind_an_abort(number: signal.Signals, code: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tcptrace_lab", "replay", "transfer", str(CAPTURES / "ethernet-slow-reader.pcapng")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
    until(lambda: any(path.stat().st_size for path in tmp_path.glob("*/replay.pcapng")), "the replay did not begin")
    dumpcap = children_of(process.pid)
    private = namespaces(dumpcap) - namespaces({os.getpid()})
    assert private
    process.send_signal(number)
    _, words = process.communicate(timeout=TIME_LIMIT_S)
    assert process.returncode == code, words
    assert b"Traceback" not in words
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in dumpcap), "dumpcap is still there")
    until(lambda: not namespaces() & private, "a namespace is still there")
    if number == signal.SIGKILL:  # after SIGKILL, the next command with a temporary folder removes the rest
        temporary.clear(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.live
def test_a_transfer_that_is_given_up_leaves_no_part_of_a_capture(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    done = new_process("replay", "transfer", CAPTURES / "ethernet-nagle-on.pcapng", "-q", "-o", folder, "--timeout", "0.3")
    assert (done.returncode, "exceeded its time limit" in only_line(done.stderr)) == (5, True)
    assert list(folder.iterdir()) == []


def test_a_longer_or_slower_path_is_given_more_time() -> None:
    """The time limit must be longer than the transfer.

    At 1 s of delay per direction, 12 exchanges take 24 s. At 10 kb/s, 400,000 bytes take 320 s.
    """
    questions = reconstruct(gather([str(CAPTURES / "ethernet-nagle-on.pcapng")]))
    assert patience_s(Changes(delay_ns=10**9).applied(questions)) > 24
    bulk = reconstruct(gather([str(CAPTURES / "ethernet-loss.pcapng")]))
    assert patience_s(Changes(rate_bps=10_000).applied(bulk)) > 320


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_waits_is_ended_at_once_and_its_port_is_free(number: signal.Signals, tmp_path: Path) -> None:
    """The test uses the congestion control reno, which every user can set."""
    command = [sys.executable, "-m", "tcptrace_lab", "replay", "transfer", str(CAPTURES / "ethernet-nagle-on.pcapng")]
    with subprocess.Popen(
        [*command, "--serve", "127.0.0.1:0", "--congestion", "reno"], stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as serving:
        assert serving.stderr is not None
        try:
            while not (line := serving.stderr.readline()).startswith(b"tcptrace-lab: listening at 127.0.0.1 port "):
                assert line, serving.poll()
            serving.send_signal(number)
            _, words = serving.communicate(timeout=TIME_LIMIT_S)
        finally:
            serving.kill()
    assert (serving.returncode, words) == (130, b"")
    with socket.socket() as again:
        again.bind(("127.0.0.1", int(line.split()[-1])))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.live
def test_a_congestion_control_that_the_kernel_has_not_is_reported() -> None:
    done = new_process("replay", "transfer", CAPTURES / "ethernet-nagle-on.pcapng", "-q", "--only-changed", "--congestion", "warp")
    assert (done.returncode, done.stderr) == (
        2,
        b"tcptrace-lab: the kernel rejects the congestion control warp: No such file or directory; choose another value\n",
    )


@pytest.mark.live
def test_without_rights_the_command_says_so_in_one_line() -> None:
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", sys.executable, "-m", "tcptrace_lab"]
    done = subprocess.run(
        [*command, "replay", "transfer", str(CAPTURES / "ethernet-nagle-on.pcapng"), "-q"], capture_output=True, check=False
    )
    assert done.returncode == LabFailed.exit_code, done.stderr
    assert done.stderr.decode().splitlines() == [
        "tcptrace-lab: unshare(CLONE_NEWNET): Operation not permitted; run it as root, because it builds network namespaces"
    ]


def test_what_only_a_schedule_says_needs_no_capture() -> None:
    data = {"schema_version": 2, "path": {"mtu_bytes": 1500}, "client": {"tasks": [[]]}, "server": {"tasks": [[]]}}
    assert from_dict(data).takes_turns
