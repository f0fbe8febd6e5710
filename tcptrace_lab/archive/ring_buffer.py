"""`batch --watch` adds each file of a ring buffer to the archive as a separate capture, as soon as the file is closed.

The files are not joined while the ring grows. Otherwise every new file would start a new analysis of the whole capture, and the ring buffer
would already have deleted the oldest files. A capture stays in the archive when its file is deleted. The ring has ended when no process
writes the last file. Then the remaining files are analyzed once more, as one capture, which replaces the captures of the single files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.archive import registry, run
from tcptrace_lab.archive.run import Means
from tcptrace_lab.archive.sources.completeness import Closed
from tcptrace_lab.archive.sources.walk import Found, walk
from tcptrace_lab.archive.storage import at, is_url
from tcptrace_lab.archive.work import lock
from tcptrace_lab.errors import CaptureUnreadable, UsageError
from tcptrace_lab.process import interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcptrace_lab.archive.registry import Registry
    from tcptrace_lab.archive.run import Batch, Watcher
    from tcptrace_lab.connections.anonymizer import Anonymizer

LOOK_S = 1.0
"""Interval between scans for new files."""


def watch(
    sources: Sequence[str],
    output: str,
    *,
    means: Means | None = None,
    stop_after: int = 0,
    baseline: str | None = None,
    reports: bool = True,
    apart: bool = False,
    anonymizer: Anonymizer | None = None,
    watcher: Watcher | None = None,
    closed: Closed | None = None,
    pause: Callable[[], bool] | None = None,
) -> Batch:
    """Add files to the archive when they are closed, until SIGINT, or until `stop_after` captures were added.

    Args:
        sources: as for `run.batch`, but no URLs.
        output: as for `run.batch`.
        means: as for `run.batch`.
        stop_after: number of captures after which to stop; 0: no limit.
        baseline: as for `run.batch`.
        reports: as for `run.batch`.
        apart: never join the files of a ring.
        anonymizer: as for `run.batch`.
        watcher: as for `run.batch`.
        closed: decides which files are complete.
        pause: waits between two scans. It returns False to stop.

    Raises:
        UsageError, OutputUnwritable, MissingTool: as for `run.batch`.
    """
    if any(is_url(source) for source in sources):
        raise UsageError("only files of this machine can be watched", remedy="name folders or globs")
    target = at(output)
    registry.check(target)
    registry.check_key(target, anonymizer)
    closed = closed or Closed()
    with lock.hold_lock(target), run.tidy(target), (means or Means()).workers() as pool, interrupts.noted() as interrupted:
        going = run.Run(target, pool, reports=reports, anonymizer=anonymizer, watcher=watcher, keep=True)
        pause = pause or (lambda: not interrupted.wait(LOOK_S))
        taken: list[str] = []
        joined: set[tuple[str, ...]] = set()
        files, goes_on = 0, True
        while goes_on:
            new = _new(sources, output, going.registry, closed, joined, apart=apart)
            joined |= {capture for capture in new if len(capture) > 1}
            files += sum(len(capture) for capture in new)
            if new:
                taken += [name for name in going.take(Found(tuple(new), ())) if name not in taken]
                going.analyze(stop=interrupted.is_set)
                going.finish(baseline)
            goes_on = (not stop_after or len(taken) < stop_after) and not interrupted.is_set() and pause()
        captures = going.finish(baseline)
        return going.batch_result(files, [name for name in taken if name in going.registry.captures], captures)


def _new(
    sources: Sequence[str], output: str, known: Registry, closed: Closed, joined: set[tuple[str, ...]], *, apart: bool
) -> list[tuple[str, ...]]:
    """Return the captures to add: closed files that are new or changed, and ended rings that are not joined yet."""
    try:
        found = walk(sources, apart=apart, but=output)
    except (UsageError, CaptureUnreadable):  # no files yet
        return []
    paths = [path for files in found.captures for path in files]
    fresh = {path for path in paths if known.digest(path) is None and not known.is_unreadable(path)}
    done = set(closed.of(paths)) & fresh if fresh else set()
    new: list[tuple[str, ...]] = []
    for files in found.captures:
        parts = [(path,) for path in files if path in done]
        if len(files) > 1 and (parts or not (files in joined or known.has(files))) and closed.ended(files):
            new.append(files)
        else:
            new += parts
    return new
