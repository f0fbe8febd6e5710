"""`batch --watch`: new files of a ring buffer are taken in as they are closed, each as a capture of its own.

A set that grows would be another capture with each file that comes, and would be analyzed from its start each time; and a ring buffer
throws its first files away. What was taken in stays in the archive when its file goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab import interrupts
from tcptrace_lab.archive import lock, registry, run
from tcptrace_lab.archive.closed import Closed
from tcptrace_lab.archive.place import at, is_url
from tcptrace_lab.archive.run import Means
from tcptrace_lab.archive.walk import Found, walk
from tcptrace_lab.errors import CaptureUnreadable, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcptrace_lab.archive.run import Batch, Watcher

LOOK_S = 1.0
"""Time between looks for new files."""


def watch(
    sources: Sequence[str],
    output: str,
    *,
    means: Means | None = None,
    stop_after: int = 0,
    baseline: str | None = None,
    reports: bool = True,
    watcher: Watcher | None = None,
    closed: Closed | None = None,
    pause: Callable[[], bool] | None = None,
) -> Batch:
    """Take in files as they are closed, until SIGINT, or until `stop_after` captures were taken in (0: any number).

    Args:
        sources: as for `run.batch`, as are those that are not told of here.
        output: as for `run.batch`.
        means: as for `run.batch`.
        stop_after: captures after which it ends.
        baseline: as for `run.batch`.
        reports: as for `run.batch`.
        watcher: as for `run.batch`.
        closed: tells which files are complete.
        pause: waits a while between looks; False to end.

    Raises:
        UsageError, OutputUnwritable, MissingTool: as for `run.batch`.
    """
    if any(is_url(source) for source in sources):
        raise UsageError("only files of this machine can be watched", remedy="name folders or globs")
    target = at(output)
    registry.check(target)
    closed = closed or Closed()
    with lock.held(target), run.tidy(target), (means or Means()).workers() as pool, interrupts.noted() as interrupted:
        going = run.Run(target, pool, reports=reports, watcher=watcher, keep=True)
        pause = pause or (lambda: not interrupted.wait(LOOK_S))
        taken: list[str] = []
        files, goes_on = 0, True
        while goes_on:
            new = _new(sources, output, going, closed)
            files += len(new)
            if new:
                taken += [name for name in going.take(Found(tuple((path,) for path in new), ())) if name not in taken]
                going.analyze(stop=interrupted.is_set)
                going.finish(baseline)
            goes_on = (not stop_after or len(taken) < stop_after) and not interrupted.is_set() and pause()
        captures = going.finish(baseline)
        return going.told(files, taken, captures)


def _new(sources: Sequence[str], output: str, going: run.Run, closed: Closed) -> list[str]:
    """Files that are closed and were not taken in as they are now."""
    try:
        found = walk(sources, apart=True, but=output)
    except (UsageError, CaptureUnreadable):  # nothing is there yet
        return []
    fresh = [path for (path,) in found.captures if going.registry.digest(path) is None and path not in going.registry.unreadable]
    done = set(closed.of([path for (path,) in found.captures])) if fresh else set()
    return [path for path in fresh if path in done]
