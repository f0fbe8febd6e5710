"""Being ended in the middle: SIGTERM and SIGHUP unwind the program as Ctrl-C does, so that nothing stays behind."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def terminations_interrupt() -> Iterator[None]:
    """While the block lasts, SIGTERM and SIGHUP raise KeyboardInterrupt. Only in the main thread, where Python handles signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
