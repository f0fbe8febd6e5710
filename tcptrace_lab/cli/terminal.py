"""What people see: one-line errors, notes, progress, tables. All of it goes to stderr; stdout is for results.

Text from outside (file names, words of other programs) is shown with its control characters spelled out, so that no
capture or file name can drive the terminal.
"""

from __future__ import annotations

import sys
import threading
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

PROGRAM = "tcptrace-lab"

PATIENCE_S = 1.0
"""Work that takes longer than this shows that it goes on (the design's bound)."""

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that can move the cursor, turn the writing direction, or are no characters at all."""


def printable(text: str) -> str:
    """`text` on one line, safe for a terminal: what is not visible is written as an escape."""
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in _HIDDEN else character for character in text
    )


def say(message: str) -> None:
    """One line on stderr, under the program's name."""
    print(f"{PROGRAM}: {printable(message)}", file=sys.stderr, flush=True)  # noqa: T201  (this is where words leave the program)


class Activity:
    """Shows on stderr what goes on, from one second on; see `activity`."""

    def __init__(self, words: str) -> None:
        """Begin with `words`."""
        self._words = words
        self._share: float | None = None
        self._display: Progress | None = None
        self._task: TaskID | None = None
        self._lock = threading.Lock()
        self._over = False
        self._timer = threading.Timer(PATIENCE_S, self._show)
        self._timer.daemon = True

    def segments(self, count: int, share: float | None) -> None:
        """So many segments are read, and such a share of the files, if it is known."""
        self.doing(f"{count:,} segments read", share)

    def datagrams(self, count: int, share: float | None) -> None:
        """So many datagrams are read, and such a share of the files, if it is known."""
        self.doing(f"{count:,} datagrams read", share)

    def connections(self, count: int) -> None:
        """So many connections are written as JSON."""
        self.doing(f"writing the JSON: {count:,} connections")

    def compared(self, count: int) -> None:
        """So many segments are compared."""
        self.doing(f"{count:,} segments compared")

    def doing(self, words: str, share: float | None = None) -> None:
        """Something else goes on now, of which `share` (0 to 1) is done, if that is known."""
        with self._lock:
            self._words, self._share = words, share
            if self._display is not None and self._task is not None:
                self._display.update(self._task, description=self.text, completed=share or 0.0)
                # `update` takes no total of None for one.
                self._display.tasks[0].total = None if share is None else 1.0

    @property
    def text(self) -> str:
        """What is shown beside the bar."""
        return printable(self._words) + ("" if self._share is None else f", {self._share:.0%}".replace("%", " %"))

    def begin(self) -> None:
        """Start waiting for the second to pass."""
        self._timer.start()

    def end(self) -> None:
        """Take the display away, if there is one."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._display is not None:
                self._display.stop()

    def _show(self) -> None:
        from rich.console import Console  # noqa: PLC0415  (50 ms that a short run need not pay)
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        with self._lock:
            if self._over:
                return
            columns = (SpinnerColumn(), BarColumn(bar_width=20), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            self._display = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._display.add_task(self.text, total=None)
            self._display.start()


@contextmanager
def activity(words: str, *, quiet: bool) -> Iterator[Activity]:
    """While the block runs, show what it does: only on a terminal, only from one second on, and nothing stays behind."""
    shown = Activity(words)
    if quiet or not sys.stderr.isatty():
        yield shown
        return
    shown.begin()
    try:
        yield shown
    finally:
        shown.end()
