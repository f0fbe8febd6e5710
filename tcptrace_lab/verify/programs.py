"""Other analyzers, run on one file: argument lists only, their output line by line, and never longer than it goes on.

A program that is not there is MissingTool (exit code 5). One that will not take the file, or stops in it, is Refused with
the program's own words: a fact about the comparison, not an error of it.
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
"""A program that gives nothing for so long is ended. A heuristic: tshark reads a hundred thousand packets in some seconds, and tcptrace
prints when it has read all, millions of packets a second."""

_POLL_S = 0.005
"""How often the end of a program is looked for whose output has ended: it ends with it, or soon after."""

CHUNK_BYTES = 1 << 16
"""Bytes read at a time: what a pipe of Linux holds."""

MAX_LINE_BYTES = 1 << 22
"""Longest line taken; a frame with thousands of tunnelled headers stays below."""

WORDS_BYTES = 4_096
"""What is kept of a program's words on stderr: the last of them."""

REASON_CHARACTERS = 200
"""What is told of them."""

ROOT_WARNING = "Running as user "
"""Begins a line that Wireshark's tools print when root runs them; it is not about the file."""

PACKAGES = {"tshark": "Debian: apt-get install tshark", "tcptrace": "Debian: apt-get install tcptrace"}
"""Program → how it is had."""


class Refused(Exception):
    """A program did not read the file, or not to its end.

    Attributes:
        program: its name.
        words: what it said, or how it ended.
    """

    def __init__(self, program: str, words: str) -> None:
        super().__init__(f"{program}: {words}")
        self.program = program
        self.words = words


def found(program: str) -> str:
    """The path of `program`. Raises MissingTool where there is none."""
    path = shutil.which(program)
    if path is None:
        raise MissingTool(
            f"{program} is not installed", remedy=f"install it ({PACKAGES[program]}), or leave it out with --without {program}"
        )
    return path


def argument(path: str) -> str:
    """A file name that no program takes for an option or for standard input."""
    return os.path.join(os.curdir, path) if path.startswith("-") else path  # noqa: PTH118  (keeps the dot)


def lines(program: str, options: Sequence[str], *, complaint: str | None = None) -> Iterator[str]:
    """What `program` prints with `options`, line by line, while it runs; it is ended with the iterator.

    Lines come without their ends; bytes that are no UTF-8 become U+FFFD. The program sees no settings of the user. `complaint` begins words
    on stderr that are an error, although the program ends as if there were none.

    Raises:
        MissingTool: it is not installed.
        Refused: after its last line, if it ended with an error; or if it stalls, or a line passes `MAX_LINE_BYTES`.
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
        start_new_session=True,  # a group of its own, so that what it starts ends with it
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it and what it started. Before it is waited for, its number is its own."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _ended(process: subprocess.Popen[bytes]) -> None:
    """Waits for the end of one whose output has ended, without taking its number away from it."""
    deadline = time.monotonic() + NO_PROGRESS_S
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return
        time.sleep(_POLL_S)


def _split(program: str, descriptor: int) -> Iterator[bytes]:
    """Whole lines from a pipe."""
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
    """Takes what a program says on stderr, so that it never waits for us, and keeps the end of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._kept = b""
        self.start()

    def run(self) -> None:
        while data := self._stream.read1(CHUNK_BYTES):  # type: ignore[attr-defined]  # a pipe is buffered
            self._kept = (self._kept + data)[-WORDS_BYTES:]

    def has(self, beginning: str) -> bool:
        """Whether a line of it begins so."""
        return any(line.startswith(beginning) for line in self._kept.decode(errors="replace").splitlines())

    def reason(self) -> str:
        """On one line, without the warning about root."""
        said = [line for line in self._kept.decode(errors="replace").splitlines() if not line.startswith(ROOT_WARNING)]
        line = " ".join(" ".join(said).split())
        line = "".join(character if character.isprintable() else "?" for character in line).rstrip(".")
        return line if len(line) <= REASON_CHARACTERS else f"{line[:REASON_CHARACTERS]}…"
