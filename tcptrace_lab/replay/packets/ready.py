"""Frames made ready to be sent: read, checked and rewritten once, then laid one behind the other in a file without a name, and mapped.

So sending reads nothing and rewrites nothing, each further round costs nothing, and what a capture takes is disk (`TMPDIR`), not memory.
The files have no name from the beginning: however the program ends, nothing of them stays.
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
    """Frames that can be sent as often as one likes.

    Attributes:
        due_ns: when each is due after the first, never before the one ahead of it.
        start, size: where its bytes begin in `data`, and how many they are.
        data: all of them.
    """

    due_ns: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    data: NDArray[np.uint8]


def timed(prepared: Iterable[tuple[int, bytes]], pace: Pace) -> Iterator[tuple[int, int, bytes]]:
    """(when it is due after the first in nanoseconds, where it begins, bytes) of each frame.

    Args:
        prepared: (time in the capture in nanoseconds, bytes) of each.
        pace: how they are spaced. Where the capture's clock steps back, frames keep their order.
    """
    first = octets = due_ns = 0
    for count, (ts_ns, data) in enumerate(prepared):
        first = first if count else ts_ns
        due_ns = max(due_ns, pace.due_ns(ts_ns - first, octets, count))
        yield due_ns, octets, data
        octets += len(data)


@contextmanager
def ready(frames: Iterable[tuple[int, int, bytes]]) -> Iterator[Ready]:
    """Lay frames ready, as `timed` gives them.

    Raises:
        OutputUnwritable: there is no room for them; and whatever `frames` raises.
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
        with suppress(OSError):  # a full disk refuses even the closing, and was told of
            file.close()


def _write(file: IO[bytes], data: bytes) -> None:
    try:
        file.write(data)
    except OSError as error:
        raise _no_room(error) from error


def _no_room(error: OSError) -> OutputUnwritable:
    return OutputUnwritable.from_os(error, tempfile.gettempdir(), "make room for the frames there, or set TMPDIR")


def _mapped(file: IO[bytes]) -> mmap.mmap | bytes:
    """A file's content; the map lives as long as who looks into it."""
    try:
        file.flush()
    except OSError as error:
        raise _no_room(error) from error
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.tell() else b""  # mmap(2): nothing cannot be mapped
