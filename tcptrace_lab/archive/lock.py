"""One run at a time writes an archive.

In a folder: `flock` on `state/lock`, which the kernel lets go when its holder ends, however that ends; so no lock is ever stale. Behind a
URL: an object that its holder renews; when it was not renewed for a while, its holder is gone, and it may be taken. Should two runs be in
an archive behind a URL all the same, both write the same bytes under the same names.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.archive.place import Folder, at
from tcptrace_lab.errors import OutputUnwritable, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.archive.place import Place

LOCK = "state/lock"

RENEW_S = 20.0
"""Time after which the holder of a lock behind a URL says that it is still there."""

STALE_S = 90.0
"""Time without a word after which it is gone: four words missed."""


@contextlib.contextmanager
def held(place: Place) -> Iterator[None]:
    """Hold the lock of an archive for as long as the block runs.

    Raises:
        UsageError: another run holds it.
        OutputUnwritable: the archive cannot be written.
    """
    with _in_folder(place) if isinstance(place, Folder) else _behind_url(place):
        yield


def _holder() -> str:
    return json.dumps(
        {"host": socket.gethostname(), "process": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())}
    )


@contextlib.contextmanager
def _in_folder(place: Place) -> Iterator[None]:
    path = Path(place.root) / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise OutputUnwritable.from_os(error, path, "name a folder that can be written") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise _busy(place, file.read()) from error
        with contextlib.suppress(OSError):  # words for others; a full disk need not end the run here
            file.truncate(0)
            file.write(_holder())
            file.flush()
        yield


@contextlib.contextmanager
def _behind_url(place: Place) -> Iterator[None]:
    own = _holder()
    before = place.read(LOCK)
    if before is not None:
        told = json.loads(before)
        if time.time() - told.get("renewed", 0) < STALE_S:
            raise _busy(place, before.decode())
    over = threading.Event()

    def renew() -> None:
        mine = at(place.root)  # a client of its own: they are not made for several threads
        while not over.wait(RENEW_S):
            with contextlib.suppress(OutputUnwritable):
                mine.write(LOCK, json.dumps({**json.loads(own), "renewed": time.time()}).encode())

    place.write(LOCK, json.dumps({**json.loads(own), "renewed": time.time()}).encode())
    renewing = threading.Thread(target=renew, name="lock", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()
        place.remove(LOCK)


def _busy(place: Place, holder: str) -> UsageError:
    try:
        told = json.loads(holder)
        who = f"process {told['process']} on {told['host']}, since {told['since']}"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return UsageError("another run writes this archive", where=f"{place.root}, {who}", remedy="wait for it, or name another folder")
