"""Output of results: to a file that appears complete or not at all, or to standard output."""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tcptrace_lab.errors import OutputUnwritable, UsageError, as_os_error
from tcptrace_lab.process import interrupts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

STDOUT = "-"
"""Path that means standard output."""

REPORTS = Path("reports")
"""Default folder for results, in the current directory."""

_ELSEWHERE = "choose another place"


def check(path: str, inputs: Iterable[str]) -> None:
    """Reject an unusable output path before any work is done: a directory, a path in a missing folder, or one of the inputs.

    Raises:
        UsageError: the path is the capture itself.
        OutputUnwritable: the path cannot be written.
    """
    if path == STDOUT:
        return
    target = Path(path)
    if target.is_dir():
        raise OutputUnwritable("the output is a directory", where=path, remedy="name a file in it")
    if not target.parent.is_dir():
        raise OutputUnwritable("no such directory", where=str(target.parent), remedy="create it first, or choose another place")
    for name in inputs:
        if name != STDOUT and target.exists() and Path(name).exists() and target.samefile(name):
            raise UsageError("the output would overwrite the capture", where=path, remedy=_ELSEWHERE)
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise OutputUnwritable("no permission to write", where=path, remedy=_ELSEWHERE)


def check_all(paths: Mapping[str, str | None], inputs: Iterable[str], files_only: Iterable[str] = ()) -> None:
    """Check the output paths of one command. All paths must differ, and at most one can be standard output.

    Args:
        paths: option → path of its result; None if the option was not given.
        inputs: paths that no result must overwrite.
        files_only: options whose results cannot go to standard output.

    Raises:
        UsageError: two results have one path, or a result cannot go to standard output.
        OutputUnwritable: a path cannot be written.
    """
    given = {option: path for option, path in paths.items() if path is not None}
    inputs = list(inputs)
    for option in files_only:
        if given.get(option) == STDOUT:
            raise UsageError(f"{option} cannot write to standard output", remedy="name a file")
    taken: dict[str, str] = {}
    for option, path in given.items():
        check(path, inputs)
        place = STDOUT if path == STDOUT else str(Path(path).resolve())
        if place in taken:
            raise UsageError(f"{taken[place]} and {option} cannot write to the same place", where=path, remedy="name two different places")
        taken[place] = option


def check_folder(path: str) -> None:
    """Reject an unusable result folder before any work is done.

    Raises:
        UsageError: `path` is standard output.
        OutputUnwritable: the folder cannot be created or written.
    """
    if path == STDOUT:
        raise UsageError("there are several output files", remedy="name a folder with -o")
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise OutputUnwritable("the output is not a directory", where=path, remedy="name a folder")
    if not target.exists() and not target.parent.is_dir():
        raise OutputUnwritable("no such directory", where=str(target.parent), remedy="create it first, or choose another place")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise OutputUnwritable("no permission to write", where=path, remedy=_ELSEWHERE)


def reports() -> Path:
    """Return the folder `REPORTS`, which is created if needed. Raises OutputUnwritable."""
    try:
        REPORTS.mkdir(exist_ok=True)
    except OSError as error:
        raise refused(error, str(REPORTS)) from error
    return REPORTS


def now() -> str:
    """Return the current time for a file name, in milliseconds, so that commands that start together get different names."""
    milliseconds = time.time_ns() // 1_000_000
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(milliseconds // 1_000))}-{milliseconds % 1_000:03}"


def make_folder(path: str) -> None:
    """Create the folder `path` if it does not exist. Raises OutputUnwritable."""
    try:
        Path(path).mkdir(exist_ok=True)
    except OSError as error:
        raise refused(error, path) from error


@contextlib.contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Provide a byte stream that becomes the file `path` when the block succeeds. After an error, an existing file is unchanged.

    `-` is standard output. Devices and pipes are written directly.

    Raises:
        OutputUnwritable: no room or no permission.
        BrokenPipeError: the reader has closed our output.
    """
    try:
        if path == STDOUT:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        elif Path(path).exists() and not Path(path).is_file():
            with open(path, "wb") as stream:  # noqa: PTH123  (opens the path exactly as the user gave it)
                yield stream
        else:
            yield from _replaced(Path(path))
    except Exception as error:
        refusal = as_os_error(error)
        if refusal is None:
            raise
        if isinstance(refusal, BrokenPipeError) or (path == STDOUT and _nobody_reads(sys.stdout.fileno())):
            raise BrokenPipeError from error
        raise refused(refusal, path) from error


def write_json(path: str, document: Mapping[str, Any]) -> None:
    """Write a document as ASCII JSON to the file `path` or to standard output.

    Raises:
        OutputUnwritable: no room or no permission.
        ValueError: a number is infinite or not a number, which JSON does not have.
    """
    with opened(path) as stream:
        stream.write(json.dumps(document, indent=1, allow_nan=False).encode() + b"\n")


def _nobody_reads(descriptor: int) -> bool:
    """Return whether the output is a pipe without a reader (POLLERR; see pipe(7))."""
    if sys.platform == "win32":  # Windows has no poll(2)
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def refused(error: OSError, path: str) -> OutputUnwritable:
    """Convert an error of the operating system on writing `path` to an OutputUnwritable."""
    return OutputUnwritable.from_os(error, "standard output" if path == STDOUT else path, _ELSEWHERE)


def _replaced(path: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file in the folder of `path`. After the block, the temporary file replaces `path`."""
    umask = os.umask(0)
    os.umask(umask)

    def make() -> tempfile._TemporaryFileWrapper[bytes]:
        return tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:64]}.", delete=False)

    with interrupts.making(make, lambda made: Path(made.name).unlink(missing_ok=True)) as stream, stream:
        temporary = Path(stream.name)
        try:
            yield stream
            stream.close()  # Windows cannot replace an open file
            temporary.chmod(0o666 & ~umask)  # the permissions that open() would give the file
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
