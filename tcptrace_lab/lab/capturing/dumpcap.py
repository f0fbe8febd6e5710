"""Wireshark's dumpcap as a child: how it is started, what it says, how it is ended. It never outlives us.

dumpcap names its file on stderr once interface and file are open; from then on the kernel keeps every frame for it. At the end it says how
many frames each interface received and how many were dropped.
"""

from __future__ import annotations

import math
import os
import re
import select
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.errors import LabFailed, MissingTool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

TOOLS = ("setpriv", "dumpcap")
PATIENCE_S = 10.0
"""How long dumpcap may take to open its interface, and to end when it is told to; a choice, no source."""
LOOK_S = 0.2
"""So often a wait for its words looks up: a signal that comes just before the wait begins does not end it; a choice, no source."""

_OPENED = "\nFile: "
_COUNTS = re.compile(r"received/dropped on interface '.*': (\d+)/(\d+)")


class CaptureError(LabFailed):
    """dumpcap did not start, did not see the end, or dropped frames."""


@dataclass(slots=True)
class Dumpcap:
    """A running dumpcap.

    Attributes:
        process: the child.
        name: what it is called in errors.
        words: all that it said.
    """

    process: subprocess.Popen[bytes]
    name: str
    words: str = ""

    @property
    def opened(self) -> bool:
        """Whether the kernel keeps frames for it."""
        return _OPENED in self.words

    @property
    def received_and_dropped(self) -> tuple[int, int] | None:
        """Frames that the kernel gave it, and that it or the kernel lost, over all interfaces; None where it did not say."""
        counts = _COUNTS.findall(self.words)
        return (sum(int(count[0]) for count in counts), sum(int(count[1]) for count in counts)) if counts else None

    def await_start(self, given_up: Callable[[], bool] = lambda: False) -> None:
        """Wait until the kernel keeps frames, or the wait is given up. Raises CaptureError where neither happens."""
        self.read_until(lambda: self.opened or given_up(), PATIENCE_S)

    def stop(self) -> None:
        """Have it write what it has, and end."""
        self.process.send_signal(signal.SIGINT)
        self.read_until(lambda: False, PATIENCE_S)
        self.process.wait(PATIENCE_S)

    def read_until(self, done: Callable[[], bool], timeout_s: float | None) -> None:
        """Read its words until `done` (asked at least every `LOOK_S`), or until it has closed its stderr.

        Raises:
            CaptureError: it says nothing for so long, or ends before it has opened anything.
        """
        assert self.process.stderr is not None  # noqa: S101  (it is a pipe)
        deadline_s = time.monotonic() + (math.inf if timeout_s is None else timeout_s)
        stderr_fd = self.process.stderr.fileno()
        while not done():
            readable, _, _ = select.select([stderr_fd], [], [], LOOK_S)
            if not readable:
                if time.monotonic() < deadline_s:
                    continue
                raise CaptureError(f"{self.name}: dumpcap is silent; it said {self.words.strip()!r}")
            words = os.read(stderr_fd, 4096)
            if not words:
                if not self.opened:
                    raise CaptureError(f"{self.name}: dumpcap did not start: {self.words.strip()!r}")
                return
            self.words += words.decode(errors="replace")


def require(tools: Sequence[str] = TOOLS) -> None:
    """Raise MissingTool if a program is not there."""
    for tool in tools:
        if shutil.which(tool) is None:
            raise MissingTool("not installed", where=tool, remedy="install Wireshark's command-line tools and util-linux")


@contextmanager
def running(arguments: Sequence[str], name: str) -> Iterator[Dumpcap]:
    """Run dumpcap while the block lasts; it is killed if it has not been stopped by then, and by the kernel if this thread ends before.

    It has a session of its own: what a terminal sends to us (Ctrl-C) does not reach it unless we pass it on.

    Raises:
        MissingTool: there is no dumpcap or no setpriv.
    """
    require()
    command = ["setpriv", "--pdeathsig", "TERM", "dumpcap", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    try:
        yield Dumpcap(process, name)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
