"""All exceptions of this package. Each contains what happened, where, and what to do, and has the exit code of the command.

    TcptraceLabError
    ├── UsageError             2   the command or call is wrong: an option, a connection that does not exist
    │   ├── OutputUnwritable   2   a result or its temporary files cannot be written
    │   └── RuleUnusable       2   a rule that another package adds cannot be used
    ├── CaptureUnreadable      3   the operating system refuses the file, or the file ends before the first packet
    │   ├── NotACapture        3   not a capture, or in a format that neither the engine nor Wireshark reads
    │   └── CaptureInsufficient 3  readable, but it does not contain what the command needs
    ├── ReadInPart             4   there are results, but part of the capture could not be used
    ├── MissingTool            5   a required external tool is not installed
    └── LabFailed              5   an experiment could not run: no privileges, or the kernel or a tool failed

`read` and `analyze` raise UsageError, CaptureUnreadable, MissingTool and their subclasses, but never ReadInPart: they return what could be
read, and `loss` in the result contains the exception. The command reports `loss` and exits with 4; a caller that needs the whole capture
must raise `loss`.

Other exit codes: 0 (success), 1 (a finding at or above `--fail-on`), 70 (a defect of this software; EX_SOFTWARE of BSD's sysexits.h), 130
(interrupted; 128 + SIGINT, as shells report it), and 141 (the reader closed the pipe; 128 + SIGPIPE).
"""

from __future__ import annotations

import errno
import os
import re
from typing import ClassVar, Protocol

EXIT_DONE = 0
EXIT_FINDING = 1
EXIT_USAGE = 2
EXIT_UNREADABLE = 3
EXIT_READ_IN_PART = 4
EXIT_MISSING_TOOL = 5
EXIT_DEFECT = 70
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


class TcptraceLabError(Exception):
    """Base class of all exceptions that this package raises on purpose.

    Attributes:
        what: what happened; a sentence fragment without the place.
        where: the file, with byte offset and frame where known; can be empty.
        remedy: what to do about it; can be empty.
        exit_code: exit code of the command.
    """

    exit_code: ClassVar[int] = EXIT_DEFECT

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        """Return `<what>: <where>; <what to do>`."""
        return self.what + (f": {self.where}" if self.where else "") + (f"; {self.remedy}" if self.remedy else "")


class UsageError(TcptraceLabError):
    """The command or call is wrong."""

    exit_code = EXIT_USAGE


class OutputUnwritable(UsageError):
    """A result or its temporary files cannot be written."""

    @classmethod
    def from_os(cls, error: OSError, path: str | os.PathLike[str], remedy: str) -> OutputUnwritable:
        """Convert an error of the operating system on writing `path` to an OutputUnwritable."""
        return cls(f"cannot write: {error.strerror or error}", where=os.fspath(path), remedy=remedy)


class RuleUnusable(UsageError):
    """A rule that another package adds (`tcptrace_lab.rules`) cannot be used."""


class CaptureUnreadable(TcptraceLabError):
    """The operating system refuses the file, or the file ends before the first packet."""

    exit_code = EXIT_UNREADABLE


class NotACapture(CaptureUnreadable):
    """The file is not a capture, or has a format that neither the engine nor Wireshark can read."""


class CaptureInsufficient(CaptureUnreadable):
    """The capture is readable but lacks what the command needs: data, both directions, or a model that fits."""


class ReadInPart(TcptraceLabError):
    """There are results, but part of the capture could not be used."""

    exit_code = EXIT_READ_IN_PART


class MissingTool(TcptraceLabError):
    """A required external tool is not installed."""

    exit_code = EXIT_MISSING_TOOL


class LabFailed(TcptraceLabError):
    """An experiment could not run: no privileges, or the kernel or a tool failed."""

    exit_code = EXIT_MISSING_TOOL


class EngineFailure(Protocol):
    """The attributes of `_core.EngineError`. The protocol lets this module do without importing the engine."""

    kind: str
    what: str
    path: str
    offset: int | None
    frame: int | None


_BY_KIND: dict[str, tuple[type[CaptureUnreadable], str]] = {
    "io": (CaptureUnreadable, "give a file that exists and is readable"),
    "not_a_capture": (NotACapture, "give a pcap or pcapng file, plain or compressed with gzip, zstd, lz4 or xz"),
    "unsupported": (NotACapture, "give this file separately: Wireshark's editcap can then convert it"),
    "cut": (CaptureUnreadable, "copy the file again, or capture again: the file ends before its first packet"),
    "damaged": (CaptureUnreadable, "copy the file again, or capture again: the file is damaged before its first packet"),
}
"""Kind of an engine error → exception class and remedy."""

_OS_NUMBER = re.compile(r" ?\(os error (\d+)\)")
"""The error number that Rust's std::io::Error appends to the operating system's message."""

_FOOTER_REFUSED = "Invalid thrift: transport error"
"""Polars' message if the last bytes of a Parquet file cannot be written. The message contains no error number."""


def from_engine(error: EngineFailure) -> CaptureUnreadable:
    """Convert an error of the engine to an exception of this package."""
    kind, remedy = _BY_KIND.get(error.kind, (CaptureUnreadable, ""))
    what = _OS_NUMBER.sub("", error.what).removeprefix("is ")  # the engine's message continues the file name: "<file> is not a capture"
    return kind(what, where=place(error.path, error.frame, error.offset), remedy=remedy)


def as_os_error(error: Exception) -> OSError | None:
    """Return the operating system's error behind `error`; None if there is none.

    Polars raises an OSError without errno, or an exception of its own. The error number is then only in the text of the exception. A broken
    pipe is returned as a BrokenPipeError.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error
    number = _OS_NUMBER.search(str(error))
    if number:
        return OSError(int(number[1]), os.strerror(int(number[1])))
    return OSError(errno.EIO, "the end of the file could not be written (no room on the disk?)") if _FOOTER_REFUSED in str(error) else None


def place(path: str, frame: int | None, offset: int | None) -> str:
    """Return a place in a capture, as far as known: `path, frame 7, byte 1024`. The offset counts decompressed bytes."""
    name = "standard input" if path == "-" else path
    numbers = [f"{word} {number}" for word, number in (("frame", frame), ("byte", offset)) if number is not None]
    return ", ".join([name, *numbers] if name else numbers)
