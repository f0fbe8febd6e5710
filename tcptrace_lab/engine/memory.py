"""Limits the free memory that the process keeps in reserve."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import stat
from typing import TYPE_CHECKING, Final

from tcptrace_lab.capture.streams import is_compressed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

SMALL_BYTES: Final = 1_000_000
"""Captures up to this size are small: several copies of their tables fit into memory."""

SETTINGS: Final = {
    "OPENBLAS_NUM_THREADS": "1",  # numpy: no matrices are computed here, and idle threads would use the processor at first
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:300,muzzy_decay_ms:0,narenas:2",  # Polars' jemalloc: by default, free pages stay in memory
    "POLARS_IDEAL_MORSEL_SIZE": "32768",  # rows that a streaming query processes per thread at a time; default 100,000
}
"""Peak memory for a capture of 100 MB: 270–290 MB with these settings and `give_back` between passes, 340–410 MB without them. A faster
decay saves 30 MB more but doubles the system time (4 s more for 10 million packets)."""


_M_ARENA_MAX: Final = -8
"""`M_ARENA_MAX` of glibc's malloc.h: the maximum number of arenas that threads allocate from. Each arena keeps its own free pages."""

_NO_GLIBC: Final = (AttributeError, OSError, TypeError)
"""Errors of an attempt to call a glibc function on other systems. macOS and musl lack the function; on Windows, `CDLL(None)` raises
TypeError."""

_ARENAS: Final = 4
"""Number of arenas; the default is 8 per processor. Four arenas lower the peak memory for a capture of 100 MB by 50 MB and cost no time."""

_OBJECTS: Final = 100_000
"""Number of new objects after which Python looks for cycles. With the default of 700, the search takes a twentieth of the time of a small
analysis."""


def bound() -> None:
    """Make Polars, numpy and the C library keep little free memory.

    Variables that the user has set keep their values. `bound` must be called before Polars and numpy are imported.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    gc.set_threshold(_OBJECTS)
    if "MALLOC_ARENA_MAX" not in os.environ:
        with contextlib.suppress(*_NO_GLIBC):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


_whole = False
"""Whether `batches` collects a query all at once."""


@contextlib.contextmanager
def at_hand(paths: Sequence[str]) -> Iterator[None]:
    """While the block runs, use Polars' in-memory engine and single batches, if the files are small.

    Polars' streaming engine and batches limit the memory of a query. But for a few rows, starting their threads takes longer than the
    query. The settings apply to the whole process, so the process must analyze only one capture at a time. Compressed files never count as
    small.
    """
    global _whole  # noqa: PLW0603  (a global, because Polars' setting is global)
    if not _are_small(paths):
        yield
        return
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    import polars as pl  # noqa: PLC0415  (`bound` must be called first, because Polars reads the environment only once)

    before, _whole = _whole, True
    try:
        with pl.Config(engine_affinity="in-memory"):
            yield
    finally:
        _whole = before


def batches(rows: pl.LazyFrame, chunk_rows: int | None = None) -> Iterator[pl.DataFrame]:
    """Yield the rows of a query in order, in batches of `chunk_rows` (None: Polars' default), or in one batch within `at_hand`."""
    if _whole:
        yield rows.collect()
    else:
        yield from rows.collect_batches(chunk_size=chunk_rows, maintain_order=True)


def _are_small(paths: Sequence[str]) -> bool:
    try:
        looks = [os.stat(path) for path in paths]  # noqa: PTH116  (names as given)
        if not all(stat.S_ISREG(look.st_mode) for look in looks):
            return False  # reading the first bytes of a pipe would consume them
        return sum(look.st_size for look in looks) <= SMALL_BYTES and not any(map(is_compressed, paths))
    except OSError:
        return False  # the engine will report that it cannot read the file


def give_back() -> None:
    """Return free memory to the operating system (glibc's malloc_trim).

    After a large capture, this releases hundreds of MB that threads have freed.
    """
    with contextlib.suppress(*_NO_GLIBC):
        ctypes.CDLL(None).malloc_trim(0)
