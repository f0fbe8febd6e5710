"""Decompresses captures to plain files, for code that does not read them through the engine."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab._core import EngineError, unpack
from tcptrace_lab.capture.streams import is_compressed
from tcptrace_lab.errors import CaptureUnreadable, from_engine
from tcptrace_lab.process import temporary

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def plain(path: str) -> Iterator[str]:
    """Provide the path of an uncompressed file until the block ends.

    A compressed file is decompressed to a temporary file, as far as it is readable. The path of an uncompressed file is `path` itself.

    Raises:
        CaptureUnreadable: the file cannot be opened or decompressed.
        OutputUnwritable: no room for the decompressed file.
    """
    try:
        packed = is_compressed(path)
    except OSError as error:
        remedy = "give a file that exists and is readable"
        raise CaptureUnreadable(f"cannot be read: {error.strerror}", where=path, remedy=remedy) from error
    if not packed:
        yield path
        return
    with temporary.folder() as folder:
        target = Path(folder, "capture")  # needs a name, because editcap and tshark do not inherit our file descriptors
        with temporary.room():
            target.touch()
            try:
                unpack(path, str(target))
            except EngineError as error:
                raise from_engine(error) from error
        yield str(target)
