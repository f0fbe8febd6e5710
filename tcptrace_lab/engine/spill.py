"""Stores rows that can exceed memory: in memory up to a limit, then as Parquet in temporary files.

The files have no names. The lazy frame that scans a file owns the open file. The operating system frees the space when the last Polars
frame that uses the file is gone, and also when the process is killed.
"""

from __future__ import annotations

import contextlib
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any, Literal

import polars as pl

from tcptrace_lab.engine.revisions import NONE
from tcptrace_lab.errors import OutputUnwritable, as_os_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcptrace_lab.engine.revisions import Revisions

ROW_GROUP_ROWS = 131_072
"""Number of rows that are decoded together when a file is read. Segment rows take about 20 MB."""

COMPRESSION: Literal["lz4"] = "lz4"
"""CPU time and size per million segment rows (158 MB in memory): lz4 0.42 s and 77 MB, none 0.4 s and 123 MB, zstd-1 0.5 s and 53 MB.
zstd-1 is also slower to read."""


def parquet(row_group_rows: int) -> Callable[[pl.DataFrame, IO[bytes]], None]:
    """Return a function that writes a frame as Parquet, with `row_group_rows` rows per row group."""

    def write(frame: pl.DataFrame, file: IO[bytes]) -> None:
        frame.lazy().sink_parquet(file, compression=COMPRESSION, row_group_size=row_group_rows)

    return write


class Files:
    """Stores frames in unnamed temporary files, one file per frame.

    A thread writes a frame while the caller continues. `add` waits until the previous frame is written, so that at most two frames are in
    memory.
    """

    def __init__(self, write: Callable[[pl.DataFrame, IO[bytes]], None]) -> None:
        """Start without files.

        Args:
            write: writes one frame to one file (`parquet`).
        """
        self._write_frame = write
        self._files: list[IO[bytes]] = []
        self._writer: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None

    @property
    def some(self) -> bool:
        """Whether there are any files."""
        return self._writer is not None

    def add(self, frame: pl.DataFrame) -> None:
        """Write one frame. Raises OutputUnwritable if this frame or the previous frame finds no room or no temporary directory."""
        self._wait()
        if self._writer is None:
            self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spill")
            _allow_many_files()
        self._pending = self._writer.submit(self._write, frame)

    def finish(self) -> list[IO[bytes]]:
        """Return the files in the order of `add`. The caller closes them. Raises OutputUnwritable as `add` does."""
        self._wait()
        if self._writer is not None:
            self._writer.shutdown()
        files, self._files = self._files, []
        return files

    def _write(self, frame: pl.DataFrame) -> None:
        try:
            file: IO[bytes] = tempfile.TemporaryFile(prefix="tcptrace-lab-")  # noqa: SIM115  (the caller of `finish` closes the file)
            self._files.append(file)
            self._write_frame(frame, file)
            file.flush()
            file.seek(0)
        except Exception as error:
            close(self._files)
            refusal = as_os_error(error)
            if refusal is None:
                raise
            raise OutputUnwritable.from_os(refusal, _place(), "set TMPDIR to a directory with room") from error

    def _wait(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()


class Spill:
    """Collects frames with equal schemas, and returns all rows as one lazy frame, in the order of `add`."""

    def __init__(self, schema: Mapping[str, pl.DataType], spill_rows: int) -> None:
        """Start without rows. Up to `spill_rows` rows are kept in memory."""
        self._schema = dict(schema)
        self._spill_rows = spill_rows
        self._held: list[pl.DataFrame] = []
        self._held_rows = 0
        self._files = Files(self._write)

    def add(self, frame: pl.DataFrame) -> None:
        """Add the rows of `frame`. Raises OutputUnwritable as `Files.add` does."""
        if frame.is_empty():
            return
        self._held.append(frame)
        self._held_rows += frame.height
        if self._held_rows > self._spill_rows or self._files.some:
            self._put(self._held)
            self._held, self._held_rows = [], 0

    def finish(self, revisions: Revisions = NONE) -> pl.LazyFrame:
        """Return all rows; in segment rows, `revisions` are applied. Raises OutputUnwritable as `add` does."""
        files = self._files.finish()
        if not files:
            held = [revisions.of(frame) for frame in self._held] or [pl.DataFrame(schema=self._schema)]
            return pl.concat(held, rechunk=False).lazy()
        scan = self._scan(files, revisions)
        close(files)  # the scan keeps the files open
        return scan

    def _put(self, rows: list[pl.DataFrame]) -> None:
        self._files.add(pl.concat(rows, rechunk=True))  # one contiguous block makes one large write per column

    @staticmethod
    def _write(frame: pl.DataFrame, file: IO[bytes]) -> None:
        parquet(ROW_GROUP_ROWS)(frame, file)

    def _scan(self, files: list[IO[bytes]], revisions: Revisions) -> pl.LazyFrame:
        sources: list[Any] = list(files)
        return revisions.lazily(pl.scan_parquet(sources, schema=self._schema))


def close(files: list[IO[bytes]]) -> None:
    """Close all files, and empty the list."""
    for file in files:
        with contextlib.suppress(OSError):  # on a full disk, closing fails too; the first error was already raised
            file.close()
    files.clear()


def _place() -> str:
    try:
        return f"temporary files in {tempfile.gettempdir()}"
    except OSError:  # no temporary directory is writable
        return "temporary files"


def _allow_many_files() -> None:
    """Raise the soft limit on open files to the hard limit.

    Each part is a file of its own. The usual limit of 1,024 files would be reached at half a billion rows.
    """
    try:
        import resource  # noqa: PLC0415  (Windows has none)
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
