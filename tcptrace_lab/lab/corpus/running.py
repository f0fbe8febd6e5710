"""Runs a program of the corpus: server and client at the ends of a private network, with their child processes in process namespaces.

When the block or this process ends, the kernel ends every process in these namespaces, even servers in the background.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tcptrace_lab.errors import LabFailed, MissingTool
from tcptrace_lab.lab.capturing.capture import capturing
from tcptrace_lab.lab.corpus.programs.program import FILE, PATH, PORT, filled
from tcptrace_lab.lab.experiment import SNAPLEN_BYTES, in_real_time
from tcptrace_lab.lab.networks.network import SERVER_IPV4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tcptrace_lab.lab.capturing.capture import Capture
    from tcptrace_lab.lab.corpus.programs.program import Program
    from tcptrace_lab.lab.networks.network import Medium, Namespace, Network

SUBNET = "192.0.2.0/24"
"""The network that both ends reach directly. A namespace cannot choose its default congestion control, but a route can."""
PREPARE_TIMEOUT_S, READY_TIMEOUT_S, LONGEST_S = 30.0, 15.0, 5.0
"""Maximum times for preparations, for a server to listen, and for a client to work; a client that needs longer is ended. Choices, no
source."""
ENDS = ("client", "server")
LOOK_S = 0.05
LISTENING = "0A"
SETTLE_S = 0.4
"""The capture continues for this time after the client ended, so that it contains the last FIN."""
MAX_WORDS = 300  # characters of a failed program's last output


@dataclass(frozen=True, slots=True)
class Paused:
    """A host whose processes stop for a part of each period: short periods for a busy machine, long ones for a suspended program.

    Attributes:
        end: `client` or `server`.
        period_s: the period.
        paused_s: the part of it in which no process of this end runs.
    """

    end: str
    period_s: float
    paused_s: float


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a transfer.

    Attributes:
        network: its network, whose logs show what the relay did.
        frames: capture point → frames captured.
        is_complete: whether the client ended by itself.
        duration_s: how long the client worked.
    """

    network: Network
    frames: dict[str, int]
    is_complete: bool
    duration_s: float


def run(
    program: Program,
    medium: Medium,
    congestion_control: str,
    paused: Paused | None,
    directory: Path,
    beside: Callable[[Network, Path], AbstractContextManager[object]],
) -> Ran:
    """Make the network, start the server, and capture both ends into `directory` while the client does its work.

    The path's processes have priority over all other programs of the machine; server and client do not.

    Args:
        program: the program to run.
        medium: the network between the ends.
        congestion_control: of both ends.
        paused: the end whose processes are stopped periodically.
        directory: folder for the captures.
        beside: a context that is active during the captures, such as the kernel's tracer.

    Raises:
        MissingTool: a program is not installed.
        LabFailed: preparations fail, the server does not listen, or the client fails.
    """
    if missing := program.missing():
        raise MissingTool("not installed", where=", ".join(missing), remedy=f"apt-get install {program.packages}")
    with in_real_time(), ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="corpus-")))
        folder.chmod(0o755)
        network = stack.enter_context(medium.network())
        for end in (network.client, network.server):
            end.run("ip", "route", "replace", SUBNET, "dev", network.interface, "congctl", congestion_control)
        _prepare(program, folder, network)
        server = stack.enter_context(_running(network.server, program.server, folder, "server"))
        _await_listening(network.server, server, folder)
        _wait_for(program.before, network.server, folder, "before")
        stack.enter_context(beside(network, directory))
        captures = {end: stack.enter_context(_capturing(network, end, directory)) for end in ENDS}
        begun_s = time.monotonic()
        with _running(network.client, program.client, folder, "client") as client, _holding(paused, {"client": client, "server": server}):
            is_complete = _ends(client, folder)
        duration_s = time.monotonic() - begun_s
        time.sleep(SETTLE_S)
    return Ran(network, {end: _frames(capture) for end, capture in captures.items()}, is_complete, duration_s)


def _capturing(network: Network, end: str, directory: Path) -> AbstractContextManager[Capture]:
    return capturing(network.points[end], directory / f"{end}.pcapng", snaplen_bytes=SNAPLEN_BYTES)


def _frames(capture: Capture) -> int:
    received_and_dropped = capture.dumpcap.received_and_dropped
    return received_and_dropped[0] if received_and_dropped else 0


def _prepare(program: Program, folder: Path, network: Network) -> None:
    if program.file_bytes:
        (folder / FILE).write_bytes(os.urandom(program.file_bytes))
        (folder / FILE).chmod(0o644)
    for name, text in program.files.items():
        (folder / name).write_text(filled(text, folder, SERVER_IPV4))
    _wait_for(program.prepare, network.server, folder, "prepare")


def _wait_for(command: str, space: Namespace, folder: Path, name: str) -> None:
    if command:
        with _running(space, command, folder, name) as process:
            if process.wait(PREPARE_TIMEOUT_S):
                raise _failed(name, folder)


def _ends(client: subprocess.Popen[bytes], folder: Path) -> bool:
    try:
        failed = client.wait(LONGEST_S)
    except subprocess.TimeoutExpired:
        return False
    if failed:
        raise _failed("client", folder)
    return True


def _failed(name: str, folder: Path) -> LabFailed:
    return LabFailed(f"{name} fails: {(folder / f'{name}.txt').read_text(errors='replace').strip()[-MAX_WORDS:]}")


@contextmanager
def _running(space: Namespace, command: str, folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a shell command in a network namespace, with normal priority. It and all its child processes end with the block."""
    whole = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child"]
    whole += ["chrt", "--other", "0", "sh", "-c", filled(command, folder, SERVER_IPV4)]
    with (folder / f"{name}.txt").open("wb") as words, space.entered():
        process = subprocess.Popen(
            whole, stdin=subprocess.DEVNULL, stdout=words, stderr=words, cwd=folder, env=os.environ | {"PATH": PATH}, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextmanager
def _holding(paused: Paused | None, ends: dict[str, subprocess.Popen[bytes]]) -> Iterator[None]:
    if paused is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_hold, args=(paused, ends[paused.end].pid, done), name="holding", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _hold(paused: Paused, of: int, done: threading.Event) -> None:
    while not done.wait(paused.period_s - paused.paused_s):
        stopped = _descendants(of)
        for process in stopped:
            _signal(process, signal.SIGSTOP)
        done.wait(paused.paused_s)
        for process in stopped:
            _signal(process, signal.SIGCONT)


def _descendants(process: int) -> list[int]:
    """Return all child processes of a process, direct and indirect."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text().split()]
        except OSError:  # it has ended meanwhile
            continue
        for child in children:
            found += [child, *_descendants(child)]
    return found


def _signal(process: int, which: signal.Signals) -> None:
    try:
        os.kill(process, which)
    except ProcessLookupError:
        return


def _await_listening(space: Namespace, server: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until the server listens, by the kernel's table of sockets: a test connection would be an additional one for the server."""
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while not _listens(space):
        if server.poll() is not None or time.monotonic() > deadline_s:
            raise _failed("server", folder)
        time.sleep(LOOK_S)


def _listens(server: Namespace) -> bool:
    """Lines of proc_net_tcp(5) have the local address and port, the remote ones, and the state, all in hexadecimal digits."""
    with server.entered():
        lines = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/thread-self/net", table).read_text().splitlines()[1:]]
    return any(words[1].endswith(f":{PORT:04X}") and words[3] == LISTENING for words in lines)
