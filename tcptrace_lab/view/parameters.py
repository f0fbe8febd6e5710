"""Reads the parameters of a request, checks their bounds, and rejects invalid ones with one plain line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.view.problem import BadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LENGTH = 4_000
"""Maximum length of a parameter's value, in characters."""

MAX_ROWS = 500
"""Maximum number of rows of one answer. Downloads contain all rows."""

MAX_WIDTH = 4_000
"""Maximum number of pixel columns of a figure."""

_MAX_NUMBER = 2**62


def text(query: Mapping[str, str], name: str) -> str:
    """Return a parameter as text; empty if it is not given."""
    value = query.get(name, "")
    if len(value) > MAX_LENGTH:
        raise BadRequest(f"{name} is longer than {MAX_LENGTH:,} characters")
    return value


def number(query: Mapping[str, str], name: str) -> int | None:
    """Return a parameter as a whole number; None if it is not given."""
    value = text(query, name).strip()
    if not value:
        return None
    try:
        found = int(value) if len(value) <= len(str(_MAX_NUMBER)) + 1 else _MAX_NUMBER + 1
    except ValueError:
        raise BadRequest(f"{name} must be a whole number") from None
    if abs(found) > _MAX_NUMBER:
        raise BadRequest(f"{name} is too large")
    return found


def bounded(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    """Return a parameter as a number from 0 to `most`; `default` if it is not given."""
    found = number(query, name)
    if found is not None and not 0 <= found <= most:
        raise BadRequest(f"{name} must be between 0 and {most:,}")
    return default if found is None else found


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether a parameter is set: its value is not empty, 0 or false."""
    return text(query, name).lower() not in {"", "0", "false"}


def page(query: Mapping[str, str]) -> tuple[int, int]:
    """Return the parameters `offset` and `limit` of a table."""
    return bounded(query, "offset", 0, _MAX_NUMBER), bounded(query, "limit", 100, MAX_ROWS)


def window(query: Mapping[str, str], end_ns: int) -> tuple[int, int]:
    """Return the parameters `from_ns` and `to_ns`, limited to the range from 0 to `end_ns`; the whole range if they are not given."""
    first, last = number(query, "from_ns"), number(query, "to_ns")
    from_ns, to_ns = max(first or 0, 0), min(end_ns if last is None else last, end_ns)
    if last is not None and first is not None and last <= first:
        raise BadRequest("to_ns must be after from_ns")
    return (from_ns, to_ns) if from_ns < to_ns else (max(min(from_ns, end_ns) - 1, 0), max(to_ns, 1))


def width(query: Mapping[str, str]) -> int:
    """Return the parameter `width` in pixel columns, at least one."""
    return max(bounded(query, "width", 1_000, MAX_WIDTH), 1)
