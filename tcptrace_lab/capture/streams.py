"""Lets the engine read a stream (standard input, a pipe, a FIFO) from its start a second time.

The engine first reads the start of every file. If the engine refuses one file, that file is converted, and the engine reads all files from
the start again. So the first bytes of each stream are kept.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import stat
import threading
from typing import IO, Protocol

from tcptrace_lab.errors import CaptureUnreadable

STDIN = "-"

CHUNK_BYTES = 1 << 16
"""Bytes copied at a time: the capacity of a Linux pipe."""

KEPT_BYTES = 4 << 20
"""Number of bytes kept from the start of a stream. The engine reads a block (256 KiB) of each file before it can refuse one of them. A pipe
can hold further bytes."""


COMPRESSION_MAGICS = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\xfd7zXZ\x00")
"""First bytes of gzip (RFC 1952), zstd (RFC 8878), lz4 and xz files, which the engine decompresses."""


def is_compressed(path: str) -> bool:
    """Return whether the first bytes of the file show that it is compressed. Raises OSError if the file cannot be opened."""
    with open(path, "rb") as file:  # noqa: PTH123  (file names stay as the user gave them)
        return file.read(max(map(len, COMPRESSION_MAGICS))).startswith(COMPRESSION_MAGICS)


_TOO_LATE = CaptureUnreadable(
    "too much of a stream was read when a file was refused for its format", remedy="give the stream as a file, too"
)


class Stream(Protocol):
    """A stream that can be read from its start again, as long as little of it has been read."""

    @property
    def fault(self) -> str | None:
        """Why the stream ended early; None if it has not."""

    def begin(self) -> str:
        """Return a path from which the engine reads the stream from its start.

        Raises CaptureUnreadable if more has been read than was kept.
        """

    def rest_into(self, file: IO[bytes]) -> None:
        """Write the whole stream to `file`. Raises CaptureUnreadable if more was read than kept, OSError if the disk is full."""

    def close(self) -> None:
        """Close the stream."""


def opened(path: str) -> Stream | None:
    """Open `path` as a stream; return None if it is not a stream, or cannot be read.

    For a FIFO, wait until a writer has opened it. Raises OSError if the FIFO cannot be opened.
    """
    if path == STDIN:
        with contextlib.suppress(OSError):
            mode = os.fstat(0).st_mode
            if not stat.S_ISDIR(mode):
                return Redirected(os.dup(0)) if stat.S_ISREG(mode) else Passed(os.dup(0))
        return None  # the engine reports that standard input is closed or a directory
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.stat(path).st_mode):  # noqa: PTH116  (file names stay as the user gave them)
            return Passed(os.open(path, os.O_RDONLY))
    return None


class Redirected:
    """Standard input that is a regular file, so that it can be read again."""

    def __init__(self, descriptor: int) -> None:
        """Take over `descriptor`; `close` closes it."""
        self._descriptor = descriptor
        self._start = os.lseek(descriptor, 0, os.SEEK_CUR)

    @property
    def fault(self) -> str | None:
        """Always None, because the engine itself reports errors of a file."""
        return None

    def begin(self) -> str:
        """Move standard input back to its start position, and return its path."""
        os.lseek(self._descriptor, self._start, os.SEEK_SET)
        return STDIN

    def rest_into(self, file: IO[bytes]) -> None:
        """Write the whole stream to `file`. Raises OSError if there is no room."""
        self.begin()
        with open(self._descriptor, "rb", buffering=0, closefd=False) as stream:
            shutil.copyfileobj(stream, file, CHUNK_BYTES)

    def close(self) -> None:
        """Close the stream."""
        os.close(self._descriptor)


class Passed:
    """A pipe that has to be read twice. A thread copies it to another pipe, and keeps its first bytes."""

    def __init__(self, descriptor: int) -> None:
        """Take over `descriptor`; `close` closes it."""
        self._descriptor = descriptor
        self._kept: bytearray | None = bytearray()
        self._ended = False
        self.fault: str | None = None
        self._thread: threading.Thread | None = None
        self._reader = -1
        self._stop_reader, self._stop_writer = os.pipe()

    def begin(self) -> str:
        """Return the path of a new pipe that contains the stream from its start.

        Raises CaptureUnreadable if more has been read than was kept.
        """
        self._stop()
        if self._kept is None:
            raise _TOO_LATE
        self._reader, writer = os.pipe()
        os.set_blocking(writer, False)
        thread = threading.Thread(target=self._run, args=(writer, bytes(self._kept)), name="stream", daemon=True)
        thread.start()
        self._thread = thread  # assigned after the start, because `_stop` must not join a thread that failed to start
        return f"/dev/fd/{self._reader}"

    def rest_into(self, file: IO[bytes]) -> None:
        """Write the whole stream to `file`. Raises CaptureUnreadable if more was read than kept, OSError if the disk is full."""
        self._stop()
        if self._kept is None:
            raise _TOO_LATE
        file.write(self._kept)
        while not self._ended and (data := os.read(self._descriptor, CHUNK_BYTES)):
            file.write(data)

    def close(self) -> None:
        """Close the stream."""
        self._stop()
        for descriptor in (self._descriptor, self._stop_reader, self._stop_writer):
            os.close(descriptor)

    def _stop(self) -> None:
        """End the thread, even if it is waiting."""
        if self._thread is None:
            return
        os.write(self._stop_writer, b"\0")
        self._thread.join()
        os.read(self._stop_reader, 1)
        os.close(self._reader)
        self._thread = None

    def _run(self, writer: int, kept: bytes) -> None:
        """Write the kept bytes, then copy the rest of the stream. This function runs in the thread."""
        try:
            if written(writer, kept, self._stop_reader):
                self._pass_on(writer)
        except OSError as error:  # for example a closed terminal or a reset connection
            self._ended, self.fault = True, error.strerror or str(error)
        finally:
            os.close(writer)

    def _pass_on(self, writer: int) -> None:
        waiting = select.poll()
        for descriptor in (self._descriptor, self._stop_reader):
            waiting.register(descriptor, select.POLLIN)
        while not self._ended:
            ready = [descriptor for descriptor, _ in waiting.poll()]
            if self._stop_reader in ready:
                return
            data = os.read(self._descriptor, CHUNK_BYTES)
            self._ended = not data
            if self._kept is not None:
                self._kept += data
                if len(self._kept) > KEPT_BYTES:
                    self._kept = None
            if not written(writer, data, self._stop_reader):
                return


def written(writer: int, data: bytes, stop_reader: int) -> bool:
    """Write `data` to a non-blocking pipe until all of it is read.

    Return False if the reader has closed the pipe, or if `stop_reader` becomes readable.
    """
    waiting = select.poll()
    waiting.register(writer, select.POLLOUT)
    waiting.register(stop_reader, select.POLLIN)
    left = memoryview(data)
    while left:
        if stop_reader in [descriptor for descriptor, _ in waiting.poll()]:
            return False
        try:
            left = left[os.write(writer, left) :]
        except BlockingIOError:
            continue
        except BrokenPipeError:
            return False
    return True
