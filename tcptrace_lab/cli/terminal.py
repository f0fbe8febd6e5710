"""What people see: one-line errors, notes, progress, tables. All of it goes to stderr; stdout is for results.

Text from outside is shown with its control characters spelled out (`escape.printable`), so that no capture or file name can drive the
terminal.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcptrace_lab.process import interrupts
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress, TaskID

PROGRAM = "tcptrace-lab"

PATIENCE_S = 1.0
"""Work that takes longer than this shows that it goes on (the design's bound), and for so long before its pace is told."""

LEAST_SHARE = 0.01
"""From here on the time that is left is told: the share of less says little."""

FILE_WIDTH = 14
"""Characters of a file's name that are shown beside the bar."""


def say(message: str) -> None:
    """One line on stderr, under the program's name."""
    print(f"{PROGRAM}: {printable(message)}", file=sys.stderr, flush=True)  # noqa: T201  (this is where words leave the program)


class Activity:
    """Shows on stderr what goes on, from one second on; see `activity`."""

    def __init__(self, words: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with `words`; `clock` counts seconds."""
        self._words = words
        self._clock = clock
        self._began_s = clock()
        self._count: int | None = None
        self._share: float | None = None
        self._file = ""
        self._display: Progress | None = None
        self._task: TaskID | None = None
        self._lock = threading.RLock()  # an interrupt takes the display away, whatever the main thread was doing with it
        self._over = False
        self._timer = threading.Timer(PATIENCE_S, self._show)
        self._timer.daemon = True

    def segments(self, count: int, share: float | None) -> None:
        """So many segments are read, and such a share of the files, if it is known."""
        self.doing("segments read", share, count)

    def datagrams(self, count: int, share: float | None) -> None:
        """So many datagrams are read, and such a share of the files, if it is known."""
        self.doing("datagrams read", share, count)

    def connections(self, count: int) -> None:
        """So many connections are written as JSON."""
        self.doing("connections written as JSON", count=count)

    def compared(self, count: int) -> None:
        """So many segments are compared."""
        self.doing("segments compared", count=count)

    def next_file(self, name: str) -> None:
        """What comes is about this one of several files."""
        self._file = f"{name if len(name) <= FILE_WIDTH else name[: FILE_WIDTH - 1] + '…'}: "
        self.doing("reading")

    def doing(self, words: str, share: float | None = None, count: int | None = None) -> None:
        """`words` goes on now, of which `share` (0 to 1) is done, if that is known, and `count` of what they name."""
        with self._lock:
            if words != self._words or (count or 0) < (self._count or 0):
                self._began_s = self._clock()
            self._words, self._share, self._count = words, share, count
            if self._display is not None and self._task is not None:
                self._display.update(self._task, description=self.text, completed=share or 0.0)
                # `update` takes no total of None for one.
                self._display.tasks[0].total = None if share is None else 1.0

    @property
    def text(self) -> str:
        """What is shown beside the bar: `1,234,567 segments read, 46%, 1.2 M/s, 3 s left`."""
        elapsed_s = self._clock() - self._began_s
        parts = [self._words if self._count is None else f"{self._count:,} {self._words}"]
        if self._share is not None:
            parts.append(f"{self._share:.0%}")
        if elapsed_s >= PATIENCE_S and self._count:
            parts.append(_rate(self._count / elapsed_s))
        if elapsed_s >= PATIENCE_S and self._share is not None and LEAST_SHARE <= self._share < 1:
            parts.append(f"{_time_left(elapsed_s * (1 - self._share) / self._share)} left")
        return printable(self._file + ", ".join(parts))

    def begin(self) -> None:
        """Start waiting for the second to pass."""
        self._timer.start()

    def end(self, patience_s: float = -1) -> None:
        """Take the display away, if there is one; for so long other threads may go on with it (-1: as long as they need)."""
        self._timer.cancel()
        self._over = True
        if self._lock.acquire(timeout=patience_s):
            if self._display is not None:
                self._display.stop()
            self._lock.release()

    def _show(self) -> None:
        from rich.console import Console  # noqa: PLC0415  (50 ms that a short run need not pay)
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        with self._lock:
            if self._over:
                return
            columns = (SpinnerColumn(), BarColumn(bar_width=10), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            self._display = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._display.add_task(self.text, total=None)
            self._display.start()


def _rate(per_s: float) -> str:
    """1,234,567 a second → 1.23 M/s."""
    from tcptrace_lab.text import numbers  # noqa: PLC0415  (only who waits needs it)

    return numbers.rate(per_s).replace("b/s", "/s")


def _time_left(left_s: float) -> str:
    minutes, seconds = divmod(round(left_s), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


@contextmanager
def activity(words: str, *, quiet: bool) -> Iterator[Activity]:
    """While the block runs, show what it does: only on a terminal, only from one second on, and nothing stays behind."""
    shown = Activity(words)
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM", "") in {"", "dumb"}:
        yield shown
        return
    with interrupts.undoing(lambda: shown.end(PATIENCE_S)):
        shown.begin()
        try:
            yield shown
        finally:
            shown.end()
