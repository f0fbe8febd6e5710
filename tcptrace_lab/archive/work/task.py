"""The tasks of local and remote workers: hash a file, analyze a capture, or write a partition of a table.

A capture can cause an error, for example because the file is not a capture. Such an error is stored as a part, and there is no retry. The
machine can also cause an error, such as an unreachable file or a missing tool. Then nothing is stored, and the next run tries the capture
again. If the archive is not writable, OutputUnwritable ends the run.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcptrace_lab.archive import fingerprint, storage
from tcptrace_lab.archive.storage import part_name, report_name
from tcptrace_lab.errors import CaptureUnreadable, MissingTool, OutputUnwritable, TcptraceLabError
from tcptrace_lab.process import temporary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.archive.dataset.tables import TablePartition
    from tcptrace_lab.connections.anonymizer import Anonymizer

PASSING = ("No such file", "Permission denied", "Input/output error", "Stale", "Too many open files")
"""Parts of error messages of the operating system that show a fault of the machine, not of the capture."""


@dataclass(frozen=True, slots=True)
class Hash:
    """A task: hash a file."""

    path: str

    def lost(self, reason: str) -> Hashed:
        """Return the result for a lost worker."""
        return Hashed(self.path, reason=reason)

    def run(self) -> Hashed:
        """Hash the file. If the file is unreadable, the result has a `reason`."""
        try:
            looks = fingerprint.looks(self.path)
            digest, size_bytes = fingerprint.contents(self.path)
        except TcptraceLabError as error:
            return Hashed(self.path, reason=error.what)
        return Hashed(self.path, digest, size_bytes, looks if looks == fingerprint.looks(self.path) else None)


@dataclass(frozen=True, slots=True)
class Hashed:
    """The result of `Hash`. `looks` is the file's metadata; None if the metadata is unknown, or changed while the file was hashed."""

    path: str
    sha256: str = ""
    size_bytes: int = 0
    looks: list[int | str] | None = None
    reason: str = ""

    @property
    def done(self) -> bool:
        """True if the file could be read."""
        return bool(self.sha256)


@dataclass(frozen=True, slots=True)
class Analyze:
    """A task: analyze a capture.

    Attributes:
        capture: its name (`fingerprint.capture_of`).
        paths: its files, local or behind URLs.
        digests: SHA-256 of each file.
        looks: metadata of each file when it was hashed (`fingerprint.looks`); empty if unknown.
        size_bytes: total size of the files.
        settings: `fingerprint.settings` of the run. A worker with another version of the program refuses the task.
        root: the archive.
        reports: whether to write a report.
        anonymizer: replaces addresses and the names of files; None: they are kept.
    """

    capture: str
    paths: tuple[str, ...]
    digests: tuple[str, ...]
    looks: tuple[tuple[int | str, ...], ...]
    size_bytes: int
    settings: str
    root: str
    reports: bool = True
    anonymizer: Anonymizer | None = None

    def run(self) -> Done:
        """Analyze the capture, and write its part and report. Raises OutputUnwritable."""
        if fingerprint.settings(reports=self.reports) != self.settings:
            return self.lost(f"the worker runs another program: {fingerprint.program_version()}")
        start = time.perf_counter()
        target = storage.at(self.root)
        try:
            with _here(self.paths) as paths:
                state, reason = _analyzed(self, paths, target)
        except (MissingTool, ConnectionError, FileNotFoundError, TimeoutError) as error:
            return self.lost(str(error))
        except OutputUnwritable:
            raise
        except CaptureUnreadable as error:
            if any(word in error.what for word in PASSING):
                return self.lost(error.what)
            state, reason = "failed", error.what if self.anonymizer is None else self.anonymizer.without_paths(error.what, self.paths)
            _write(target, self, _failed(reason), {})
        return Done(self.capture, state, reason, self.size_bytes, time.perf_counter() - start)

    def lost(self, reason: str) -> Done:
        """Return the result for a capture that could not be analyzed in this run. The next run tries again."""
        return Done(self.capture, "lost", reason, self.size_bytes)


@dataclass(frozen=True, slots=True)
class Done:
    """The result of `Analyze`: the capture's state (`schema.CAPTURE_STATES`), reason and size, and the worker's time."""

    capture: str
    state: str
    reason: str
    size_bytes: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WriteTable:
    """A task: write one partition of a table of the archive at `root`."""

    root: str
    wanted: TablePartition

    def run(self) -> Written:
        """Write the files. Raises OutputUnwritable."""
        from tcptrace_lab.archive.dataset import tables  # noqa: PLC0415  (Polars)

        return Written(*tables.write(storage.at(self.root), self.wanted))

    def lost(self, reason: str) -> Written:
        """Return the result for a lost worker."""
        return Written(f"{self.wanted.table}/{self.wanted.partition}", [], reason)


@dataclass(frozen=True, slots=True)
class Written:
    """The result of `WriteTable`: what `tables.write` returns, or the reason why the worker was lost."""

    stem: str
    files: list[str]
    reason: str = ""
    size_bytes: int = 0


Task = Hash | Analyze | WriteTable
Result = Hashed | Done | Written


@contextlib.contextmanager
def _here(paths: tuple[str, ...]) -> Iterator[list[str]]:
    """Return local paths of the files. A file behind a URL is downloaded, and the copy is deleted when the block ends."""
    with contextlib.ExitStack() as stack:
        folder: Path | None = None
        found = []
        for number, path in enumerate(paths):
            if storage.is_url(path):
                folder = folder or Path(stack.enter_context(temporary.folder()))
                local = folder / f"{number}-{Path(path).name}"
                storage.file_system(path).get_file(path, str(local))
                found.append(str(local))
            else:
                found.append(path)
        yield found


def _analyzed(task: Analyze, paths: list[str], target: storage.Place) -> tuple[str, str]:
    """Analyze a capture, and write its report and part. Return its state and the reason.

    Raises:
        FileNotFoundError: a file has changed.
    """
    from tcptrace_lab import verdict  # noqa: PLC0415
    from tcptrace_lab.analysis import analyze, capture_name  # noqa: PLC0415  (Polars, which a process that submits tasks does not need)
    from tcptrace_lab.archive.dataset import rows  # noqa: PLC0415
    from tcptrace_lab.connections.anonymizer import NAME  # noqa: PLC0415

    hidden = task.anonymizer
    analysis = analyze(paths, proofs=True, anonymizer=hidden)  # the archive keeps all stalls
    if not all(map(_is_still, paths, task.paths, task.digests, task.looks)):
        raise FileNotFoundError("the file changed while it was read")
    name = capture_name(list(task.paths) if hidden is None else [*map(hidden.file, task.paths)])
    sentence = _write_report(analysis, name, target, task.capture) if task.reports else verdict.sentence(analysis)
    shown = paths if hidden is None else [NAME][: len(paths) == 1]
    state = "whole" if analysis.loss is None else "part"
    reason = "" if analysis.loss is None else analysis.loss.what
    row = rows.capture_row(analysis, sentence) | {"state": state, "reason": reason or None}
    _write(target, task, row | {"report": report_name(task.capture) if task.reports else None}, rows.tables(analysis, shown))
    return state, reason


def _is_still(path: str, source: str, digest: str, looks: tuple[int | str, ...]) -> bool:
    """Return whether a file still has the contents that were hashed. It is hashed again only if its metadata has changed."""
    now = None if path != source else fingerprint.looks(path)
    return (now is not None and tuple(now) == looks) or fingerprint.contents(path)[0] == digest


def _write_report(analysis: Analysis, name: str, target: storage.Place, capture: str) -> str:
    from dataclasses import replace  # noqa: PLC0415

    from tcptrace_lab import report  # noqa: PLC0415  (the library for the figures is the slowest import)

    contents = report.data(replace(analysis, name=name), room=report.AMONG_MANY)
    target.write(report_name(capture), report.render(contents, scripts="shared").encode())
    return contents["headline"]["sentence"]


def _failed(reason: str) -> dict[str, Any]:
    return {"state": "failed", "reason": reason}


def _write(target: storage.Place, task: Analyze, capture: dict[str, Any], tables: dict[str, Any]) -> None:
    from tcptrace_lab.archive.dataset import part  # noqa: PLC0415  (Polars)

    with target.scratch() as path:
        try:
            part.write(path, capture | {"program": fingerprint.program_version()}, tables)
        except OSError as error:
            raise OutputUnwritable.from_os(
                error, f"{task.root}/{part_name(task.settings, task.capture)}", "free disk space, and run it again"
            ) from error
        target.take(part_name(task.settings, task.capture), path)
