"""A lock that lets only one run at a time write an archive.

In a folder, the lock is `flock` on `state/lock`. The kernel releases this lock when the process that holds it ends, even if the process is
killed. So the lock is never stale.

Behind a URL, no atomic operation exists that all object stores offer. So a run writes its own lock object under `state/locks/`, and then
lists the lock objects of other runs. If two runs start at the same time, at least one of them finds the lock object of the other. This
requires a store with consistent listings, as S3 (since 2020), GCS and Azure have. If each run finds the other run's lock object, both
withdraw, and retry after a random delay.

The run that holds the lock renews its object every `RENEW_S`. An object older than `STALE_S` belongs to a dead run, and is ignored. Clocks
can differ by a minute. If the run was suspended for longer than `STALE_S`, two runs can write the archive at the same time. Both write the
same bytes under the same names, so no result is lost. Only registry entries of deleted files can be lost. Plain HTTP cannot store an
archive, because it is not writable.
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

from tcptrace_lab.archive.storage import Folder, at
from tcptrace_lab.errors import OutputUnwritable, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.archive.storage import Place

LOCK = "state/lock"
ANNOUNCED = "state/locks"
"""Folder of the lock objects of an archive behind a URL."""

RENEW_S = 20.0
"""Interval at which the holder of a lock behind a URL renews its object."""

STALE_S = 90.0
"""Age from which a lock object counts as stale: its holder has missed four renewals."""

LOOKS, LOOK_S = 20, 0.05
"""A run that finds the folder locked reads who holds the lock. The run tries this up to `LOOKS` times, every `LOOK_S` seconds."""

ATTEMPTS = 5
"""Maximum number of attempts to get the lock while other runs also request it."""

PAUSE_S = 2.0
"""Maximum of the random delay between attempts."""


@contextlib.contextmanager
def hold_lock(place: Place) -> Iterator[None]:
    """Hold the lock of an archive while the block runs.

    Raises:
        UsageError: another run holds the lock. OutputUnwritable: the archive cannot be written.
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
            raise _busy(place, _read_holder(path)) from error
        with contextlib.suppress(OSError):  # the description is only informational, so a full disk does not end the run
            file.truncate(0)
            file.write(_holder())
            file.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                file.truncate(0)


def _read_holder(path: Path) -> str:
    """Return the description that the holder of the lock writes just after locking; empty if none appears in time."""
    for _ in range(LOOKS):
        text = path.read_text(encoding="utf-8", errors="replace")
        if text:
            return text
        time.sleep(LOOK_S)
    return ""


@contextlib.contextmanager
def _behind_url(place: Place) -> Iterator[None]:
    own = f"{ANNOUNCED}/{uuid.uuid4().hex}"
    over = threading.Event()

    def announce(to: Place, *, holds: bool) -> None:
        to.write(own, json.dumps({**json.loads(_holder()), "renewed": time.time(), "holds": holds}).encode())

    def renew() -> None:
        mine = at(place.root)  # each thread needs its own storage client, because clients are not thread-safe
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
    """Return the lock object of the run that holds the lock, or of another run that requests it. Remove stale objects."""
    met = None
    for name in place.names(ANNOUNCED):
        content = place.read(name) if name != own else None
        if content is None:
            continue
        try:
            description = json.loads(content)
            is_stale, holds = time.time() - description["renewed"] >= STALE_S, description["holds"]
        except (ValueError, KeyError, TypeError):
            continue  # not written by a run
        if is_stale:
            place.remove(name)
        elif met is None or holds:
            met = content.decode()
    return met


def _busy(place: Place, holder: str) -> UsageError:
    remedy = "wait for it, or name another folder"
    try:
        description = json.loads(holder)
        who = f"process {description['process']} on {description['host']}, since {description['since']}"
        if "renewed" in description:
            remedy += f"; if it was killed, it holds the archive for {max(STALE_S - time.time() + description['renewed'], 0):.0f} s more"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return UsageError("another run writes this archive", where=f"{place.root}, {who}", remedy=remedy)
