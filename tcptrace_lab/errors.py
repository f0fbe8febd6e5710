"""What can go wrong, told once: each error with what happened, where, what to do, and the exit code of the command.

    TcptraceLabError
    ├── UsageError             2   the command or call cannot be right: an option, a connection that is not there
    │   ├── OutputUnwritable   2   a result, or the temporary space behind it, cannot be written where it should go
    │   └── RuleUnusable       2   a rule that another package adds cannot be used
    ├── CaptureUnreadable      3   the operating system refuses the file, or its contents stop before the first packet
    │   ├── NotACapture        3   not a capture at all, or of a format that neither the engine nor Wireshark reads
    │   └── CaptureInsufficient 3  readable, but it does not show what the command needs of it
    ├── ReadInPart             4   results were made, but something of the capture could not be used
    ├── MissingTool            5   a program that is needed is not installed
    └── LabFailed              5   an experiment could not be made: no rights, or what it needs of the kernel or of a program failed

`read` and `analyze` raise the first two kinds. They never raise ReadInPart: what could be read is given out, and `loss` beside it
holds the error; the command says so and exits with 4, and a program that cannot live with a part raises it.

Exit codes beyond these: 0 done, 1 a finding at or above `--fail-on`, and three that the design leaves open: 70 a defect of
this program (EX_SOFTWARE of BSD's sysexits.h), 130 interrupted and 141 the reader of our output went away (128 + SIGINT,
128 + SIGPIPE, as shells report them).
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
    """Root of all errors that this package raises on purpose.

    Attributes:
        what: what happened; a sentence fragment without the place.
        where: the file, and the byte and frame in it where they are known; may be empty.
        remedy: what to do about it; may be empty.
        exit_code: what the command exits with.
    """

    exit_code: ClassVar[int] = EXIT_DEFECT

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        """`<what>: <where>; <what to do>`."""
        return self.what + (f": {self.where}" if self.where else "") + (f"; {self.remedy}" if self.remedy else "")


class UsageError(TcptraceLabError):
    """The command or call cannot be right."""

    exit_code = EXIT_USAGE


class OutputUnwritable(UsageError):
    """A result, or the temporary space behind it, cannot be written where it should go."""

    @classmethod
    def from_os(cls, error: OSError, path: str | os.PathLike[str], remedy: str) -> OutputUnwritable:
        """The operating system's refusal to write `path`."""
        return cls(f"cannot write: {error.strerror or error}", where=os.fspath(path), remedy=remedy)


class RuleUnusable(UsageError):
    """A rule that another package adds (`tcptrace_lab.rules`) cannot be used."""


class CaptureUnreadable(TcptraceLabError):
    """The operating system refuses the file, or its contents stop before the first packet."""

    exit_code = EXIT_UNREADABLE


class NotACapture(CaptureUnreadable):
    """Not a capture at all, or of a format that neither the engine nor Wireshark reads."""


class CaptureInsufficient(CaptureUnreadable):
    """The capture can be read, but does not show what the command needs: one direction, no data, no model that fits it."""


class ReadInPart(TcptraceLabError):
    """Results were made, but something of the capture could not be used."""

    exit_code = EXIT_READ_IN_PART


class MissingTool(TcptraceLabError):
    """A program that is needed is not installed."""

    exit_code = EXIT_MISSING_TOOL


class LabFailed(TcptraceLabError):
    """An experiment could not be made: no rights, or what it needs of the kernel or of a program failed."""

    exit_code = EXIT_MISSING_TOOL


class EngineFailure(Protocol):
    """What `_core.EngineError` carries (told here as a shape: this module imports nothing of ours)."""

    kind: str
    what: str
    path: str
    offset: int | None
    frame: int | None


_BY_KIND: dict[str, tuple[type[CaptureUnreadable], str]] = {
    "io": (CaptureUnreadable, "give a file that exists and is readable"),
    "not_a_capture": (NotACapture, "give a pcap or pcapng file, plain or compressed with gzip, zstd, lz4 or xz"),
    "unsupported": (NotACapture, "give it as a separate file: Wireshark's editcap can then convert it"),
    "cut": (CaptureUnreadable, "copy or capture it again: the file ends before its first packet"),
    "damaged": (CaptureUnreadable, "copy or capture it again: the file is damaged before its first packet"),
}
"""Kind of an engine error → class and what to do."""

_OS_NUMBER = re.compile(r" ?\(os error (\d+)\)")
"""What Rust's std::io::Error adds to the operating system's words."""

_FOOTER_REFUSED = "Invalid thrift: transport error"
"""All that Polars says when the last bytes of a Parquet file cannot be written."""


def from_engine(error: EngineFailure) -> CaptureUnreadable:
    """The one place where an error of the engine becomes an error of this package."""
    kind, remedy = _BY_KIND.get(error.kind, (CaptureUnreadable, ""))
    what = _OS_NUMBER.sub("", error.what).removeprefix("is ")  # the engine says "<file> is not a capture"
    return kind(what, where=place(error.path, error.frame, error.offset), remedy=remedy)


def as_os_error(error: Exception) -> OSError | None:
    """The operating system's refusal behind `error`, if that is what it is.

    Polars hands such errors on as text, as OSError without a number or as an error of its own; the number in the text is the
    only thing that stays. A broken pipe comes back as BrokenPipeError.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error
    number = _OS_NUMBER.search(str(error))
    if number:
        return OSError(int(number[1]), os.strerror(int(number[1])))
    return OSError(errno.EIO, "the end of the file could not be written (no room on the disk?)") if _FOOTER_REFUSED in str(error) else None


def place(path: str, frame: int | None, offset: int | None) -> str:
    """`path, frame 7, byte 1024`: a place in a capture, as far as it is known. Offsets count the decompressed stream."""
    name = "standard input" if path == "-" else path
    numbers = [f"{word} {number}" for word, number in (("frame", frame), ("byte", offset)) if number is not None]
    return ", ".join([name, *numbers] if name else numbers)
