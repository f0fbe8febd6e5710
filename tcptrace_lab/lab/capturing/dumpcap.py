"""Runs Wireshark's dumpcap as a child process: starts it, reads its output, and ends it.

dumpcap never outlives this process. When dumpcap has opened the interface and the file, it prints the file's name on stderr. From then on,
the kernel buffers frames for dumpcap. At the end, dumpcap prints the numbers of received and dropped frames of each interface.
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
"""Maximum time in which dumpcap must open its interface, or end after a signal (a choice)."""
LOOK_S = 0.2
"""Interval at which `read_until` calls `done` while dumpcap prints nothing (a choice).

A signal to this process does not end the wait for output, so `read_until` must poll.
"""

_OPENED = "\nFile: "
_COUNTS = re.compile(r"received/dropped on interface '.*': (\d+)/(\d+)")


class CaptureError(LabFailed):
    """The capture is incomplete.

    dumpcap did not start, did not capture the end of the connections, or dropped frames.
    """


@dataclass(slots=True)
class Dumpcap:
    """A running dumpcap.

    Attributes:
        process: the child process.
        name: name of the process in error messages.
        words: output of the process so far.
    """

    process: subprocess.Popen[bytes]
    name: str
    words: str = ""

    @property
    def opened(self) -> bool:
        """True if the capture has started."""
        return _OPENED in self.words

    @property
    def received_and_dropped(self) -> tuple[int, int] | None:
        """Return the numbers of received and dropped frames of all interfaces together; None if dumpcap did not report them."""
        counts = _COUNTS.findall(self.words)
        return (sum(int(count[0]) for count in counts), sum(int(count[1]) for count in counts)) if counts else None

    def await_start(self, given_up: Callable[[], bool] = lambda: False) -> None:
        """Wait until the capture starts, or until `given_up` returns true. Raise CaptureError on a timeout."""
        self.read_until(lambda: self.opened or given_up(), PATIENCE_S)

    def stop(self) -> None:
        """Signal dumpcap to write its buffered frames and exit."""
        self.process.send_signal(signal.SIGINT)
        self.read_until(lambda: False, PATIENCE_S)
        self.process.wait(PATIENCE_S)

    def read_until(self, done: Callable[[], bool], timeout_s: float | None) -> None:
        """Read dumpcap's output until `done` returns true (checked at least every `LOOK_S`), or until dumpcap closes stderr.

        Raises:
            CaptureError: the timeout has passed, or dumpcap ended before the capture started.
        """
        assert self.process.stderr is not None  # noqa: S101  (it is a pipe)
        deadline_s = time.monotonic() + (math.inf if timeout_s is None else timeout_s)
        stderr_fd = self.process.stderr.fileno()
        while not done():
            readable, _, _ = select.select([stderr_fd], [], [], LOOK_S)
            if not readable:
                if time.monotonic() < deadline_s:
                    continue
                raise CaptureError(f"{self.name}: dumpcap stopped responding after {self.words.strip()!r}")
            words = os.read(stderr_fd, 4096)
            if not words:
                if not self.opened:
                    raise CaptureError(f"{self.name}: dumpcap did not start: {self.words.strip()!r}")
                return
            self.words += words.decode(errors="replace")


def require(tools: Sequence[str] = TOOLS) -> None:
    """Raise MissingTool if a program in `tools` is not installed."""
    for tool in tools:
        if shutil.which(tool) is None:
            raise MissingTool("not installed", where=tool, remedy="install Wireshark's command-line tools and util-linux")


@contextmanager
def running(arguments: Sequence[str], name: str) -> Iterator[Dumpcap]:
    """Run dumpcap during the `with` block. If it still runs after the block, it is killed.

    If this thread ends first, the kernel terminates dumpcap. dumpcap runs in its own session, so it does not receive Ctrl-C.

    Raises:
        MissingTool: dumpcap or setpriv is not installed.
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
