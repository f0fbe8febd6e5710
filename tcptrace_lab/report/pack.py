"""Figures → little text: what makes thousands of points fit into a page that is sent by mail.

Long lists of numbers become the differences of neighbours, as integers (`{"d": [first, step, step, …], "e": decimals}`, null
for null); lists of tuples become one such list per position (`{"t": [...]}`); the whole is JSON, deflated, in base64, an
alphabet that has no meaning in HTML. `report.js` has the inverse. Exact for integers and for floats of up to nine decimals.
"""

from __future__ import annotations

import base64
import json
import secrets
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from operator import eq, mul, sub, truediv
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

SHORT = 8
"""Lists up to this length stay as they are."""

_DECIMALS = (0, 3, 6, 9)
_LEVEL = 6
"""Of zlib: its own middle between time and size."""

_PLACE_DIGITS = 8
"""Of the number by which a value that is not yet packed is known in a page."""

_NOTHING = type(None)
_PLAIN = {str, int, float, bool, _NOTHING}
"""Types of values that JSON has."""

_LARGEST_EXACT = 2**53
"""Integers beyond this lose digits in JavaScript; a list that needs them stays as it is."""


def pack(value: object) -> str:
    """JSON-like `value` (dicts, lists, strings, finite numbers, null) as base64 text."""
    return _deflated(_written(value))


class Packing:
    """Packs the values of one page: a thread deflates them while the page is made."""

    def __init__(self) -> None:
        """Begin a page."""
        self._mark = secrets.token_hex(32)  # cannot be met in a page by accident or by design
        self._coming: list[Future[str]] = []
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pack")

    def later(self, value: object) -> str:
        """Stands in the page for what `pack` gives, until that is `put_in`."""
        self._coming.append(self._thread.submit(_deflated, _written(value)))
        return f"{self._mark}{len(self._coming) - 1:0{_PLACE_DIGITS}}"

    def put_in(self, page: str) -> str:
        """The whole page."""
        with self._thread:
            before, *others = page.split(self._mark)
            packed = (self._coming[int(other[:_PLACE_DIGITS])].result() + other[_PLACE_DIGITS:] for other in others)
            return "".join((before, *packed))


def unpack(text: str) -> Any:  # noqa: ANN401  (any JSON value)
    """The inverse of `pack`, for tests and for readers without a browser."""
    return _widened(json.loads(zlib.decompress(base64.b64decode(text))))


def _written(value: object) -> bytes:
    return json.dumps(_squeezed(value), separators=(",", ":"), allow_nan=False).encode()


def _deflated(text: bytes) -> str:
    return base64.b64encode(zlib.compress(text, level=_LEVEL)).decode("ascii")


def _squeezed(value: object) -> object:
    if isinstance(value, dict):
        return {key: _squeezed(item) if isinstance(item, dict | list | tuple) else item for key, item in value.items()}
    if isinstance(value, list | tuple):
        types = set(map(type, value))
        squeezed = _numbers(value, types) if len(value) > SHORT else None
        return squeezed or (value if types <= _PLAIN else [_squeezed(item) for item in value])
    return value


def _numbers(values: Sequence[Any], types: set[type]) -> dict[str, Any] | None:
    """The compact form of a list of numbers or of tuples of numbers, which has values of these types; None if it is neither."""
    known = [value for value in values if value is not None] if _NOTHING in types else values
    types = types - {_NOTHING}
    if types and types <= {list, tuple}:
        columns = _columns(known)
        return None if columns is None else {"t": [{**column, "d": _spaced(column["d"], values, known)} for column in columns]}
    if not types or not types <= {int, float}:
        return None
    scaled = _integers(known, whole=types == {int})
    if scaled is None:
        return None
    decimals, integers = scaled
    return {"d": _spaced(list(map(sub, integers, [0, *integers])), values, known), "e": decimals}


def _spaced(steps: list[int | None], values: Sequence[Any], known: Sequence[Any]) -> list[int | None]:
    """One step for each value that is known, and null where a value is."""
    if known is values:
        return steps
    following = iter(steps).__next__
    return [None if value is None else following() for value in values]


def _columns(known: Sequence[Any]) -> list[dict[str, Any]] | None:
    """The compact form of each position of some tuples, if they are equally long and hold numbers."""
    if len(set(map(len, known))) > 1:
        return None
    columns = [_numbers(column, set(map(type, column))) for column in zip(*known, strict=True)]
    found = [column for column in columns if column and "d" in column]
    return found if len(found) == len(columns) else None


def _integers(known: Sequence[Any], *, whole: bool) -> tuple[int, Sequence[int]] | None:
    """The fewest decimals that write all values exactly, and the values as integers of that unit; None if there are none."""
    if max(map(abs, known)) >= _LARGEST_EXACT:
        return None
    if whole:
        return 0, known
    for decimals in _DECIMALS:
        scale = 10**decimals
        if round(known[-1] * scale) / scale == known[-1]:  # most lists that need more decimals are known by one value
            units = list(map(round, map(mul, known, repeat(scale))))
            if all(map(eq, known, map(truediv, units, repeat(scale)))):
                return None if max(map(abs, units)) >= _LARGEST_EXACT else (decimals, units)
    return None


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
