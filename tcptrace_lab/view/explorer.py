"""Opens what `view` shows (one capture, two captures, or an archive), with its routes."""

from __future__ import annotations

import contextlib
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tcptrace_lab.archive.storage import is_url
from tcptrace_lab.errors import UsageError
from tcptrace_lab.report.parts import provenance
from tcptrace_lab.view import app, two
from tcptrace_lab.view.archive_api import ArchiveApi
from tcptrace_lab.view.cached import build, cache
from tcptrace_lab.view.cached.store import Store
from tcptrace_lab.view.capture_api import CaptureApi

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from types import TracebackType

    from starlette.types import ASGIApp

    from tcptrace_lab.connections.anonymizer import Anonymizer
    from tcptrace_lab.engine.reread import Progress


SEPARATOR = "vs"
"""The word between two captures on the command line: before and after a change."""


class Subject:
    """The captures or the archive that `view` shows, until the end of the `with` block.

    Attributes:
        name: its name, for a line on stderr.
        app: the application, below the token.
        private: a folder that only its owner can read.
    """

    def __init__(self, name: str, application: ASGIApp, stack: contextlib.ExitStack) -> None:
        self.name = name
        self.app = application
        self.private = cache.root()
        self._stack = stack

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Release the tables."""
        self._stack.close()


class Opener:
    """Opens captures: from the cache, or by reading them."""

    def __init__(
        self,
        stack: contextlib.ExitStack,
        now: datetime,
        anonymizer: Anonymizer | None = None,
        progress: Progress | None = None,
        say: Callable[[str], None] | None = None,
        doing: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare to open captures. `build.build` describes the arguments other than `stack`.

        The tables of a capture stay in use until no `CaptureApi` refers to them, or until `stack` is closed.
        """
        self._stack = stack
        self._now = now
        self._anonymizer = anonymizer
        self._progress = progress
        self._say = say
        self._doing = doing

    def capture(self, paths: Sequence[str]) -> CaptureApi:
        """Open one capture. Raises the errors of `analyze`, and of `cache.capture_of`."""
        hidden = self._anonymizer
        variant = "" if hidden is None else hidden.address("192.0.2.1") + hidden.address("198.51.100.77")  # differs for each key
        capture = cache.capture_of(paths, variant)
        with contextlib.ExitStack() as made:
            folder = made.enter_context(
                cache.opened(
                    capture,
                    lambda new: build.build(paths, new, anonymizer=hidden, progress=self._progress, say=self._say, doing=self._doing),
                )
            )
            lines = provenance.lines(["tcptrace-lab", *sys.argv[1:]], paths, self._now, anonymous=hidden is not None)
            api = CaptureApi(Store(capture, folder), lines)
            self._stack.callback(weakref.finalize(api, made.pop_all().close))
        return api


def opened(
    captures: Sequence[str],
    *,
    now: datetime,
    pair: bool = False,
    anonymizer: Anonymizer | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
    doing: Callable[[str], None] = lambda _: None,
) -> Subject:
    """Open the captures or the archive that the command line names.

    Raises:
        UsageError: these names cannot be viewed together.
        The errors of `analyze`.
    """
    with contextlib.ExitStack() as stack:
        opener = Opener(stack, now, anonymizer, progress, say, doing)
        if len(captures) == 1 and (Path(captures[0]).is_dir() or is_url(captures[0])):
            if anonymizer is not None:
                raise UsageError("the addresses of an archive cannot be replaced", where=captures[0], remedy="view one capture of it")
            archive = ArchiveApi(captures[0], opener.capture)
            return Subject(archive.overview()["name"], app.application(app.archive_routes(archive)), stack.pop_all())
        if pair or SEPARATOR in captures:
            names = [name for name in captures if name != SEPARATOR]
            document = _two(captures, names, anonymizer, doing, pair=pair)
            both = [opener.capture([name]) for name in names]
            return Subject(" and ".join(document["names"]), app.application(app.two_routes(document, both)), stack.pop_all())
        api = opener.capture(captures)
        return Subject(api.store.facts["name"], app.application(app.capture_routes(lambda _: api)), stack.pop_all())


def _two(
    captures: Sequence[str], names: Sequence[str], anonymizer: Anonymizer | None, doing: Callable[[str], None], *, pair: bool
) -> dict[str, Any]:
    """Return the document about two captures. Raises UsageError if there are not exactly two captures."""
    wanted = list(names) if pair else [names[0], SEPARATOR, *names[1:]] if names else []
    if len(names) != 2 or list(captures) != wanted:  # noqa: PLR2004  (a pair)
        raise UsageError("view compares exactly two captures", where=" ".join(captures), remedy="write --pair A B, or A vs B")
    doing("comparing")
    return two.pair(names, anonymizer) if pair else two.compared(names, anonymizer)
