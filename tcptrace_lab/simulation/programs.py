"""The text form of what a simulated application does.

    10 * (write 8K/4K; read 1; think 20ms)

    program  =  step *(";" step)
    step     =  TIMES "*" ( step / "(" program ")" ) / action
    action   =  "write" SIZE ["/" CALL]     write a message, in calls of CALL bytes (default: one call)
             /  "read" [SIZE ["/" CALL]]    read SIZE bytes; without SIZE: read until the peer closes
             /  "think" TIME                pause
             /  "wait" TIME                 wait until this time of the run
             /  ("nodelay" / "cork" / "quickack") ("on" / "off")
             /  "mark" NAME                 record the time under a name
             /  "close"                     shut down writing

`quantities` defines how sizes and times are written. An application closes the connection after its last step.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tcptrace_lab.errors import UsageError
from tcptrace_lab.stacks import Close, Mark, Read, Repeat, Set, Think, WaitUntil, Write
from tcptrace_lab.text.quantities import duration_ns, size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.stacks import Step

_TOKEN: Final = re.compile(r"\s*([();*]|[^();*\s]+)")
_OPTIONS: Final = {"nodelay": "no_delay", "cork": "cork", "quickack": "quick_ack"}
MAX_DEPTH: Final = 20
"""Maximum depth of nested parentheses, which keeps the parser far from Python's recursion limit."""

MAX_STEPS: Final = 10_000_000
"""Maximum number of steps, including all repetitions. So many steps take minutes to simulate."""

_EXAMPLE: Final = 'write it as "10 * (write 8K/4K; read 1; think 20ms)"'


def program(text: str) -> tuple[Step, ...]:
    """Parse a text into steps.

    Raises:
        UsageError: the text does not follow the grammar above, or has more than `MAX_STEPS` steps.
    """
    tokens = _TOKEN.findall(text)
    steps = _Parser(tokens).whole()
    if _count(steps) > MAX_STEPS:
        raise UsageError(f"the program has more than {MAX_STEPS:,} steps", remedy="reduce its repetitions")
    return steps


def _count(steps: tuple[Step, ...]) -> int:
    return sum(step.times * _count(step.steps) if isinstance(step, Repeat) else 1 for step in steps)


class _Parser:
    """Recursive-descent parser of one program."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> tuple[Step, ...]:
        steps = self._steps()
        if self._next() is not None:
            raise UsageError(f"program: {self._next()!r} is unexpected here", remedy=_EXAMPLE)
        return steps

    def _next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, wanted: str | None = None) -> str:
        token = self._next()
        if token is None or (wanted is not None and token != wanted):
            found = "the end" if token is None else repr(token)
            raise UsageError(f"program: {found} is found where {wanted or 'a word'} is expected", remedy=_EXAMPLE)
        self._at += 1
        return token

    def _steps(self) -> tuple[Step, ...]:
        found: list[Step] = []
        while self._next() not in {None, ")"}:
            found.append(self._step())
            if self._next() == ";":
                self._take()
            elif self._next() not in {None, ")"}:
                raise UsageError(f"program: a ; is missing before {self._next()!r}", remedy=_EXAMPLE)
        return tuple(found)

    def _step(self) -> Step:
        word = self._take()
        if word.isascii() and word.isdigit():
            self._take("*")
            return Repeat(self._group(), int(word))
        if word not in _ACTIONS:
            raise UsageError(f"program: {word!r} is not an action", remedy=f"use {', '.join(_ACTIONS)}")
        arguments: list[str] = []
        while self._next() not in {None, ";", ")"}:
            arguments.append(self._take())
        return _ACTIONS[word](word, arguments)

    def _group(self) -> tuple[Step, ...]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UsageError(f"program: more than {MAX_DEPTH} nested brackets")
        if self._next() == "(":
            self._take()
            steps = self._steps()
            self._take(")")
        else:
            steps = (self._step(),)
        self._depth -= 1
        return steps


def _only(word: str, arguments: list[str]) -> str:
    if len(arguments) != 1:
        raise UsageError(f"program: {word} is followed by one word, not by {' '.join(arguments) or 'none'}", remedy=_EXAMPLE)
    return arguments[0]


def _sizes(text: str) -> tuple[int, int]:
    """Parse SIZE[/CALL] into bytes. The second value is 0 if the text has no CALL."""
    whole, slash, call = text.partition("/")
    found = size_bytes(whole), size_bytes(call) if slash else 0
    if not found[0] or (slash and not found[1]):
        raise UsageError(f"program: {text} is not a message or call size", remedy="a size is at least 1 byte")
    return found


def _write(word: str, arguments: list[str]) -> Step:
    return Write(*_sizes(_only(word, arguments)))


def _read(word: str, arguments: list[str]) -> Step:
    return Read(*_sizes(_only(word, arguments))) if arguments else Read()


def _think(word: str, arguments: list[str]) -> Step:
    return Think(duration_ns(_only(word, arguments)))


def _wait(word: str, arguments: list[str]) -> Step:
    return WaitUntil(duration_ns(_only(word, arguments)))


def _set(word: str, arguments: list[str]) -> Step:
    states = {"on": True, "off": False}
    state = _only(word, arguments)
    if state not in states:
        raise UsageError(f"program: {word} must be on or off, not {state}")
    return Set(_OPTIONS[word], states[state])


def _mark(word: str, arguments: list[str]) -> Step:
    return Mark(_only(word, arguments))


def _close(word: str, arguments: list[str]) -> Step:
    if arguments:
        raise UsageError(f"program: no action may follow {word}", remedy=_EXAMPLE)
    return Close()


_ACTIONS: Final[dict[str, Callable[[str, list[str]], Step]]] = {
    "write": _write,
    "read": _read,
    "think": _think,
    "wait": _wait,
    **dict.fromkeys(_OPTIONS, _set),
    "mark": _mark,
    "close": _close,
}
"""Keyword → function that makes a step from the keyword and its arguments."""
