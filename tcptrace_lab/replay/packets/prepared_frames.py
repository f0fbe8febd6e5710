"""Prepares frames for sending: reads, checks and rewrites them once, stores them in a temporary file, and maps this file into memory.

During sending, no capture is read and no frame is rewritten. Repetitions need no further preparation. A large capture takes disk space
(`TMPDIR`) instead of memory. The temporary files have no directory entry, so the kernel removes them however the process ends.
"""

from __future__ import annotations

import mmap
import struct
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from tcptrace_lab.errors import OutputUnwritable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from tcptrace_lab.replay.packets.pace import Pace

_ROW: Final = struct.Struct("=qqq")


@dataclass(frozen=True, slots=True)
class Ready:
    """Prepared frames, which can be sent any number of times.

    Attributes:
        due_ns: when each frame is due, in ns after the first one; never decreasing.
        start, size: offset of each frame in `data`, and the frame's length in bytes.
        data: the bytes of all frames.
    """

    due_ns: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    data: NDArray[np.uint8]


def timed(prepared: Iterable[tuple[int, bytes]], pace: Pace) -> Iterator[tuple[int, int, bytes]]:
    """Yield three values for each frame: due time in ns after the first frame, offset of the frame in bytes, and the frame's bytes.

    Args:
        prepared: capture timestamp (ns) and bytes of each frame. Frames keep their order, even if timestamps run backwards.
        pace: how frames are spaced.
    """
    first = octets = due_ns = 0
    for count, (ts_ns, data) in enumerate(prepared):
        first = first if count else ts_ns
        due_ns = max(due_ns, pace.due_ns(ts_ns - first, octets, count))
        yield due_ns, octets, data
        octets += len(data)


@contextmanager
def ready(frames: Iterable[tuple[int, int, bytes]]) -> Iterator[Ready]:
    """Store the frames that `timed` yields in temporary files, and map these files into memory.

    Raises:
        OutputUnwritable: no disk space for the frames. Errors raised by `frames` pass through.
    """
    with _unnamed() as octets, _unnamed() as rows:
        for due_ns, start, data in frames:
            _write(rows, _ROW.pack(due_ns, start, len(data)))
            _write(octets, data)
        table = np.frombuffer(_mapped(rows), np.int64).reshape(-1, 3)
        yield Ready(table[:, 0], table[:, 1], table[:, 2], np.frombuffer(_mapped(octets), np.uint8))


@contextmanager
def _unnamed() -> Iterator[IO[bytes]]:
    try:
        file = tempfile.TemporaryFile(prefix="tcptrace-lab-")  # noqa: SIM115  (closed below)
    except OSError as error:
        raise _no_room(error) from error
    try:
        yield file
    finally:
        with suppress(OSError):  # on a full disk, close() fails too; the error was already reported
            file.close()


def _write(file: IO[bytes], data: bytes) -> None:
    try:
        file.write(data)
    except OSError as error:
        raise _no_room(error) from error


def _no_room(error: OSError) -> OutputUnwritable:
    return OutputUnwritable.from_os(error, tempfile.gettempdir(), "make room for the frames there, or set TMPDIR")


def _mapped(file: IO[bytes]) -> mmap.mmap | bytes:
    """Return a file's content as a memory map. The map stays valid while it is in use."""
    try:
        file.flush()
    except OSError as error:
        raise _no_room(error) from error
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.tell() else b""  # mmap(2) rejects an empty file
