"""An interrupt (Ctrl-C, SIGINT) ends the process at once and without a traceback, whatever code is running.

Python raises KeyboardInterrupt between any two steps of the main thread. This can happen while a thread is being started, or before a
cleanup that waits for a silent pipe. It can also happen in a callback of a library that takes the exception for a defect. A command needs
no cleanup for memory, descriptors and unnamed files, because the system frees them. Anything else is created with `making` or registered
with `undoing`, so that an interrupt removes it.

The main thread ends the process at its next Python step. While compiled code blocks the main thread, a watcher thread ends the process
instead.

The console script turns this behaviour on with `end_the_program`. Code that imports the package gets KeyboardInterrupt as usual.
"""

from __future__ import annotations

import _thread
import contextlib
import math
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from tcptrace_lab.errors import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

Made = TypeVar("Made")

_ENDING = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP

PATIENCE_S = 0.3
"""Time that the main thread has to return from compiled code before the watcher thread ends the process."""

_undo: list[Callable[[], object]] = []
"""Actions that run before the process ends. The last action runs first."""

_waiting = 0
"""Number of things that are being created. The process does not end until they exist and are registered in `_undo`."""

_raised_s = -math.inf
"""Time of the last interrupt that became a KeyboardInterrupt (`time.monotonic`)."""

_came = False


def end_the_program() -> None:
    """Make an interrupt end the process from now on, unless the parent process has set interrupts to be ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
        if sys.platform == "win32":  # on Windows, set_wakeup_fd takes no pipe, so an interrupt waits for the next Python step
            return
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        threading.Thread(target=_watch, args=(reader,), name="interrupts", daemon=True).start()


@contextlib.contextmanager
def undoing(action: Callable[[], object]) -> Iterator[None]:
    """While the block runs, an interrupt calls `action` before it ends the process. The call can come from any thread."""
    _undo.append(action)
    try:
        yield
    finally:
        _undo.remove(action)


@contextlib.contextmanager
def making(make: Callable[[], Made], undo: Callable[[Made], object]) -> Iterator[Made]:
    """Create something that can outlive the process, and remove it again if an interrupt arrives before the block ends."""
    global _waiting  # noqa: PLW0603  (signals belong to the process)
    with contextlib.ExitStack() as ending:
        _waiting += 1
        try:
            made = make()
            ending.enter_context(undoing(lambda: undo(made)))
        finally:
            _waiting -= 1
            if _came and not _waiting:
                _end()
        yield made


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """While the block runs, SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, so that the block can clean up.

    Outside the main thread, the block has no effect on signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in _ENDING if _heeded(number)]
    if signal.getsignal(signal.SIGINT) is _interrupted:
        taken.append(signal.SIGINT)
    before = {number: signal.signal(number, _raise) for number in taken}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def noted() -> Iterator[threading.Event]:
    """While the block runs, SIGINT, SIGTERM and SIGHUP only set an event. The block must check the event and end itself.

    Outside the main thread, nothing sets the event.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def note(_signal: int, _frame: FrameType | None) -> None:
        global _raised_s  # noqa: PLW0603
        _raised_s = time.monotonic()
        # The signal can arrive in `event.wait`, which holds the event's lock. A signal handler cannot wait for this lock; a thread can.
        _thread.start_new_thread(event.set, ())

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, *_ENDING) if _heeded(number)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heeded(number: signal.Signals) -> bool:
    """Return whether the process heeds the signal. nohup(1) makes it ignore SIGHUP; a shell makes background jobs ignore SIGINT."""
    return signal.getsignal(number) is not signal.SIG_IGN


def _raise(_signal: int, _frame: FrameType | None) -> None:
    global _raised_s  # noqa: PLW0603
    _raised_s = time.monotonic()
    raise KeyboardInterrupt


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    global _came  # noqa: PLW0603
    _came = True
    if not _waiting:
        _end()


def _watch(reader: int) -> None:
    """Watch for interrupts in a thread. The system writes each signal's number to the pipe, even while the main thread is blocked."""
    while True:
        while signal.SIGINT not in os.read(reader, 1):
            pass
        came_s = time.monotonic()
        time.sleep(PATIENCE_S)
        while _waiting:
            time.sleep(PATIENCE_S)
        if _raised_s < came_s - PATIENCE_S:
            _end()


def _end() -> None:
    for action in reversed(_undo):
        with contextlib.suppress(Exception):  # the process ends anyway
            action()
    os._exit(EXIT_INTERRUPTED)
