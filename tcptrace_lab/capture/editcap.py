"""Runs Wireshark's `captype`, `capinfos`, `editcap` and `tshark` on a file, to find its format and to convert it to pcapng.

There are three methods of conversion (`Method`). The first is `editcap` without options. The second is `editcap -T ether`, for a format
with a link type per frame if all frames are Ethernet. The third is `tshark`, which finds the IP packets (`ip_packets`) of frames with link
types that pcapng does not have.

The tools are started with argument lists and get no standard input. Each tool ends with the call or `with` block that started it.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from tcptrace_lab.capture.ip_packets import TSHARK
from tcptrace_lab.capture.streams import CHUNK_BYTES, written

if TYPE_CHECKING:
    from collections.abc import Iterator

EDITCAP, CAPTYPE, CAPINFOS = "editcap", "captype", "capinfos"

UNKNOWN = "unknown"
"""captype's output for a format that Wireshark does not know."""

ETHERNET = frozenset({"Ethernet", "Ethernet with nettl headers"})
"""capinfos' names for packets that are Ethernet frames. The frames do not include nettl headers."""

NO_PROGRESS_S = 60.0
"""A tool without output for this time is stopped (a heuristic). Wireshark's tools read a gigabyte in seconds, and start to write after the
first frame."""

BEGUN_BYTES = 4_096
"""Output of at least this size contains frames, because the blocks before the first frame are smaller. Every pipe can hold this many bytes.
"""

WORDS_BYTES = 4_096
"""Limit for the stored messages of a tool, which are one or two lines long."""

REASON_CHARACTERS = 300
"""Limit for the part of a message that the user sees."""

ROOT_WARNING = "Running as user "
"""Start of a line that the tools print when root runs them. The line says nothing about the file."""


WITHOUT_TSHARK = (
    "pcapng does not have the link types of its packets; Wireshark's tshark can read them, but is not installed "
    "(Debian: apt-get install tshark)"
)
"""Message for a file that only tshark can convert, if tshark is not installed."""


class Method(Enum):
    """How the packets of a file are converted to pcapng. The value is the tool with its options."""

    PLAIN = EDITCAP
    AS_ETHERNET = f"{EDITCAP} -T ether"
    IP_PACKETS = TSHARK

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return self.value.split()[0]

    def is_installed(self) -> bool:
        """Return whether the tool is installed."""
        return shutil.which(self.tool) is not None

    def command(self, argument: str) -> list[str]:
        """Return the command line that converts the file `argument`."""
        if self is Method.IP_PACKETS:
            return [sys.executable, "-P", "-m", "tcptrace_lab.capture.ip_packets", argument]
        as_ethernet = ("-T", "ether") if self is Method.AS_ETHERNET else ()
        return [shutil.which(EDITCAP) or EDITCAP, "-F", "pcapng", *as_ethernet, argument, "-"]


class File(NamedTuple):
    """A file for a tool.

    Attributes:
        path: the file's name; None if it has none.
        descriptor: the open descriptor of a file without a name.
    """

    path: str | None = None
    descriptor: int = -1

    @property
    def argument(self) -> str:
        """The file as an argument that no tool mistakes for an option or for standard input."""
        return f"/dev/fd/{self.descriptor}" if self.path is None else os.path.join(os.curdir, self.path)  # noqa: PTH118  (keeps the dot)

    def rewind(self) -> None:
        """Move to the start of the file for the next tool.

        On systems other than Linux, a tool that opens the descriptor continues at this process's position in the file.
        """
        if self.path is None:
            os.lseek(self.descriptor, 0, os.SEEK_SET)

    @property
    def inherited(self) -> tuple[int, ...]:
        """Descriptors that the tool inherits."""
        return (self.descriptor,) if self.path is None else ()


def is_installed() -> bool:
    """Return whether editcap is installed."""
    return shutil.which(EDITCAP) is not None


def format_of(file: File) -> str | None:
    """Return Wireshark's name of the file's format, or `UNKNOWN`; None if captype is not installed or fails."""
    answer = _answer(CAPTYPE, file)
    return None if answer is None else answer.removeprefix(f"{file.argument}: ").strip() or None


def next_method(file: File, failed: Method) -> Method | None:
    """Return the next method for a file that `failed` could not convert; None if the link types are not the reason.

    The search can read all of `file`.
    """
    kinds = _link_types(file)
    if failed is Method.PLAIN and kinds and kinds <= ETHERNET:
        return Method.AS_ETHERNET
    return Method.IP_PACKETS if failed is not Method.IP_PACKETS and kinds else None


def _link_types(file: File) -> set[str]:
    """Return the names of the link types of a file's packets; an empty set if the file cannot be read to its end."""
    answer = _answer(CAPINFOS, file, "-E") or ""
    _, _, of_file = answer.partition("File encapsulation:")
    first, *of_packets = of_file.splitlines() or [""]
    return {line.rpartition("(")[0].strip() for line in of_packets if line.startswith(" ")} or {first.strip()} - {""}


def _answer(tool: str, file: File, *options: str) -> str | None:
    """Run a tool on a file and return its output; None if the tool is not installed, fails, or takes too long."""
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
    """One run of a tool. A thread copies the tool's output to a pipe, and ends a tool that stops writing.

    `finish` can end the thread at any time, even while the pipe is full. When the reader reaches the end of the pipe, the tool has ended,
    and `complaint` says whether it failed.
    """

    def __init__(self, file: File, method: Method) -> None:
        """Start the tool. Raises OSError if the tool is not installed."""
        self._tool = method.tool
        self._argument = file.argument
        self._words = b""
        self._passed_bytes = 0
        self._stalled = self._stopped = False
        self._begun = threading.Event()
        file.rewind()
        self._process = subprocess.Popen(
            method.command(file.argument),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=file.inherited,
        )
        self._reader, self._writer = os.pipe()
        self._stop_reader, self._stop_writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._thread = threading.Thread(target=self._run, name=self._tool, daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """Path of the pipe for the reader; valid until `close`."""
        return f"/dev/fd/{self._reader}"

    def gives_anything(self) -> bool:
        """Wait until the tool has written frames or has ended its output. Return whether it has written anything."""
        self._begun.wait()
        return self._passed_bytes > 0

    def fails_at_once(self) -> bool:
        """Return whether the tool reported an error before it wrote frames. Call this method after `gives_anything`."""
        return self._passed_bytes < BEGUN_BYTES and self.complaint() is not None and not self._stalled

    def is_running(self) -> bool:
        """Return whether the tool can still write output."""
        return self._thread.is_alive()

    def complaint(self) -> str | None:
        """Return why the tool did not convert the whole file, as a phrase after the file's name; None if the whole file was converted.

        A running tool is ended.
        """
        self.finish()
        if self._stalled:
            return f"produced no output for {NO_PROGRESS_S:g} s and was stopped"
        reason = _reason(os.fsdecode(self._words), self._tool, self._argument)
        code = self._process.returncode
        if reason and (code != 0 or self._words_are_an_error()):
            return f"says: {reason}"
        if code == 0 or self._stopped:
            return None
        return f"ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"

    def finish(self) -> None:
        """End the tool if it is still running."""
        if self._thread.is_alive():
            os.write(self._stop_writer, b"\0")
            self._thread.join()

    def close(self) -> None:
        """End the tool if it is still running, and close the pipe."""
        self.finish()
        for descriptor in (self._reader, self._stop_reader, self._stop_writer):
            os.close(descriptor)

    def _words_are_an_error(self) -> bool:
        """Return whether the tool printed an error. editcap exits with 0 even if a file is damaged after its first frame."""
        return any(line.startswith(f"{self._tool}: ".encode()) for line in self._words.splitlines())

    def _run(self) -> None:
        """Copy all output of the tool, then wait until the tool ends. This function runs in the thread."""
        process = self._process
        try:
            self._pass_on()
            if not (self._stalled or self._stopped):
                process.wait(NO_PROGRESS_S)
        except subprocess.TimeoutExpired:
            self._stalled = True
        finally:
            process.kill()  # has no effect on a process that has already ended
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            os.close(self._writer)
            self._begun.set()

    def _pass_on(self) -> None:
        """Copy output and store messages until the tool ends both streams, the tool stops writing, or the reader stops reading."""
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
        """Write `data` to the pipe. Return False if the reader stops before it has read all of `data`."""
        self._passed_bytes += len(data)
        if self._passed_bytes >= BEGUN_BYTES:
            self._begun.set()
        return written(self._writer, data, self._stop_reader)


@contextlib.contextmanager
def converted(file: File, method: Method) -> Iterator[Conversion]:
    """Start a conversion, which ends when the block ends."""
    conversion = Conversion(file, method)
    try:
        yield conversion
    finally:
        conversion.close()


def _reason(words: str, tool: str, argument: str) -> str:
    """Return a tool's message on one line, without the names of the tool and the file."""
    lines = [line.removeprefix(f"{tool}: ") for line in words.splitlines() if not line.startswith(ROOT_WARNING)]
    line = " ".join(" ".join(lines).split()).replace(f'The file "{argument}"', "it")
    line = "".join(character if character.isprintable() else "?" for character in line).rstrip(".")
    return line if len(line) <= REASON_CHARACTERS else f"{line[:REASON_CHARACTERS]}…"
