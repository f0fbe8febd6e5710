"""The error answers of the explorer: a status and one line of text."""

from __future__ import annotations

from typing import ClassVar


class Problem(Exception):
    """A request that cannot be answered. The user sees the text of this error."""

    status: ClassVar[int] = 500


class BadRequest(Problem):
    """A parameter is wrong."""

    status = 400


class NotFound(Problem):
    """The requested thing does not exist."""

    status = 404


class TakesTooLong(Problem):
    """The answer takes longer than a request is allowed to take."""

    status = 503
