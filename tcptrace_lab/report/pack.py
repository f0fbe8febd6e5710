"""Packs figures into compact text, so that a page with thousands of points is small enough for mail.

A long list of numbers becomes its first value and the differences of neighbours, as integers (`{"d": [first, step, step, …], "e":
decimals}`; null stays null). A list of tuples becomes one packed list per position in the tuples (`{"t": [...]}`). The result is JSON,
compressed with zlib, in base64, whose alphabet has no meaning in HTML. `report.js` unpacks it. Packing is exact for integers and for floats
of up to nine decimals.
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
"""Maximum length of a list that is not packed."""

_DECIMALS = (0, 3, 6, 9)
_LEVEL = 6
"""zlib level: zlib's default compromise between time and size."""

_SMALL_BYTES = 65_536
"""Maximum size of text that is compressed together with other texts. Small texts resemble each other, so compressing them together halves
their space. A larger text is compressed alone, by a thread, and unpacked alone."""

_PLACE_DIGITS = 8
"""Number of digits in a placeholder. The digits identify the value that will replace the placeholder."""

_NOTHING = type(None)
_PLAIN = {str, int, float, bool, _NOTHING}
"""Types of scalar JSON values."""

_LARGEST_EXACT = 2**53
"""Larger integers lose digits in JavaScript, so lists that contain them are not packed."""


def pack(value: object) -> str:
    """Pack a JSON-like `value` (dicts, lists, strings, finite numbers, None) into base64 text."""
    return _deflated(_written(value))


class Packing:
    """Packs the values of one page: small values together, each large value alone, by a thread while the page is rendered.

    Attributes:
        place: a placeholder that the page needs once. `put_in` replaces it by the small values.
    """

    def __init__(self) -> None:
        """Start a page."""
        self._mark = secrets.token_hex(32)  # random, so that nobody can put this text into the page on purpose
        self.place = secrets.token_hex(32)
        self._small: list[bytes] = []
        self._coming: list[Future[str]] = []
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pack")

    def later(self, value: object) -> str:
        """Start packing a value. Return its place among the small values, or a placeholder that `put_in` replaces by the packed text."""
        text = _written(value)
        if len(text) <= _SMALL_BYTES:
            self._small.append(text)
            return str(len(self._small) - 1)
        self._coming.append(self._thread.submit(_deflated, text))
        return f"{self._mark}{len(self._coming) - 1:0{_PLACE_DIGITS}}"

    def put_in(self, page: str) -> str:
        """Return the page with all placeholders replaced."""
        with self._thread:
            page = page.replace(self.place, _deflated(b"[" + b",".join(self._small) + b"]"))
            before, *others = page.split(self._mark)
            coming = ((self._coming[int(other[:_PLACE_DIGITS])], other[_PLACE_DIGITS:]) for other in others)
            packed = (one.result() + after for one, after in coming)
            return "".join((before, *packed))


def unpack(text: str) -> Any:  # noqa: ANN401  (any JSON value)
    """Unpack what `pack` returned, for tests and for readers without a browser."""
    return _widened(json.loads(zlib.decompress(base64.b64decode(text))))


def _written(value: object) -> bytes:
    return json.dumps(_squeezed(value), separators=(",", ":"), allow_nan=False).encode()


def _deflated(text: bytes) -> str:
    return base64.b64encode(zlib.compress(text, level=_LEVEL)).decode("ascii")


def _squeezed(value: object) -> object:
    if isinstance(value, dict):
        return {key: item if type(item) in _PLAIN else _squeezed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        types = set(map(type, value))
        squeezed = _numbers(value, types) if len(value) > SHORT else None
        return squeezed or (value if types <= _PLAIN else [_squeezed(item) for item in value])
    return value


def _numbers(values: Sequence[Any], types: set[type]) -> dict[str, Any] | None:
    """Return the packed form of a list of numbers, or of tuples of numbers, whose values have these types; None for other lists."""
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
    """Return one step per known value, and None at the positions of unknown values."""
    if known is values:
        return steps
    following = iter(steps).__next__
    return [None if value is None else following() for value in values]


def _columns(known: Sequence[Any]) -> list[dict[str, Any]] | None:
    """Return the packed form of each position in a list of tuples; None if the tuples differ in length or contain anything but numbers."""
    if len(set(map(len, known))) > 1:
        return None
    columns = [_numbers(column, set(map(type, column))) for column in zip(*known, strict=True)]
    found = [column for column in columns if column and "d" in column]
    return found if len(found) == len(columns) else None


def _integers(known: Sequence[Any], *, whole: bool) -> tuple[int, Sequence[int]] | None:
    """Return the smallest number of decimals that represents all values exactly, and the values as integers; None if nine are too few."""
    if max(map(abs, known)) >= _LARGEST_EXACT:
        return None
    if whole:
        return 0, known
    for decimals in _DECIMALS:
        scale = 10**decimals
        if round(known[-1] * scale) / scale == known[-1]:  # cheap test: one value usually shows that more decimals are needed
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
