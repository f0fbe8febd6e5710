"""`batch`: captures → an archive. Find, hash, analyze what has no part yet, build the tables and the index."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tcptrace_lab.archive import fingerprint, registry
from tcptrace_lab.archive.place import TMP, Folder, at, is_url, part_name
from tcptrace_lab.archive.registry import Registry
from tcptrace_lab.archive.sources.walk import walk
from tcptrace_lab.archive.work import lock
from tcptrace_lab.archive.work.task import Analyze, Done, Hash, Hashed
from tcptrace_lab.archive.work.workers import MEMORY_BYTES, Pool
from tcptrace_lab.process import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import polars as pl

    from tcptrace_lab.archive.index.regressions import Comparison
    from tcptrace_lab.archive.place import Place
    from tcptrace_lab.archive.sources.walk import Found
    from tcptrace_lab.archive.work.cluster import Cluster
    from tcptrace_lab.archive.work.task import Result, Task
    from tcptrace_lab.findings.finding import Severity

SAVE_S = 5.0
"""Time between savings of the registry."""


class Workers(Protocol):
    """Whoever carries out tasks: `workers.Pool`, `cluster.Cluster`."""

    peak_bytes: int

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Results, as they come."""


class Watcher(Protocol):
    """Is told how a run goes."""

    def doing(self, what: str, total: int) -> None:
        """Something else begins, of so many tasks."""

    def done(self, result: Result) -> None:
        """A task is done."""

    def share(self, share: float) -> None:
        """Of what goes on now."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a run did.

    Attributes:
        root: the archive.
        files: files that were found.
        captures: rows of `schema.CAPTURES` of all captures in the archive, in the order of their names.
        named: the captures that the sources of this run make.
        made: captures that were analyzed in this run.
        kept: captures whose results were there.
        others: files that are no captures.
        unreadable: path → why a file could not be read.
        comparison: with the baseline, if there was one.
        seconds: worker's time of the captures that were analyzed.
        peak_bytes: the most resident memory that a worker was seen with.
    """

    root: str
    files: int
    captures: pl.DataFrame
    named: tuple[str, ...] = ()
    made: int = 0
    kept: int = 0
    others: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    comparison: Comparison | None = None
    seconds: float = 0.0
    peak_bytes: int = 0

    @property
    def states(self) -> dict[str, int]:
        """State (`schema.CAPTURE_STATES`) → captures of this run."""
        mine = self.captures.filter(self.captures["capture"].is_in(list(self.named)))
        return dict(Counter(mine["state"].to_list()))

    @property
    def worst(self) -> Severity | None:
        """The worst severity: of what became slower than in the baseline if there is one, else of the findings of this run's captures."""
        from tcptrace_lab.findings.finding import Severity  # noqa: PLC0415  (Polars)

        if self.comparison is not None:
            return self.comparison.worst
        mine = self.captures.filter(self.captures["capture"].is_in(list(self.named)))
        return max((Severity.named(name) for name in mine["worst_severity"].drop_nulls().unique()), default=None)

    @property
    def complete(self) -> bool:
        """Whether every capture is there as a whole."""
        return not self.unreadable and set(self.states) <= {"whole"}


@dataclass(frozen=True, slots=True)
class Means:
    """Who does the work.

    Attributes:
        jobs: worker processes; None: one for each processor.
        scheduler: address of a Dask scheduler (`tcp://…`), whose workers are used instead; they must reach sources and output.
        memory_bytes: resident memory at which a worker process is ended.
    """

    jobs: int | None = None
    scheduler: str | None = None
    memory_bytes: int = MEMORY_BYTES

    def workers(self) -> Pool | Cluster:
        """They; a context manager."""
        if self.scheduler is not None:
            from tcptrace_lab.archive.work.cluster import Cluster  # noqa: PLC0415  (only then is Dask needed)

            return Cluster(self.scheduler)
        return Pool(self.jobs or os.cpu_count() or 1, self.memory_bytes)


def batch(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    means: Means | None = None,
    reports: bool = True,
    apart: bool = False,
    baseline: str | os.PathLike[str] | None = None,
    watcher: Watcher | None = None,
) -> Batch:
    """Analyze captures into an archive. What is in it already is not done again; a run that was interrupted goes on where it was.

    Args:
        sources: files, folders, globs and URLs; see `walk.walk`.
        output: the archive: a folder, or a URL of anything that fsspec writes.
        means: who does the work; by default a process for each processor.
        reports: whether to write a report of each capture.
        apart: take the files of a rotated set as captures of their own.
        baseline: another archive; what is slower than there is in `Batch.comparison` and the index.
        watcher: is told how it goes.

    Raises:
        UsageError: nothing to analyze, the output is something else, or another run writes it.
        CaptureUnreadable: a source is not there.
        OutputUnwritable: no room, no rights.
        MissingTool: a URL or the scheduler needs a package that is not installed.
    """
    named = [os.fspath(sources)] if isinstance(sources, (str, os.PathLike)) else [os.fspath(source) for source in sources]
    root = os.fspath(output)
    target = at(root)
    registry.check(target)
    if baseline is not None:
        registry.check(at(os.fspath(baseline)), must_exist=True)
    found = walk(named, apart=apart, but=None if is_url(root) else root)
    with lock.held(target), tidy(target), (means or Means()).workers() as pool:
        run = Run(target, pool, reports=reports, watcher=watcher)
        taken = run.take(found)
        run.analyze()
        captures = run.finish(None if baseline is None else os.fspath(baseline))
        return run.told(found.files, taken, captures, others=len(found.others))


@contextlib.contextmanager
def tidy(place: Place) -> Iterator[None]:
    """Before and after the block, remove what workers that were ended left half written; the lock is held, so it is nobody's."""

    def clear() -> None:
        if isinstance(place, Folder):
            shutil.rmtree(Path(place.root) / TMP, ignore_errors=True)

    clear()
    with interrupts.undoing(clear):
        try:
            yield
        finally:
            clear()


class Run:
    """A run under way; the lock is held."""

    def __init__(self, target: Place, pool: Workers, *, reports: bool, watcher: Watcher | None, keep: bool = False) -> None:
        """Of an archive; `keep` keeps what stood at paths whose contents are others now."""
        self._target = target
        self._pool = pool
        self._reports = reports
        self._watcher = watcher
        self._keep = keep
        self._settings = fingerprint.settings(reports=reports)
        registry.begin(target)
        self.registry = Registry(target)
        self._lost: dict[str, str] = {}
        self._comparison: Comparison | None = None
        self._made = 0
        self._seconds = 0.0
        self._saved = time.monotonic()
        self._there = set(target.names(f"parts/{self._settings}"))

    def take(self, found: Found) -> list[str]:
        """Hash what is found and not known; the names of the captures."""
        paths = [path for files in found.captures for path in files]
        digests = {path: digest for path in paths if (digest := self.registry.digest(path)) is not None}
        unknown = [Hash(path) for path in paths if path not in digests]
        refused: dict[str, str] = {}
        for result in self._run("hashing", unknown):
            if isinstance(result, Hashed) and result.done:
                digests[result.path] = result.sha256, result.size_bytes
                self.registry.hashed[result.path] = [result.looks, result.sha256, result.size_bytes]
            elif isinstance(result, Hashed):
                refused[result.path] = result.reason
        named = []
        for files in found.captures:
            readable = [path for path in files if path in digests]
            if readable:
                named.append(self.registry.take(readable, [digests[path] for path in readable], keep=self._keep))
                self.registry.absorb(named[-1], readable)
        self._note(found, paths, refused)
        return list(dict.fromkeys(named))

    def _note(self, found: Found, paths: Sequence[str], refused: dict[str, str]) -> None:
        """Remember the files that make no capture."""
        now = {*paths, *found.others}
        self.registry.others = sorted({*(path for path in self.registry.others if path not in now), *found.others})
        self.registry.unreadable = {path: why for path, why in self.registry.unreadable.items() if path not in now} | refused
        self._save(force=True)

    def _share_scripts(self) -> None:
        """Put beside the reports what they have in common."""
        from tcptrace_lab.report import shared_scripts  # noqa: PLC0415  (Polars)

        there = self._target.names("reports")
        for name, script in shared_scripts().items():
            if there.get(f"reports/{name}") != len(script):
                self._target.write(f"reports/{name}", script)

    def analyze(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Analyze the captures of the archive that have no part, until `stop` says so."""
        tasks = [
            Analyze(
                capture=name,
                paths=tuple(known.places[0]),
                digests=tuple(digest for digest, _ in known.files),
                looks=tuple(self.registry.looks(path) for path in known.places[0]),
                size_bytes=known.size_bytes,
                settings=self._settings,
                root=self._target.root,
                reports=self._reports,
            )
            for name, known in self.registry.captures.items()
            if part_name(self._settings, name) not in self._there and name not in self._lost
        ]
        if tasks and self._reports:
            self._share_scripts()
        tasks.sort(key=lambda task: (-task.size_bytes, task.capture))  # the longest first, so that workers end together
        for result in self._run("analyzing", tasks):
            if not isinstance(result, Done):
                continue
            if result.state == "lost":
                self._lost[result.capture] = result.reason
            else:
                self._there.add(part_name(self._settings, result.capture))
                self.registry.captures[result.capture].made_by = self._settings
                self._made += 1
                self._seconds += result.seconds
            self._save()
            if stop():
                return

    def _run(self, what: str, tasks: Sequence[Task]) -> Iterator[Result]:
        if self._watcher is not None:
            self._watcher.doing(what, len(tasks))
        for result in self._pool.run(tasks) if tasks else ():
            yield result
            if self._watcher is not None:
                self._watcher.done(result)

    def _save(self, *, force: bool = False) -> None:
        if force or time.monotonic() - self._saved > SAVE_S:
            self.registry.save()
            self._saved = time.monotonic()

    def finish(self, baseline: str | None = None) -> pl.DataFrame:
        """Build the tables and the index; the rows of `captures`."""
        from tcptrace_lab.archive.dataset import tables  # noqa: PLC0415  (Polars: what only hashes need not pay for it)
        from tcptrace_lab.archive.index import page  # noqa: PLC0415  (Polars: what only hashes need not pay for it)

        for name, known in self.registry.captures.items():
            if part_name(self._settings, name) in self._there:
                known.made_by = self._settings
        self._save(force=True)
        self._doing("building the tables")
        captures = tables.build(
            self._target, self.registry, self._settings, self._lost, None if self._watcher is None else self._watcher.share
        )
        self._doing("writing the index")
        self._comparison = page.write(self._target, baseline)
        return captures

    def _doing(self, what: str) -> None:
        if self._watcher is not None:
            self._watcher.doing(what, 0)

    def told(self, files: int, taken: Sequence[str], captures: pl.DataFrame, *, others: int = 0) -> Batch:
        """What was done."""
        there = [name for name in taken if part_name(self._settings, name) in self._there]
        return Batch(
            root=self._target.root,
            files=files,
            captures=captures,
            named=tuple(taken),
            made=self._made,
            kept=max(len(there) - self._made, 0),
            others=others,
            unreadable=dict(self.registry.unreadable),
            comparison=self._comparison,
            seconds=self._seconds,
            peak_bytes=self._pool.peak_bytes,
        )
