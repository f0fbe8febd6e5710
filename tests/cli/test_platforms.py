"""On macOS and Windows, `analyze` neither imports nor calls what Python lacks there.

The tests run on Linux and pretend to run on the other platforms.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.command import TIME_LIMIT_S
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

FAKED = """
import importlib.abc, os, select, signal, socket, subprocess, sys, sysconfig
import jinja2, numpy, polars, rich.progress, typer.main  # libraries handle their platforms themselves
from typer._completion_classes import completion_init

lacks = json.loads(sys.argv[2])
sysconfig.get_config_vars()  # reads a file named after the real platform

class Refusing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in lacks["modules"]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in lacks["modules"]:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refusing())
for module, names in lacks["names"].items():
    for name in names:
        delattr(sys.modules[module], name)
sys.platform = sys.argv[1]
sys.argv[:] = ["tcptrace-lab", *sys.argv[3:]]

from tcptrace_lab.cli import main
main()
"""

LACKS: dict[str, dict[str, object]] = {
    "darwin": {
        "modules": ["spwd"],
        "names": {
            "os": ["posix_fadvise", "sched_getaffinity", "copy_file_range"],
            "select": ["epoll"],
            "socket": ["AF_NETLINK", "AF_PACKET"],
        },
    },
    "win32": {
        "modules": ["fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"],
        "names": {
            "os": [
                *("O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "copy_file_range", "fchmod", "fork", "geteuid", "getuid", "killpg"),
                *("mkfifo", "posix_fadvise", "pread", "sched_getaffinity", "set_blocking", "setsid", "statvfs", "sysconf", "uname"),
            ],
            "select": ["epoll", "poll"],
            "signal": ["SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "pthread_sigmask", "setitimer", "sigwait"],
            "socket": ["AF_NETLINK", "AF_PACKET", "AF_UNIX"],
        },
    },
}
"""Maps each platform to the modules and names that it lacks, according to Python 3.11's documentation ("Availability: Unix")."""


def run(platform: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", f"import json{FAKED}", platform, json.dumps(LACKS[platform]), *arguments]
    return subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=False)


@pytest.mark.parametrize("platform", LACKS)
def test_analyze_finds_the_same_and_writes_its_report(platform: str, tmp_path: Path) -> None:
    capture = CAPTURES / "ethernet-nagle-on.pcapng"
    done = run(platform, "analyze", capture, "-o", tmp_path / "report.html", "--json", tmp_path / "report.json")
    assert done.returncode == 0, done.stderr.decode()
    assert b"Nagle's algorithm waiting for delayed ACKs took 91% of 527 ms" in done.stdout
    assert json.loads((tmp_path / "report.json").read_bytes())["findings"][0]["id"] == "nagle-delayed-ack"
    assert (tmp_path / "report.html").stat().st_size > 100_000


@pytest.mark.parametrize("platform", LACKS)
def test_help_and_a_missing_file_work(platform: str) -> None:
    assert run(platform, "--help").returncode == 0
    done = run(platform, "analyze", "nothing.pcap")
    assert (done.returncode, done.stderr.count(b"\n")) == (3, 1)
