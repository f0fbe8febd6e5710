"""An interrupt (Ctrl-C, SIGINT) ends the program at once and quietly, wherever it is.

Python's way is an exception, raised between any two steps of the main thread: also while a thread is just being started, in a callback
of a library that takes it for a defect, or where the way out then waits for a pipe that stays silent. A command needs no way out: the
system frees memory, descriptors and nameless files. What it does not free is made by `making`, or told to `undoing`.

The main thread ends the program as soon as it is at a step of Python. Where it waits in compiled code (for the first bytes of a pipe,
for a query), a thread does it instead.

Only the console script asks for this (`end_the_program`). Programs that use the package get KeyboardInterrupt, and nothing here has an
effect.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from tcptrace_lab.errors import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

Made = TypeVar("Made")

PATIENCE_S = 0.3
"""So long the main thread may take to come back from compiled code."""

_undo: list[Callable[[], object]] = []
"""What is to be done before the program ends, the last first."""

_waiting = 0
"""How many things are being made: until they are there, and known here, the program does not end."""

_raised_s = -math.inf
"""When an interrupt became a KeyboardInterrupt (`time.monotonic`)."""

_came = False
"""Whether an interrupt came meanwhile."""


def end_the_program() -> None:
    """From now on an interrupt ends the program; unless whoever started it has interrupts ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        threading.Thread(target=_watch, args=(reader,), name="interrupts", daemon=True).start()


@contextlib.contextmanager
def undoing(action: Callable[[], object]) -> Iterator[None]:
    """While the block runs, an interrupt does `action` before it ends the program: in any thread, whatever the main one is doing."""
    _undo.append(action)
    try:
        yield
    finally:
        _undo.remove(action)


@contextlib.contextmanager
def making(make: Callable[[], Made], undo: Callable[[Made], object]) -> Iterator[Made]:
    """Something that outlives the process, and how it is undone by an interrupt: while it is made, or the block runs."""
    global _waiting  # noqa: PLW0603  (signals are the process's own)
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
    """While the block runs, SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt: the block has a way out, or a use for it.

    In the main thread; in others it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in (signal.SIGTERM, signal.SIGHUP) if _heeded(number)]
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
    """While the block runs, SIGINT, SIGTERM and SIGHUP set an event, and nothing else: the block ends itself when it has seen it.

    In the main thread; in others nothing sets it.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def note(_signal: int, _frame: FrameType | None) -> None:
        global _raised_s  # noqa: PLW0603
        _raised_s = time.monotonic()
        event.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if _heeded(number)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heeded(number: signal.Signals) -> bool:
    """Whether it would do something: nohup(1) has SIGHUP ignored, a shell SIGINT in what it starts in the background."""
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
    """The thread. Every signal writes its number at once, also while the main thread cannot look."""
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
        with contextlib.suppress(Exception):  # the program ends, whatever it is
            action()
    os._exit(EXIT_INTERRUPTED)
