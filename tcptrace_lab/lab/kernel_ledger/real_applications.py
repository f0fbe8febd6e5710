"""Transfers by programs that nobody made for us: a server and its client, each in its end of a private network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tcptrace_lab.errors import LabFailed, MissingTool
from tcptrace_lab.lab.capturing.capture import capturing
from tcptrace_lab.lab.experiment import SNAPLEN_BYTES, in_real_time
from tcptrace_lab.lab.networks.network import SERVER_IPV4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from tcptrace_lab.lab.networks.network import Medium, Namespace, Network

PORT = 8_000
SUBNET = "192.0.2.0/24"
"""What both ends reach directly; a namespace may not choose its default congestion control, a route may."""
FILE = "file.bin"
READY_TIMEOUT_S, END_TIMEOUT_S = 15.0, 25.0
"""How long a server may take to listen, and a client to end; choices, no source."""
LOOK_S = 0.05
LISTENING = "0A"
SETTLE_S = 0.4
"""After the client's end so long is captured: the last FIN passes."""
ELSEWHERE = "/usr/sbin"
"""Where Debian keeps servers."""


@dataclass(frozen=True, slots=True)
class Real:
    """A server and a client.

    Attributes:
        medium: the network between them.
        server, client: commands; `{address}`, `{port}`, `{folder}` are filled in, and `{file}` with a file of `file_bytes`.
        congestion_control: of both ends.
        prepare: makes what else they need in their folder.
    """

    medium: Medium
    server: tuple[str, ...]
    client: tuple[str, ...]
    congestion_control: str = "cubic"
    file_bytes: int = 0
    prepare: Callable[[Path], None] | None = None

    def run(self, directory: Path, beside: Callable[[Network, Path], AbstractContextManager[object]]) -> None:
        """Make the network, capture both ends into `directory`, and let the client do its work.

        The path goes before all other programs of the machine; these programs do not.

        Raises:
            MissingTool: a program is not installed.
            LabFailed: the server does not listen, or the client does not end well.
        """
        with in_real_time(), ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="kernel-ledger-")))
            folder.chmod(0o755)
            self._prepare(folder)
            network = stack.enter_context(self.medium.network())
            for end in (network.client, network.server):
                end.run("ip", "route", "replace", SUBNET, "dev", network.interface, "congctl", self.congestion_control)
            stack.enter_context(beside(network, directory))
            words = {"address": SERVER_IPV4, "port": str(PORT), "folder": str(folder), "file": str(folder / FILE)}
            server, client = (_filled(command, words) for command in (self.server, self.client))
            for vantage in ("client", "server"):
                point, file = network.points[vantage], directory / f"{vantage}.pcapng"
                stack.enter_context(capturing(point, file, snaplen_bytes=SNAPLEN_BYTES))
            stack.enter_context(_running(network.server, server, folder))
            _await_listening(network.server)
            with _running(network.client, client, folder) as process:
                if process.wait(END_TIMEOUT_S):
                    raise LabFailed(f"the client fails: {(folder / 'client.txt').read_text(errors='replace')[-300:]}", where=client[0])
            time.sleep(SETTLE_S)

    def _prepare(self, folder: Path) -> None:
        if self.file_bytes:
            (folder / FILE).write_bytes(os.urandom(self.file_bytes))
            (folder / FILE).chmod(0o644)
        if self.prepare is not None:
            self.prepare(folder)


def _filled(command: tuple[str, ...], words: Mapping[str, str]) -> list[str]:
    found = shutil.which(command[0], path=os.environ.get("PATH", os.defpath) + os.pathsep + ELSEWHERE)
    if found is None:
        raise MissingTool("not installed", where=command[0], remedy="install it, or leave its transfers out")
    return [found, *(word.format(**words) for word in command[1:])]


@contextmanager
def _running(space: Namespace, command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a namespace, with the priority of any other; it ends with the block, or with this process."""
    name = "client" if (folder / "server.txt").exists() else "server"
    with (folder / f"{name}.txt").open("wb") as words, space.entered():
        whole = ["chrt", "--other", "0", "setpriv", "--pdeathsig", "TERM", *command]
        process = subprocess.Popen(whole, stdin=subprocess.DEVNULL, stdout=words, stderr=words, cwd=folder)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()


def _await_listening(server: Namespace) -> None:
    """By the kernel's table of sockets: a connection to find it out would be one more for the server."""
    deadline_s = time.monotonic() + READY_TIMEOUT_S
    while not _listens(server):
        if time.monotonic() > deadline_s:
            raise LabFailed("the server does not listen", where=f"{SERVER_IPV4}:{PORT}")
        time.sleep(LOOK_S)


def _listens(server: Namespace) -> bool:
    """Lines of proc_net_tcp(5) have the local address and port, the remote ones, and the state, all in hexadecimal digits."""
    with server.entered():
        lines = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/thread-self/net", table).read_text().splitlines()[1:]]
    return any(words[1].endswith(f":{PORT:04X}") and words[3] == LISTENING for words in lines)


PYTHON = sys.executable


def nginx_settings(*lines: str) -> Callable[[Path], None]:
    """Settings of an nginx that serves its folder from one process in the foreground."""

    def write(folder: Path) -> None:
        server = f"listen {PORT}; root {folder}; {' '.join(lines)}"
        paths = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        text = f"daemon off; master_process off; pid {folder}/pid; error_log stderr; events {{}} http {{ {paths} access_log off; "
        (folder / "nginx.conf").write_text(f"{text} sendfile on; server {{ {server} }} }}\n")

    return write


def ssh_keys(folder: Path) -> None:
    """Keys of a host and of a user who may log in with them, both for this one transfer."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)  # noqa: S607
    Path("/run/sshd").mkdir(exist_ok=True)  # where sshd goes without rights; it does not start without it


SSHD = (
    *("sshd", "-D", "-e", "-f", "/dev/null", "-p", "{port}", "-h", "{folder}/host"),
    *(
        "-o",
        "AuthorizedKeysFile={folder}/user.pub",
        "-o",
        "StrictModes=no",
        "-o",
        "PermitRootLogin=yes",
        "-o",
        "PidFile=none",
        "-o",
        "Subsystem=sftp internal-sftp",
    ),
)
SSH = (
    *("-i", "{folder}/user", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes"),
    *("-o", "BatchMode=yes", "-o", "LogLevel=ERROR"),
)
