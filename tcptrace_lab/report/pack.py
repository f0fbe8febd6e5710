"""Figures → little text: what makes thousands of points fit into a page that is sent by mail.

Long lists of numbers become the differences of neighbours, as integers (`{"d": [first, step, step, …], "e": decimals}`, null
for null); lists of tuples become one such list per position (`{"t": [...]}`); the whole is JSON, deflated, in base64, an
alphabet that has no meaning in HTML. `report.js` has the inverse. Exact for integers and for floats of up to nine decimals.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

SHORT = 8
"""Lists up to this length stay as they are."""

_MOST_DECIMALS = 9
_LARGEST_EXACT = 2**53
"""Integers beyond this lose digits in JavaScript; a list that needs them stays as it is."""


def pack(value: object) -> str:
    """JSON-like `value` (dicts, lists, strings, finite numbers, null) as base64 text."""
    text = json.dumps(_squeezed(value), separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), level=9)).decode("ascii")


def unpack(text: str) -> Any:  # noqa: ANN401  (any JSON value)
    """The inverse of `pack`, for tests and for readers without a browser."""
    return _widened(json.loads(zlib.decompress(base64.b64decode(text))))


def _squeezed(value: object) -> object:
    if isinstance(value, dict):
        return {key: _squeezed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        squeezed = _numbers(value) if len(value) > SHORT else None
        return [_squeezed(item) for item in value] if squeezed is None else squeezed
    return value


def _numbers(values: list[Any] | tuple[Any, ...]) -> dict[str, Any] | None:
    """The compact form of a list of numbers or of tuples of numbers; None if it is neither."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if all(isinstance(value, list | tuple) and len(value) == len(known[0]) for value in known):
        columns = [_numbers([None if value is None else value[place] for value in values]) for place in range(len(known[0]))]
        return {"t": columns} if all(column and "d" in column for column in columns) else None
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return None
    decimals = _decimals(known)
    if decimals is None:
        return None
    steps: list[int | None] = []
    previous = 0
    for value in values:
        scaled = None if value is None else round(value * 10**decimals)
        steps.append(None if scaled is None else scaled - previous)
        previous = previous if scaled is None else scaled
    return {"d": steps, "e": decimals}


def _decimals(known: list[int | float]) -> int | None:
    """The fewest decimals that write all values exactly; None if none do."""
    if all(isinstance(value, int) for value in known):
        decimals = 0
    else:
        decimals = max(_written(value) for value in known)
    if decimals > _MOST_DECIMALS or max(abs(value) for value in known) * 10**decimals >= _LARGEST_EXACT:
        return None
    return decimals


def _written(value: float) -> int:
    """Decimals in the shortest text that reads back as `value`."""
    for decimals in (0, 3, 6, _MOST_DECIMALS):
        if round(value, decimals) == value:
            return decimals
    return _MOST_DECIMALS + 1


def _widened(value: Any) -> Any:  # noqa: ANN401  (any JSON value)
    if isinstance(value, list):
        return [_widened(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"t"}:
        return [None if row[0] is None else list(row) for row in zip(*map(_widened, value["t"]), strict=True)]
    if set(value) == {"d", "e"}:
        return _summed(value["d"], value["e"])
    return {key: _widened(item) for key, item in value.items()}


def _summed(steps: list[int | None], decimals: int) -> list[int | float | None]:
    values: list[int | float | None] = []
    total = 0
    for step in steps:
        total += step or 0
        values.append(None if step is None else (total / 10**decimals if decimals else total))
    return values
