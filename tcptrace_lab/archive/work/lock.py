"""One run at a time writes an archive.

In a folder: `flock` on `state/lock`, which the kernel lets go when its holder ends, however that ends; so no lock is ever stale.

Behind a URL no operation is atomic on every store, so a run announces itself first and looks for others then: an object of its own under
`state/locks/`. Of two that start at once one at least sees the other, on any store that lists what was written before (S3 since 2020, GCS,
Azure); if both do, both withdraw and try again after a random while. The holder renews its object; one that was not renewed for a while is
gone, and counts for nothing (clocks may be a minute apart). Should a holder have slept for longer than that, two runs are
in the archive: both write the same bytes under the same names, and only what the registry remembers of files that are gone may be lost.
Plain HTTP cannot be written at all, and so is no place for an archive.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.archive.place import Folder, at
from tcptrace_lab.errors import OutputUnwritable, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.archive.place import Place

LOCK = "state/lock"
ANNOUNCED = "state/locks"
"""Where runs announce themselves behind a URL."""

RENEW_S = 20.0
"""Time after which the holder of a lock behind a URL says that it is still there."""

STALE_S = 90.0
"""Time without a word after which it is gone: four words missed."""

LOOKS, LOOK_S = 20, 0.05
"""So often, and with so much time between, a lock in a folder is looked at for who holds it."""

ATTEMPTS = 5
"""So often a run that met another one at the door tries again."""

PAUSE_S = 2.0
"""It waits for a random part of this time."""


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
            raise _busy(place, _told(path)) from error
        with contextlib.suppress(OSError):  # words for others; a full disk need not end the run here
            file.truncate(0)
            file.write(_holder())
            file.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                file.truncate(0)


def _told(path: Path) -> str:
    """What the holder says of itself; it may have taken the lock just now, and say so in a moment."""
    for _ in range(LOOKS):
        told = path.read_text(encoding="utf-8", errors="replace")
        if told:
            return told
        time.sleep(LOOK_S)
    return ""


@contextlib.contextmanager
def _behind_url(place: Place) -> Iterator[None]:
    own = f"{ANNOUNCED}/{uuid.uuid4().hex}"
    over = threading.Event()

    def announce(to: Place, *, holds: bool) -> None:
        to.write(own, json.dumps({**json.loads(_holder()), "renewed": time.time(), "holds": holds}).encode())

    def renew() -> None:
        mine = at(place.root)  # a client of its own: they are not made for several threads
        while not over.wait(RENEW_S):
            with contextlib.suppress(OutputUnwritable):
                announce(mine, holds=True)

    renewing = threading.Thread(target=renew, name="lock", daemon=True)
    try:
        for left in reversed(range(ATTEMPTS)):
            announce(place, holds=False)
            met = _met(place, own)
            if met is None:
                break
            place.remove(own)
            if json.loads(met)["holds"] or not left:
                raise _busy(place, met)
            time.sleep(random.SystemRandom().uniform(0, PAUSE_S))
        announce(place, holds=True)
        renewing.start()
        yield
    finally:
        over.set()
        if renewing.ident is not None:
            renewing.join()
        place.remove(own)


def _met(place: Place, own: str) -> str | None:
    """What another run says of itself that holds the lock, or else asks for it; objects of runs that are gone are removed."""
    met = None
    for name in place.names(ANNOUNCED):
        told = place.read(name) if name != own else None
        if told is None:
            continue
        try:
            known = json.loads(told)
            gone, holds = time.time() - known["renewed"] >= STALE_S, known["holds"]
        except (ValueError, KeyError, TypeError):
            continue  # not written by a run
        if gone:
            place.remove(name)
        elif met is None or holds:
            met = told.decode()
    return met


def _busy(place: Place, holder: str) -> UsageError:
    remedy = "wait for it, or name another folder"
    try:
        told = json.loads(holder)
        who = f"process {told['process']} on {told['host']}, since {told['since']}"
        if "renewed" in told:
            remedy += f"; if it was killed, it holds the archive for {max(STALE_S - time.time() + told['renewed'], 0):.0f} s more"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return UsageError("another run writes this archive", where=f"{place.root}, {who}", remedy=remedy)
