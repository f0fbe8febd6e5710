"""Shows the progress of a batch: a progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcptrace_lab.archive.work.task import Done
from tcptrace_lab.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress

    from tcptrace_lab.archive.work.task import Result

LINE_S = 10.0
"""Interval between plain lines."""


class Shown:
    """Counts the tasks of a batch and shows its progress. With `quiet`, it shows nothing."""

    def __init__(self, display: Progress | None, *, quiet: bool) -> None:
        """Show the progress in `display`. Without a display, print plain lines."""
        self._display = display
        self._quiet = quiet
        self._task = None if display is None else display.add_task("", total=None, visible=False)
        self._what = ""
        self._total = self._count = self._failed = self._bytes = 0
        self._began = self._last_line_s = time.monotonic()

    def doing(self, what: str, total: int) -> None:
        """Begin the phase `what`, which has `total` tasks."""
        self._what, self._total, self._count, self._bytes = what, total, 0, 0
        self._began = self._last_line_s = time.monotonic()
        if self._display is not None and self._task is not None:
            self._display.reset(self._task, total=total or None, description=what, visible=True)

    def done(self, result: Result) -> None:
        """Count a finished task."""
        self._count += 1
        self._bytes += result.size_bytes
        self._failed += isinstance(result, Done) and result.state in {"failed", "lost"}
        if self._display is not None and self._task is not None:
            self._display.update(self._task, completed=self._count, description=self.text)
        elif time.monotonic() - self._last_line_s >= LINE_S:
            self._line()

    @property
    def text(self) -> str:
        """The progress in words: the numbers of tasks done and failed, the rate, and the remaining time."""
        from tcptrace_lab.text.numbers import NS_PER_S, duration, size  # noqa: PLC0415

        passed_s = max(time.monotonic() - self._began, 1e-6)
        rate = self._count / passed_s
        left_s = (self._total - self._count) / rate if rate else 0.0
        failed = f", {self._failed:,} failed" if self._failed else ""
        speed = f"{rate:.1f}/s" + (f", {size(round(self._bytes / passed_s))}/s" if self._bytes else "")
        return f"{self._what} {self._count:,} of {self._total:,}{failed}; {speed}; {duration(round(left_s) * NS_PER_S)} left"

    def _line(self) -> None:
        self._last_line_s = time.monotonic()
        if not self._quiet:
            say(self.text)


@contextmanager
def shown(*, quiet: bool) -> Iterator[Shown]:
    """Show the progress of a batch until the `with` block ends."""
    if quiet or not sys.stderr.isatty():
        yield Shown(None, quiet=quiet)
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), BarColumn(bar_width=12), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        yield Shown(display, quiet=False)
