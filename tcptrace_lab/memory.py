"""How much memory the process keeps beyond what it uses."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import stat
from typing import TYPE_CHECKING, Final

from tcptrace_lab.streams import is_compressed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SMALL_BYTES: Final = 1_000_000
"""Captures up to this size have tables that fit into memory several times."""

_SETTINGS: Final = {
    "OPENBLAS_NUM_THREADS": "1",  # of numpy, which is asked for no matrix: else threads wait for one, busily at first
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:300,muzzy_decay_ms:0,narenas:2",  # jemalloc of Polars: by default free pages stay resident
    "POLARS_IDEAL_MORSEL_SIZE": "32768",  # rows that a streaming query takes at a time, per thread; 100,000 by default
}
"""Measured on a capture of 100 MB: with these and `give_back` between passes the peak is 270–290 MB, without 340–410. Sooner decay saves
30 MB more and doubles the time in the system (10 million packets: 4 s more)."""


_M_ARENA_MAX: Final = -8
"""glibc's name, in malloc.h, for the most arenas that threads allocate from: each keeps its own free pages."""

_ARENAS: Final = 4
"""As many; by default there are 8 for each processor. On the capture of 100 MB the peak is 50 MB lower, in the same time."""

_OBJECTS: Final = 100_000
"""New objects after which Python looks for cycles: by default 700, which takes a small capture a twentieth of its time."""


def bound() -> None:
    """Have Polars, numpy and the C library keep little; what the user has set stays. To be called before Polars and numpy are imported."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    gc.set_threshold(_OBJECTS)
    if "MALLOC_ARENA_MAX" not in os.environ:
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


@contextlib.contextmanager
def at_hand(paths: Sequence[str]) -> Iterator[None]:
    """While the block lasts, queries are run as on tables in memory if these files are small and not compressed.

    Polars' streaming engine, which bounds what a query holds, takes longer to begin than queries on a few rows take. The setting is the
    process's: for programs that analyze one capture at a time.
    """
    if not _are_small(paths):
        yield
        return
    import polars as pl  # noqa: PLC0415  (`bound` is to be called before)

    with pl.Config(engine_affinity="in-memory"):
        yield


def _are_small(paths: Sequence[str]) -> bool:
    try:
        looks = [os.stat(path) for path in paths]  # noqa: PTH116  (names as given)
        if not all(stat.S_ISREG(look.st_mode) for look in looks):
            return False  # what is read of a pipe is gone
        return sum(look.st_size for look in looks) <= SMALL_BYTES and not any(map(is_compressed, paths))
    except OSError:
        return False  # none of this machine's files; or what the engine will complain of


def give_back() -> None:
    """Give it back where the C library can (glibc's malloc_trim); it keeps what threads freed, hundreds of MB of a large capture."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
