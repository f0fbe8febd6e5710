"""`batch` adds captures to an archive: it hashes files, analyzes the captures without a part, and builds the tables and the index."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tcptrace_lab.archive import fingerprint, registry
from tcptrace_lab.archive.registry import Registry
from tcptrace_lab.archive.sources.walk import walk
from tcptrace_lab.archive.storage import SAVE_S, TMP, Folder, at, is_url, part_name
from tcptrace_lab.archive.work import lock
from tcptrace_lab.archive.work.task import Analyze, Done, Hash, Hashed, WriteTable, Written
from tcptrace_lab.archive.work.workers import MEMORY_BYTES, Pool
from tcptrace_lab.errors import OutputUnwritable
from tcptrace_lab.process import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import polars as pl

    from tcptrace_lab.archive.dataset.tables import TablePartition
    from tcptrace_lab.archive.index.regressions import Comparison
    from tcptrace_lab.archive.sources.walk import Found
    from tcptrace_lab.archive.storage import Place
    from tcptrace_lab.archive.work.cluster import Cluster
    from tcptrace_lab.archive.work.task import Result, Task
    from tcptrace_lab.connections.anonymizer import Anonymizer
    from tcptrace_lab.findings.finding import Severity

_NEEDED_AT_THE_END = ("tcptrace_lab.archive.dataset.tables", "tcptrace_lab.archive.index.page")
"""Modules that only the end of a run needs.

They import Polars, which takes longer than all other steps before the workers start.
"""


class Workers(Protocol):
    """Runs tasks: `workers.Pool` or `cluster.Cluster`."""

    peak_bytes: int

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results in the order in which the tasks finish."""


class Watcher(Protocol):
    """Receives the progress of a run."""

    def doing(self, what: str, total: int) -> None:
        """Called when a phase of the run begins. `total` is the number of tasks in this phase, 0 if there are none."""

    def done(self, result: Result) -> None:
        """Called when a task has finished."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of a run.

    Attributes:
        root: the archive.
        files: number of files found.
        captures: rows of `schema.CAPTURES` for all captures in the archive, sorted by name.
        named: names of the captures in this run's sources.
        made: number of captures analyzed in this run.
        kept: number of captures whose results existed already.
        others: number of files that are not captures.
        unreadable: path → why a file could not be read.
        comparison: comparison with the baseline, if one was given.
        seconds: total time that workers spent on the analyzed captures.
        peak_bytes: largest resident memory observed in any worker.
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
        """The number of this run's captures in each state (`schema.CAPTURE_STATES`)."""
        mine = self.captures.filter(self.captures["capture"].is_in(list(self.named)))
        return dict(Counter(mine["state"].to_list()))

    @property
    def worst(self) -> Severity | None:
        """The worst severity of the changes since the baseline.

        Without a baseline, the worst severity of the findings in this run's captures.
        """
        from tcptrace_lab.findings.finding import Severity  # noqa: PLC0415  (Polars)

        if self.comparison is not None:
            return self.comparison.worst
        mine = self.captures.filter(self.captures["capture"].is_in(list(self.named)))
        return max((Severity.named(name) for name in mine["worst_severity"].drop_nulls().unique()), default=None)

    @property
    def complete(self) -> bool:
        """True if all files were readable and all captures of this run were analyzed completely."""
        return not self.unreadable and set(self.states) <= {"whole"}


@dataclass(frozen=True, slots=True)
class Means:
    """The workers that execute the tasks of a run: local processes or a Dask cluster.

    Attributes:
        jobs: number of local worker processes; None: one per processor.
        scheduler: address of a Dask scheduler (`tcp://…`). Its workers replace the local processes, and need access to the sources and the
            output.
        memory_bytes: resident memory above which a local worker process is killed.
    """

    jobs: int | None = None
    scheduler: str | None = None
    memory_bytes: int = MEMORY_BYTES

    def workers(self) -> Pool | Cluster:
        """Return the workers, for use in a `with` statement."""
        if self.scheduler is not None:
            from tcptrace_lab.archive.work.cluster import Cluster  # noqa: PLC0415  (only a cluster needs Dask)

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
    anonymizer: Anonymizer | None = None,
    watcher: Watcher | None = None,
) -> Batch:
    """Analyze captures, and store the results in an archive. Existing results are reused, so an interrupted run can continue.

    Args:
        sources: files, folders, globs and URLs; see `walk.walk`.
        output: the archive: a folder, or a URL that fsspec can write.
        means: where tasks execute; by default one process per processor.
        reports: whether to write a report for each capture.
        apart: treat each file of a rotated set as a separate capture.
        baseline: another archive. `Batch.comparison` and the index list what is slower than in the baseline.
        anonymizer: replaces addresses and the names of files in all output. Later runs on the archive need the same key.
        watcher: receives progress.

    Raises:
        UsageError: no files found, the output is not an archive or has another key, or another run writes it.
        CaptureUnreadable: a source does not exist or cannot be read.
        OutputUnwritable: the disk is full, or permission is denied.
        MissingTool: a URL or the scheduler needs a package that is not installed.
    """
    named = [os.fspath(sources)] if isinstance(sources, (str, os.PathLike)) else [os.fspath(source) for source in sources]
    root = os.fspath(output)
    target = at(root)
    registry.check(target)
    registry.check_key(target, anonymizer)
    if baseline is not None:
        registry.check(at(os.fspath(baseline)), must_exist=True)
    found = walk(named, apart=apart, but=None if is_url(root) else root)
    with lock.hold_lock(target), tidy(target), (means or Means()).workers() as pool:
        run = Run(target, pool, reports=reports, anonymizer=anonymizer, watcher=watcher)
        taken = run.take(found)
        run.analyze()
        captures = run.finish(None if baseline is None else os.fspath(baseline))
        return run.batch_result(found.files, taken, captures, others=len(found.others))


@contextlib.contextmanager
def tidy(place: Place) -> Iterator[None]:
    """Delete temporary files of killed workers, before and after the `with` block.

    The caller must hold the archive's lock, so that no other run uses these files.
    """

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
    """A run in progress. The caller holds the archive's lock."""

    def __init__(
        self,
        target: Place,
        pool: Workers,
        *,
        reports: bool,
        anonymizer: Anonymizer | None,
        watcher: Watcher | None,
        keep: bool = False,
    ) -> None:
        """Start a run on an archive. With `keep`, a capture stays in the archive if its files get new contents."""
        self._target = target
        self._pool = pool
        self._reports = reports
        self._watcher = watcher
        self._keep = keep
        self._settings = fingerprint.settings(reports=reports)
        self._anonymizer = anonymizer
        registry.begin(target, anonymizer)
        self.registry = Registry(target, anonymizer)
        self._lost: dict[str, str] = {}
        self._comparison: Comparison | None = None
        self._made = 0
        self._seconds = 0.0
        self._saved = time.monotonic()
        self._there = set(target.names(f"parts/{self._settings}"))

    def take(self, found: Found) -> list[str]:
        """Hash new and changed files, and register the captures. Return their names."""
        paths = [path for files in found.captures for path in files]
        digests = {path: digest for path in paths if (digest := self.registry.digest(path)) is not None}
        unknown = [Hash(path) for path in paths if path not in digests]
        refused: dict[str, str] = {}
        for result in self._run("hashing", unknown):
            if isinstance(result, Hashed) and result.done:
                digests[result.path] = result.sha256, result.size_bytes
                self.registry.add_hash(result.path, result.looks, result.sha256, result.size_bytes)
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
        self.registry.note(paths, found.others, refused)
        self._save(force=True)

    def _prepare_the_end(self) -> None:
        """Write the scripts that all reports share, and import the modules that `finish` needs. Meanwhile, the workers analyze captures."""
        for module in _NEEDED_AT_THE_END:
            import_module(module)
        if not self._reports:
            return
        from tcptrace_lab.report import shared_scripts  # noqa: PLC0415  (Polars)

        stored = self._target.names("reports")
        for name, script in shared_scripts().items():
            if stored.get(f"reports/{name}") != len(script):
                self._target.write(f"reports/{name}", script)

    def analyze(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Analyze all captures of the archive that have no part, until `stop` returns true."""
        tasks = [
            Analyze(
                capture=name,
                paths=tuple(paths),
                digests=tuple(digest for digest, _ in known.files),
                looks=tuple(map(self.registry.looks, paths)),
                size_bytes=known.size_bytes,
                settings=self._settings,
                root=self._target.root,
                reports=self._reports,
                anonymizer=self._anonymizer,
            )
            for name, known in self.registry.captures.items()
            if part_name(self._settings, name) not in self._there and name not in self._lost and (paths := self.registry.paths(known))
        ]
        if not tasks:
            return
        tasks.sort(key=lambda task: (-task.size_bytes, task.capture))  # largest first, so that all workers end at about the same time
        with ThreadPoolExecutor(1) as executor:
            prepared = executor.submit(self._prepare_the_end)
            self._register(self._run("analyzing", tasks), stop)
            prepared.result()

    def _register(self, results: Iterable[Result], stop: Callable[[], bool]) -> None:
        for result in results:
            if not isinstance(result, Done):
                continue
            if result.state == "lost":
                paths = self.registry.paths(self.registry.captures[result.capture])
                self._lost[result.capture] = self.registry.without_paths(result.reason, paths)
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
        """Build the tables and the index. Return the rows of the table `captures`."""
        from tcptrace_lab.archive.dataset import tables  # noqa: PLC0415  (imports Polars, which hashing does not need)
        from tcptrace_lab.archive.index import page  # noqa: PLC0415  (imports Polars, which hashing does not need)

        for name, known in self.registry.captures.items():
            if part_name(self._settings, name) in self._there:
                known.made_by = self._settings
        self._save(force=True)
        captures = tables.build(self._target, self.registry, self._settings, self._lost, self._write_tables)
        if self._watcher is not None:
            self._watcher.doing("writing the index", 0)
        self._comparison = page.write(self._target, baseline, is_named=self._anonymizer is None)
        return captures

    def _write_tables(self, wanted: Sequence[TablePartition]) -> Iterator[tuple[str, list[str]]]:
        for result in self._run("building the tables", [WriteTable(self._target.root, each) for each in wanted]):
            if isinstance(result, Written):
                if result.reason:
                    raise OutputUnwritable(f"a table could not be written: {result.reason}", where=result.stem, remedy="run it again")
                yield result.stem, result.files

    def batch_result(self, files: int, taken: Sequence[str], captures: pl.DataFrame, *, others: int = 0) -> Batch:
        """Return the result of the run."""
        stored = [name for name in taken if part_name(self._settings, name) in self._there]
        return Batch(
            root=self._target.root,
            files=files,
            captures=captures,
            named=tuple(taken),
            made=self._made,
            kept=max(len(stored) - self._made, 0),
            others=others,
            unreadable=dict(self.registry.unreadable),
            comparison=self._comparison,
            seconds=self._seconds,
            peak_bytes=self._pool.peak_bytes,
        )
