"""Runs the server and the client of a corpus program at the ends of a private network, each in its own PID namespace.

When the run or this process ends, the kernel ends every process in these namespaces, even servers in the background.
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
from tcptrace_lab.lab.networks.network import SERVER_IPV4, SERVER_MAC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tcptrace_lab.lab.capturing.capture import Capture
    from tcptrace_lab.lab.corpus.programs.program import Program
    from tcptrace_lab.lab.networks.network import Medium, Namespace, Network

SUBNET = "192.0.2.0/24"
"""The network of both ends. Its route sets the congestion control, because a namespace has no default of its own."""
PREPARE_TIMEOUT_S, READY_TIMEOUT_S, LONGEST_S = 30.0, 15.0, 5.0
"""Time limits for preparations, for a server to start listening, and for a client's work (choices).

A client that exceeds its limit is ended.
"""
ENDS = ("client", "server")
LOOK_S = 0.05
LISTENING = "0A"
SETTLE_S = 0.4
"""Time for which the capture continues after the client has ended, so that it contains the last FIN."""
FIRST_OTHER_HOST, FIRST_OTHER_PORT = 10, 8_100
"""The last byte of the first additional server's IPv4 address, and the first port of competing servers (choices)."""
HEAD_START_S = 0.3
"""Time between the start of competing clients and the start of the client, so that the bottleneck is in use (a choice)."""
MAX_WORDS = 300  # number of characters of a failed program's last output that an error message quotes


@dataclass(frozen=True, slots=True)
class Paused:
    """One end whose processes are stopped for a part of each period.

    Short periods emulate a busy machine. Long periods emulate a suspended program.

    Attributes:
        end: `client` or `server`.
        period_s: the period.
        paused_s: the part of each period in which no process of this end runs.
    """

    end: str
    period_s: float
    paused_s: float


@dataclass(frozen=True, slots=True)
class Competitor:
    """Another program over the same bottleneck. It starts shortly before the client, and ends with the client.

    Attributes:
        program: the competing program.
        is_other_host: True if its server has an address of its own. Otherwise, it has the main server's address and another port.
    """

    program: Program
    is_other_host: bool

    def place(self, number: int) -> tuple[str, int]:
        """Return address and port of the server of competitor `number`, counted from 0."""
        address = SERVER_IPV4.replace(".2.2", f".2.{FIRST_OTHER_HOST + number}") if self.is_other_host else SERVER_IPV4
        return address, FIRST_OTHER_PORT + number


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a transfer.

    Attributes:
        network: network of the transfer. Its logs show what the relay did.
        frames: number of captured frames at each capture point.
        is_complete: True if the client ended by itself.
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
    competitors: Sequence[Competitor] = (),
) -> Ran:
    """Make the network, start the server, and capture both ends into `directory` while the client does its work.

    The processes that emulate the path have priority over all other programs of the machine. Server and client have normal priority.

    Args:
        program: the program to run.
        medium: the network between the ends.
        congestion_control: the congestion control of both ends.
        paused: the end whose processes are stopped periodically.
        directory: folder for the captures.
        beside: a context that is active during the captures, for example the kernel's tracer.
        competitors: other programs over the same path. The captures contain the connections of the competitors, too.

    Raises:
        MissingTool: a program is not installed.
        LabFailed: preparations fail, the server does not listen, or the client fails.
    """
    for one in (program, *(competitor.program for competitor in competitors)):
        if missing := one.missing():
            raise MissingTool("not installed", where=", ".join(missing), remedy=f"apt-get install {one.packages}")
    with in_real_time(), ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="corpus-")))
        folder.chmod(0o755)
        network = stack.enter_context(medium.network())
        for end in (network.client, network.server):
            end.run("ip", "route", "replace", SUBNET, "dev", network.interface, "congctl", congestion_control)
        site = _Site(folder, SERVER_IPV4, PORT)
        server = stack.enter_context(_serving(program, site, network))
        others = []
        for number, competitor in enumerate(competitors):
            other = _Site(folder / f"competitor-{number}", *competitor.place(number))
            other.folder.mkdir()
            if competitor.is_other_host:
                _add_host(network, other.address)
            stack.enter_context(_serving(competitor.program, other, network))
            others.append((competitor.program, other))
        stack.enter_context(beside(network, directory))
        captures = {end: stack.enter_context(_capturing(network, end, directory)) for end in ENDS}
        with _competing(others, network):
            begun_s = time.monotonic()
            with _running(network.client, program.client, site, "client") as client, _holding(paused, {"client": client, "server": server}):
                is_complete = _ends(client, site)
            duration_s = time.monotonic() - begun_s
        time.sleep(SETTLE_S)
    return Ran(network, {end: _frames(capture) for end, capture in captures.items()}, is_complete, duration_s)


@dataclass(frozen=True, slots=True)
class _Site:
    """The folder in which a program works, and the address and port of its server."""

    folder: Path
    address: str
    port: int

    def filled(self, text: str) -> str:
        return filled(text, self.folder, self.address, self.port)


@contextmanager
def _serving(program: Program, site: _Site, network: Network) -> Iterator[subprocess.Popen[bytes]]:
    _prepare(program, site, network)
    with _running(network.server, program.server, site, "server") as server:
        _await_listening(network.server, server, site)
        _wait_for(program.before, network.server, site, "before")
        yield server


@contextmanager
def _competing(others: Sequence[tuple[Program, _Site]], network: Network) -> Iterator[None]:
    """Run the clients of the competing programs during the block.

    Raises:
        LabFailed: a client fails during the block. A client can end successfully before the block does.
    """
    with ExitStack() as stack:
        clients = [(stack.enter_context(_running(network.client, program.client, site, "client")), site) for program, site in others]
        if clients:
            time.sleep(HEAD_START_S)
        yield
        for client, site in clients:
            if client.poll():
                raise _failed("client", site)


def _add_host(network: Network, address: str) -> None:
    """Give the server's namespace a second address, which stands for another host. Add it to the client's neighbour table, too."""
    network.server.run("ip", "address", "add", f"{address}/24", "dev", network.interface)
    network.client.run("ip", "neighbour", "add", address, "lladdr", SERVER_MAC, "dev", network.interface, "nud", "permanent")


def _capturing(network: Network, end: str, directory: Path) -> AbstractContextManager[Capture]:
    return capturing(network.points[end], directory / f"{end}.pcapng", snaplen_bytes=SNAPLEN_BYTES)


def _frames(capture: Capture) -> int:
    received_and_dropped = capture.dumpcap.received_and_dropped
    return received_and_dropped[0] if received_and_dropped else 0


def _prepare(program: Program, site: _Site, network: Network) -> None:
    if program.file_bytes:
        (site.folder / FILE).write_bytes(os.urandom(program.file_bytes))
        (site.folder / FILE).chmod(0o644)
    for name, text in program.files.items():
        (site.folder / name).write_text(site.filled(text))
    _wait_for(program.prepare, network.server, site, "prepare")


def _wait_for(command: str, space: Namespace, site: _Site, name: str) -> None:
    if command:
        with _running(space, command, site, name) as process:
            if process.wait(PREPARE_TIMEOUT_S):
                raise _failed(name, site)


def _ends(client: subprocess.Popen[bytes], site: _Site) -> bool:
    try:
        failed = client.wait(LONGEST_S)
    except subprocess.TimeoutExpired:
        return False
    if failed:
        raise _failed("client", site)
    return True


def _failed(name: str, site: _Site) -> LabFailed:
    return LabFailed(f"{name} fails: {(site.folder / f'{name}.txt').read_text(errors='replace').strip()[-MAX_WORDS:]}")


@contextmanager
def _running(space: Namespace, command: str, site: _Site, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a shell command in a network namespace, with normal priority. The command and all its child processes end with the block."""
    whole = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child"]
    whole += ["chrt", "--other", "0", "sh", "-c", site.filled(command)]
    with (site.folder / f"{name}.txt").open("wb") as words, space.entered():
        process = subprocess.Popen(
            whole,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            cwd=site.folder,
            env=os.environ | {"PATH": PATH},
            start_new_session=True,
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
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text().split()]
        except OSError:  # the process has ended in the meantime
            continue
        for child in children:
            found += [child, *_descendants(child)]
    return found


def _signal(process: int, which: signal.Signals) -> None:
    try:
        os.kill(process, which)
    except ProcessLookupError:
        return


def _await_listening(space: Namespace, server: subprocess.Popen[bytes], site: _Site) -> None:
    """Wait until the kernel's socket table shows that the server listens. A test connection would disturb the server."""
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while not _listens(space, site.port):
        if server.poll() is not None or time.monotonic() > deadline_s:
            raise _failed("server", site)
        time.sleep(LOOK_S)


def _listens(server: Namespace, port: int) -> bool:
    """Return whether a socket listens on `port`.

    A line of proc_net_tcp(5) has local address and port, remote address and port, and the state, all in hexadecimal digits.
    """
    with server.entered():
        lines = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/thread-self/net", table).read_text().splitlines()[1:]]
    return any(words[1].endswith(f":{port:04X}") and words[3] == LISTENING for words in lines)
