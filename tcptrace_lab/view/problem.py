"""The error answers of the explorer: a status and one line of text."""

from __future__ import annotations

from typing import ClassVar


class Problem(Exception):
    """A request that cannot be answered; the user sees the text of this error."""

    status: ClassVar[int] = 500


class BadRequest(Problem):
    """A parameter is wrong."""

    status = 400


class NotFound(Problem):
    """There is no such thing."""

    status = 404


class TakesTooLong(Problem):
    """The answer needs more time than a request may take."""

    status = 503
