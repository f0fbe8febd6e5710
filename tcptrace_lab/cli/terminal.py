"""Prints one-line errors, notes and progress for people to stderr. stdout is only for results.

Control characters in text from outside are escaped (`escape.printable`), so that no capture or file name can control the terminal.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcptrace_lab.errors import EXIT_DONE, EXIT_FINDING
from tcptrace_lab.process import interrupts
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress, TaskID

    from tcptrace_lab.errors import ReadInPart

PROGRAM = "tcptrace-lab"

PATIENCE_S = 1.0
"""Duration of work after which its progress is shown."""

MIN_SHARE = 0.01
"""Share of the work after which the remaining time is estimated."""

FILE_WIDTH = 14
"""Maximum length of a file name beside the progress bar."""


def say(message: str) -> None:
    """Print one line to stderr, with the program's name before it."""
    print(f"{PROGRAM}: {printable(message)}", file=sys.stderr, flush=True)  # noqa: T201  (all messages of the program are printed here)


def exit_code(loss: ReadInPart | None, *, met: bool) -> int:
    """Return the exit code for `--fail-on`: 1 if its condition is met, even if a capture was read only in part.

    If a capture was read only in part, stderr says what is missing.

    Args:
        loss: what was not read; None if everything was.
        met: whether the condition is met.

    Raises:
        ReadInPart: a capture was read only in part, and the condition is not met.
    """
    if loss is None:
        return EXIT_FINDING if met else EXIT_DONE
    if not met:
        raise loss
    say(str(loss))
    return EXIT_FINDING


class Activity:
    """Shows progress on stderr after one second; see `activity`."""

    def __init__(self, words: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare the display. `words` describes the first step, and `clock` returns seconds."""
        self._words = words
        self._clock = clock
        self._began_s = clock()
        self._count: int | None = None
        self._share: float | None = None
        self._file = ""
        self._display: Progress | None = None
        self._task: TaskID | None = None
        self._lock = threading.RLock()  # reentrant: an interrupt can remove the display at any point of the main thread
        self._over = False
        self._timer = threading.Timer(PATIENCE_S, self._show)
        self._timer.daemon = True

    def segments(self, count: int, share: float | None) -> None:
        """Show the number of segments read, and the share of the files that has been read, if known."""
        self.doing("segments read", share, count)

    def datagrams(self, count: int, share: float | None) -> None:
        """Show the number of datagrams read, and the share of the files that has been read, if known."""
        self.doing("datagrams read", share, count)

    def connections(self, count: int) -> None:
        """Show the number of connections written as JSON."""
        self.doing("connections written as JSON", count=count)

    def compared(self, count: int) -> None:
        """Show the number of segments compared."""
        self.doing("segments compared", count=count)

    def next_file(self, name: str) -> None:
        """Show the name of the file that is read next, if several files are read."""
        self._file = f"{name if len(name) <= FILE_WIDTH else name[: FILE_WIDTH - 1] + '…'}: "
        self.doing("reading")

    def doing(self, words: str, share: float | None = None, count: int | None = None) -> None:
        """Show the current step: its name, the share of it that is done (0 to 1, if known), and the number of items so far."""
        with self._lock:
            if words != self._words or (count or 0) < (self._count or 0):
                self._began_s = self._clock()
            self._words, self._share, self._count = words, share, count
            if self._display is not None and self._task is not None:
                self._display.update(self._task, description=self.text, completed=share or 0.0)
                # needed because Rich's `update` ignores a total of None
                self._display.tasks[0].total = None if share is None else 1.0

    @property
    def text(self) -> str:
        """Text beside the bar: `1,234,567 segments read, 46%, 1.2 M/s, 3 s left`."""
        elapsed_s = self._clock() - self._began_s
        parts = [self._words if self._count is None else f"{self._count:,} {self._words}"]
        if self._share is not None:
            parts.append(f"{self._share:.0%}")
        if elapsed_s >= PATIENCE_S and self._count:
            parts.append(_rate(self._count / elapsed_s))
        if elapsed_s >= PATIENCE_S and self._share is not None and MIN_SHARE <= self._share < 1:
            parts.append(f"{_time_left(elapsed_s * (1 - self._share) / self._share)} left")
        return printable(self._file + ", ".join(parts))

    def begin(self) -> None:
        """Start the timer after which the display appears."""
        self._timer.start()

    def end(self, patience_s: float = -1) -> None:
        """Remove the display, if it is shown. Wait at most `patience_s` for other threads that use the display (-1: without limit)."""
        self._timer.cancel()
        self._over = True
        if self._lock.acquire(timeout=patience_s):
            if self._display is not None:
                self._display.stop()
            self._lock.release()

    def _show(self) -> None:
        from rich.console import Console  # noqa: PLC0415  (takes 50 ms to import, which a short run saves)
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        with self._lock:
            if self._over:
                return
            columns = (SpinnerColumn(), BarColumn(bar_width=10), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            self._display = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._display.add_task(self.text, total=None)
            self._display.start()


def _rate(per_s: float) -> str:
    """Return a rate as text: 1,234,567 per second becomes `1.23 M/s`."""
    from tcptrace_lab.text import numbers  # noqa: PLC0415  (only the progress display needs it)

    return numbers.rate(per_s).replace("b/s", "/s")


def _time_left(left_s: float) -> str:
    minutes, seconds = divmod(round(left_s), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


@contextmanager
def activity(words: str, *, quiet: bool) -> Iterator[Activity]:
    """Show the progress of the `with` block on a terminal. The display appears after one second and is erased at the end."""
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
