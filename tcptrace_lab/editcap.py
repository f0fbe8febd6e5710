"""Wireshark's `captype`, `capinfos` and `editcap`, run on one file: what format it has, and its packets as pcapng on a pipe.

Programs are started with argument lists, read nothing from our standard input, and never outlive what they were started for.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from tcptrace_lab.streams import CHUNK_BYTES, written

if TYPE_CHECKING:
    from collections.abc import Iterator

EDITCAP, CAPTYPE, CAPINFOS = "editcap", "captype", "capinfos"

UNKNOWN = "unknown"
"""What captype says of a format that Wireshark does not know."""

ETHERNET = frozenset({"Ethernet", "Ethernet with nettl headers"})
"""What capinfos calls packets that are Ethernet frames (the headers of nettl are not part of them)."""

NO_PROGRESS_S = 60.0
"""A program that gives nothing for so long, while it is waited for, is ended. A heuristic: Wireshark's tools read a gigabyte in some
seconds, and begin to write when they have read a frame."""

BEGUN_BYTES = 4_096
"""Output with which it is clear that there are frames: the blocks before them are smaller. It fits into every pipe."""

WORDS_BYTES = 4_096
"""What is kept of a program's words; they are a line or two."""

REASON_CHARACTERS = 300
"""What is told of them."""

ROOT_WARNING = "Running as user "
"""Begins a line that the tools print when root runs them; it is not about the file."""


class File(NamedTuple):
    """A file for a program.

    Attributes:
        path: its name, or None for a file without one.
        descriptor: where it is open if it has no name.
    """

    path: str | None = None
    descriptor: int = -1

    @property
    def argument(self) -> str:
        """Its name as an argument, which is never taken for an option or for standard input."""
        return f"/dev/fd/{self.descriptor}" if self.path is None else os.path.join(os.curdir, self.path)  # noqa: PTH118  (keeps the dot)

    def rewind(self) -> None:
        """Let the next program begin at its start, where opening a descriptor shares its position (not on Linux)."""
        if self.path is None:
            os.lseek(self.descriptor, 0, os.SEEK_SET)

    @property
    def inherited(self) -> tuple[int, ...]:
        """Descriptors that the program needs."""
        return (self.descriptor,) if self.path is None else ()


def is_installed() -> bool:
    """Whether there is an editcap."""
    return shutil.which(EDITCAP) is not None


def format_of(file: File) -> str | None:
    """The format of `file` as Wireshark calls it, `UNKNOWN` if it does not know it; None if captype is not there or has no answer."""
    answer = _answer(CAPTYPE, file)
    return None if answer is None else answer.removeprefix(f"{file.argument}: ").strip() or None


def is_all_ethernet(file: File) -> bool:
    """Whether `file` holds Ethernet frames and nothing else. Reads all of it."""
    answer = _answer(CAPINFOS, file, "-E")
    if answer is None:
        return False
    _, told, of_file = answer.partition("File encapsulation:")
    first, *of_packets = of_file.splitlines() or [""]
    kinds = {line.rpartition("(")[0].strip() for line in of_packets if line.startswith(" ")} or {first.strip()}
    return bool(told) and kinds <= ETHERNET


def _answer(tool: str, file: File, *options: str) -> str | None:
    """What a tool says of a file; None if it is not there, fails, or takes too long."""
    program = shutil.which(tool)
    if program is None:
        return None
    file.rewind()
    command = [program, *options, file.argument]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, pass_fds=file.inherited, timeout=NO_PROGRESS_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None


class Conversion:
    """One run of editcap. A thread passes its output on to a pipe, and ends it when none comes any more.

    The thread never waits for the reader of the pipe alone: `finish` ends it at any time. Once the reader has seen the end of the
    pipe, editcap has ended and `complaint` says how.
    """

    def __init__(self, file: File, *, as_ethernet: bool = False) -> None:
        """Start it; `as_ethernet` if the file holds Ethernet frames but does not say so as a whole. OSError: there is no editcap."""
        self._argument = file.argument
        self._words = b""
        self._passed_bytes = 0
        self._stalled = self._stopped = False
        self._begun = threading.Event()
        file.rewind()
        self._process = subprocess.Popen(
            [shutil.which(EDITCAP) or EDITCAP, "-F", "pcapng", *(("-T", "ether") if as_ethernet else ()), file.argument, "-"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=file.inherited,
        )
        self._reader, self._writer = os.pipe()
        self._stop_reader, self._stop_writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._thread = threading.Thread(target=self._run, name=EDITCAP, daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """The pipe, as a path to open; until `close`."""
        return f"/dev/fd/{self._reader}"

    def gives_anything(self) -> bool:
        """Wait until there are frames, or the end; whether there is any output."""
        self._begun.wait()
        return self._passed_bytes > 0

    def fails_at_once(self) -> bool:
        """Whether it has complained before it is clear that there are frames; to be asked after `gives_anything`."""
        return self._passed_bytes < BEGUN_BYTES and self.complaint() is not None

    def is_running(self) -> bool:
        """Whether there may be more output."""
        return self._thread.is_alive()

    def complaint(self) -> str | None:
        """Why it did not give the whole file, in words that follow its name; None if it did. Ends it if it still runs."""
        self.finish()
        if self._stalled:
            return f"produced no output for {NO_PROGRESS_S:g} s and was stopped"
        reason = _reason(os.fsdecode(self._words), self._argument)
        code = self._process.returncode
        if reason and (code != 0 or self._words_are_an_error()):
            return f"says: {reason}"
        if code == 0 or self._stopped:
            return None
        return f"ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"

    def finish(self) -> None:
        """End it if it still runs."""
        if self._thread.is_alive():
            os.write(self._stop_writer, b"\0")
            self._thread.join()

    def close(self) -> None:
        """End it if it still runs, and give the pipe up."""
        self.finish()
        for descriptor in (self._reader, self._stop_reader, self._stop_writer):
            os.close(descriptor)

    def _words_are_an_error(self) -> bool:
        """It exits with 0 when a file is damaged behind its first frame."""
        return any(line.startswith(f"{EDITCAP}: ".encode()) for line in self._words.splitlines())

    def _run(self) -> None:
        """The thread: everything that editcap writes, and its end."""
        process = self._process
        try:
            self._pass_on()
            if not (self._stalled or self._stopped):
                process.wait(NO_PROGRESS_S)
        except subprocess.TimeoutExpired:
            self._stalled = True
        finally:
            process.kill()  # nothing happens to one that has ended
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            os.close(self._writer)
            self._begun.set()

    def _pass_on(self) -> None:
        """Copies output and keeps words until both end, nothing comes any more, or nothing more is wanted."""
        assert self._process.stdout is not None  # noqa: S101  (both are pipes)
        assert self._process.stderr is not None  # noqa: S101
        output, words = self._process.stdout.fileno(), self._process.stderr.fileno()
        open_ends = {output, words}
        waiting = select.poll()
        for descriptor in (output, words, self._stop_reader):
            waiting.register(descriptor, select.POLLIN)
        patience_ends = time.monotonic() + NO_PROGRESS_S
        while open_ends:
            ready = [descriptor for descriptor, _ in waiting.poll(max(0.0, patience_ends - time.monotonic()) * 1000)]
            self._stopped = self._stop_reader in ready
            self._stalled = not ready
            if self._stopped or self._stalled:
                return
            for descriptor in ready:
                data = os.read(descriptor, CHUNK_BYTES)
                if not data:
                    waiting.unregister(descriptor)
                    open_ends.remove(descriptor)
                elif descriptor == words:
                    self._words = (self._words + data)[:WORDS_BYTES]
                elif self._write(data):
                    patience_ends = time.monotonic() + NO_PROGRESS_S
                else:
                    self._stopped = True
                    return

    def _write(self, data: bytes) -> bool:
        """Into the pipe, however long its reader takes; False if nothing more is wanted."""
        self._passed_bytes += len(data)
        if self._passed_bytes >= BEGUN_BYTES:
            self._begun.set()
        return written(self._writer, data, self._stop_reader)


@contextlib.contextmanager
def converted(file: File, *, as_ethernet: bool = False) -> Iterator[Conversion]:
    """A conversion that does not outlive the block."""
    conversion = Conversion(file, as_ethernet=as_ethernet)
    try:
        yield conversion
    finally:
        conversion.close()


def _reason(words: str, argument: str) -> str:
    """What a program said of a file, on one line, without its own name and the file's."""
    lines = [line.removeprefix(f"{EDITCAP}: ") for line in words.splitlines() if not line.startswith(ROOT_WARNING)]
    line = " ".join(" ".join(lines).split()).replace(f'The file "{argument}"', "it")
    line = "".join(character if character.isprintable() else "?" for character in line).rstrip(".")
    return line if len(line) <= REASON_CHARACTERS else f"{line[:REASON_CHARACTERS]}…"
