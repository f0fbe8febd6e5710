"""Runs other analyzers on a file, without a shell and with a time limit, and reads their output line by line.

A missing program raises MissingTool (exit code 5). If a program rejects the file, or stops before its end, Refused is raised with the
program's message. Such a refusal is a result of the comparison, not an error.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from typing import IO, TYPE_CHECKING

from tcptrace_lab.errors import MissingTool
from tcptrace_lab.process import interrupts, temporary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NO_PROGRESS_S = 120.0
"""A program that prints nothing for this time is killed (a heuristic).

tshark reads a hundred thousand packets in a few seconds. tcptrace prints only at the end, but reads millions of packets per second.
"""

_POLL_S = 0.005
"""Interval between checks whether a program has exited, after it has closed its output."""

CHUNK_BYTES = 1 << 16
"""Bytes per read: the capacity of a pipe on Linux."""

MAX_LINE_BYTES = 1 << 22
"""Maximum length of a line. Even a frame with thousands of tunnelled headers has a shorter line."""

WORDS_BYTES = 4_096
"""Number of bytes that are stored from the end of a program's stderr."""

REASON_CHARACTERS = 200
"""Maximum length of a reason taken from stderr."""

ROOT_WARNING = "Running as user "
"""Start of a warning that Wireshark's tools print if root runs them. It does not concern the file."""

PACKAGES = {"tshark": "Debian: apt-get install tshark", "tcptrace": "Debian: apt-get install tcptrace"}
"""How to install each program."""


class Refused(Exception):
    """A program did not read the file, or stopped before the end of the file.

    Attributes:
        program: name of the program.
        words: the program's message, or how the program ended.
    """

    def __init__(self, program: str, words: str) -> None:
        super().__init__(f"{program}: {words}")
        self.program = program
        self.words = words


def found(program: str) -> str:
    """Return the path of `program`. Raises MissingTool if the program is not installed."""
    path = shutil.which(program)
    if path is None:
        raise MissingTool(f"{program} is not installed", remedy=f"install it ({PACKAGES[program]}), or exclude it with --without {program}")
    return path


def argument(path: str) -> str:
    """Return the file name in a form that no program takes for an option or for standard input."""
    return os.path.join(os.curdir, path) if path.startswith("-") else path  # noqa: PTH118  (keeps the dot)


def lines(program: str, options: Sequence[str], *, complaint: str | None = None) -> Iterator[str]:
    """Run `program` with `options`, and yield its output line by line. Closing the iterator kills the program.

    Lines are yielded without line endings. Bytes that are not UTF-8 become U+FFFD. The program runs without the user's settings. A line on
    stderr that starts with `complaint` is an error, even if the exit code is 0.

    Raises:
        MissingTool: the program is not installed.
        Refused: the program ended with an error (raised after its last line), stalled, or printed a line longer than `MAX_LINE_BYTES`.
    """
    command = [found(program), *options]
    with temporary.folder() as no_settings:
        environment = os.environ | {"WIRESHARK_CONFIG_DIR": no_settings, "HOME": no_settings, "LC_ALL": "C", "TZ": "UTC"}
        with interrupts.making(lambda: _started(command, environment), _kill) as process, process:
            assert process.stdout is not None  # noqa: S101  (both are pipes)
            assert process.stderr is not None  # noqa: S101
            words = _Words(process.stderr)
            try:
                for line in _split(program, process.stdout.fileno()):
                    yield line.decode(errors="replace")
                _ended(process)
            finally:
                _kill(process)
                process.wait()
                words.join()
            if process.returncode:
                raise Refused(program, words.reason() or f"ended with exit code {process.returncode}")
            if complaint is not None and words.has(complaint):
                raise Refused(program, words.reason())


def _started(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # a process group of its own, so that its child processes can be killed, too
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children. Nobody has waited for the process, so no other process can have its id."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _ended(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process that has closed its output exits. The process is not reaped, so its process id stays valid."""
    deadline = time.monotonic() + NO_PROGRESS_S
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return
        time.sleep(_POLL_S)


def _split(program: str, descriptor: int) -> Iterator[bytes]:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    pending = b""
    while True:
        if not waiting.poll(NO_PROGRESS_S * 1000):
            raise Refused(program, f"produced no output for {NO_PROGRESS_S:g} s and was stopped")
        data = os.read(descriptor, CHUNK_BYTES)
        if not data:
            break
        *whole, pending = (pending + data).split(b"\n")
        yield from whole
        if len(pending) > MAX_LINE_BYTES:
            raise Refused(program, f"printed a line of more than {MAX_LINE_BYTES:,} bytes and was stopped")
    if pending:
        yield pending


class _Words(threading.Thread):
    """A thread that reads a program's stderr, so that the program never blocks on it. The thread stores the last bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._kept = b""
        self.start()

    def run(self) -> None:
        while data := self._stream.read1(CHUNK_BYTES):  # type: ignore[attr-defined]  # a pipe is buffered
            self._kept = (self._kept + data)[-WORDS_BYTES:]

    def has(self, beginning: str) -> bool:
        """Return whether a line on stderr starts with `beginning`."""
        return any(line.startswith(beginning) for line in self._kept.decode(errors="replace").splitlines())

    def reason(self) -> str:
        """Return the program's message as one line, without the warning about root."""
        lines_kept = [line for line in self._kept.decode(errors="replace").splitlines() if not line.startswith(ROOT_WARNING)]
        line = " ".join(" ".join(lines_kept).split())
        line = "".join(character if character.isprintable() else "?" for character in line).rstrip(".")
        return line if len(line) <= REASON_CHARACTERS else f"{line[:REASON_CHARACTERS]}…"
