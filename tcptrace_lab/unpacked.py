"""Compressed captures as plain files, for those that read a file otherwise than through the engine."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab import temporary
from tcptrace_lab._core import EngineError, unpack
from tcptrace_lab.errors import CaptureUnreadable, from_engine
from tcptrace_lab.streams import is_compressed

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def plain(path: str) -> Iterator[str]:
    """The file itself, or what it holds packed, as far as that goes: in a temporary folder while the block lasts.

    Raises:
        CaptureUnreadable: it cannot be opened, or unpacked.
        OutputUnwritable: there is no room to unpack it.
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
        target = Path(folder, "capture")  # a name, for editcap and tshark have no descriptors of ours
        with temporary.room():
            target.touch()
            try:
                unpack(path, str(target))
            except EngineError as error:
                raise from_engine(error) from error
        yield str(target)
