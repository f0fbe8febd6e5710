"""Reads an experiment file (TOML) and validates it against `experiment_keys`. Every error names the file, the line and the key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcptrace_lab.errors import UsageError
from tcptrace_lab.lab.studies.experiment_keys import KEYS, LARGEST_DATAGRAM, LARGEST_MTU, MEASURES, SHAPED_MEDIA, SHAPING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tcptrace_lab.lab.studies.experiment_keys import Setting

MAX_POINTS = 2_000
"""Maximum number of points. A mistake in a sweep can create millions of points, and each takes at least 0.1 s."""

LARGEST_FILE_BYTES = 1 << 20

_WORDS = ("title", "source", "question", "claims")
_SHORT, _SWEEP, _FIGURE = "short", "sweep", "figure"
_FIGURE_KEYS = ("measure", "x", "y", "log_x", "log_y")
_TABLE_LINE = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY_LINE = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_PLACE = re.compile(r"\s*\(at (line \d+, column \d+|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a setting, in base units and as written in the file."""

    value: Setting
    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the report: a `measure` (in `MEASURES`) over the key `x`, with one line for each combination of the other keys.

    With `y`, the figure is a heat map.
    """

    measure: str
    x: str
    y: str = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of settings. `swept` lists the keys that have several values in the experiment."""

    settings: Mapping[str, Value]
    swept: tuple[str, ...]

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  (`experiment_keys` has the types)
        """Return the value of a key in base units, from the file or its default; None if the key has neither."""
        value = self.settings.get(name)
        return KEYS[name].default if value is None else value.value

    @property
    def label(self) -> str:
        """Return the swept settings as text, such as `write 100, kind udp`."""
        return (
            ", ".join(f"{name.partition('.')[2]} {self.settings[name].text}" for name in self.swept if name in self.settings)
            or "the only point"
        )


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared experiment."""

    name: str
    path: str
    text: str
    title: str
    source: str
    question: str
    claims: tuple[str, ...]
    settings: Mapping[str, Value]
    sweep: Mapping[str, tuple[Value, ...]]
    figures: tuple[Figure, ...]
    is_short: bool = False

    @property
    def points(self) -> list[Point]:
        """Return every combination of settings once.

        A setting can be meaningless for some kinds of transfer. Then its values create no further points of these kinds.
        """
        found: dict[tuple[tuple[str, Setting], ...], Point] = {}
        for chosen in product(*self.sweep.values()):
            settings = {**self.settings, **dict(zip(self.sweep, chosen, strict=True))}
            kind = settings["transfer.kind"].value if "transfer.kind" in settings else KEYS["transfer.kind"].default
            settings = {name: value for name, value in settings.items() if not KEYS[name].kinds or kind in KEYS[name].kinds}
            swept = tuple(name for name in self.sweep if name in settings)
            found.setdefault(tuple((name, settings[name].value) for name in swept), Point(settings, swept))
        return list(found.values())


def ready_made() -> list[str]:
    """Return the names of the packaged experiments."""
    return sorted(one.name.removesuffix(".toml") for one in _folder().iterdir() if one.name.endswith(".toml"))


def text_of(name: str) -> tuple[str, str]:
    """Return (path, text) of a packaged experiment or of a file. Raise UsageError if it cannot be read."""
    if name in ready_made():
        return f"{name}.toml", (_folder() / f"{name}.toml").read_text(encoding="utf-8")
    path = Path(name)
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise UsageError("not an experiment: too large", where=name)
        return name, path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"no such experiment, and the file cannot be read: {error.strerror}", where=name, remedy="lab list shows the built-in ones"
        ) from None
    except UnicodeDecodeError:
        raise UsageError("not an experiment: not UTF-8", where=name) from None


def load(name: str, *, short: bool = False) -> Declared:
    """Load a packaged experiment, or an experiment from a file.

    `short` selects its short form. Raise UsageError for an invalid experiment.
    """
    return parse(*text_of(name), short=short)


def parse(path: str, text: str, *, short: bool = False) -> Declared:
    """Return the experiment that `text` declares. Raise UsageError for an invalid text."""
    return _Reader(path, text).declared(short=short)


def _folder() -> Any:  # noqa: ANN401  (the type Traversable is in different modules in different Python versions)
    return resources.files("tcptrace_lab.lab") / "experiments"


class _Reader:
    """Reads one experiment file, and stores the line number of each key."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = path, text
        self._lines = dict(_lines(text))
        try:
            self._tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            place = _PLACE.search(str(error))
            words = _PLACE.sub("", str(error)).rstrip(".")
            raise UsageError(f"not TOML: {words}", where=f"{path}, {place[1] if place else 'somewhere'}") from None

    def declared(self, *, short: bool) -> Declared:
        """Return the validated experiment."""
        known = {*_WORDS, _SHORT, _SWEEP, _FIGURE, *(name.partition(".")[0] for name in KEYS)}
        for name in self._tables:
            if name not in known:
                raise self._wrong((name,), f"there is no key or table {name!r}", f"they are {', '.join(sorted(known))}")
        settings = self._settings(
            {name: value for name, value in self._tables.items() if name not in {*_WORDS, _SHORT, _SWEEP, _FIGURE}}, ()
        )
        sweep = self._sweep(self._table(_SWEEP), (_SWEEP,))
        changes = dict(self._table(_SHORT))
        short_sweep = self._sweep(self._checked_table(changes.pop(_SWEEP, {}), (_SHORT, _SWEEP)), (_SHORT, _SWEEP))
        short_settings = self._settings(changes, (_SHORT,))
        self._check_both(settings, sweep)
        for name in short_sweep:
            if name not in sweep:
                raise self._wrong(
                    (_SHORT, _SWEEP, *name.split(".")), f"{name} is not swept", "the short form has fewer values of the same sweep"
                )
        full = Declared(
            name=Path(self._path).name.removesuffix(".toml"),
            path=self._path,
            text=self._text,
            title=self._word("title"),
            source=self._word("source"),
            question=self._word("question"),
            claims=self._claims(),
            settings=settings,
            sweep=sweep,
            figures=self._figures(set(sweep)),
        )
        shortened = replace(full, settings={**settings, **short_settings}, sweep={**sweep, **short_sweep}, is_short=True)
        for one in (full, shortened):
            self._check_points(one)
        return shortened if short else full

    def _table(self, name: str) -> Mapping[str, Any]:
        return self._checked_table(self._tables.get(name, {}), (name,))

    def _checked_table(self, found: Any, place: tuple[str, ...]) -> Mapping[str, Any]:  # noqa: ANN401
        if not isinstance(found, dict):
            raise self._wrong(place, f"{'.'.join(place)} is a table", f"write it as [{'.'.join(place)}]")
        return found

    def _word(self, name: str) -> str:
        found = self._tables.get(name, "")
        if not isinstance(found, str):
            raise self._wrong((name,), f"{name} must be text", "put it in quotation marks")
        return found

    def _claims(self) -> tuple[str, ...]:
        found = self._tables.get("claims", [])
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self._wrong(("claims",), "claims must be a list of texts", 'write it as ["…", "…"]')
        return tuple(found)

    def _settings(self, tables: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, Value]:
        return {name: self._value(name, raw, place) for name, raw in self._flat(tables, place)}

    def _sweep(self, tables: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, tuple[Value, ...]]:
        found = {}
        for name, raw in self._flat(tables, place):
            if not isinstance(raw, list) or not raw:
                raise self._wrong((*place, *name.split(".")), f"{name} is not swept by {raw!r}", "give a list of its values")
            found[name] = tuple(self._value(name, one, place) for one in raw)
        return found

    def _flat(self, tables: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """Yield the dotted name and the value of each key, from nested tables and quoted names like `"transfer.write"`."""
        for name, found in tables.items():
            if isinstance(found, dict):
                yield from ((f"{name}.{inner}", raw) for inner, raw in found.items())
            elif name in KEYS:
                yield name, found
            else:
                raise self._wrong(
                    (*place, *name.split(".")), f"there is no key {name!r}", "keys belong in tables, such as write in [transfer]"
                )

    def _value(self, name: str, raw: Any, place: tuple[str, ...]) -> Value:  # noqa: ANN401
        key = KEYS.get(name)
        at = (*place, *name.split("."))
        if key is None:
            table = name.partition(".")[0]
            others = [other.partition(".")[2] for other in KEYS if other.partition(".")[0] == table]
            raise self._wrong(at, f"there is no key {name}", f"[{table}] has {', '.join(others)}" if others else "lab show has examples")
        try:
            return Value(key.parsed(raw), _toml_text(raw))
        except ValueError as error:
            raise self._wrong(at, f"{name}: {error}", f"its meaning: {key.meaning}") from None

    def _figures(self, swept: set[str]) -> tuple[Figure, ...]:
        found = self._tables.get(_FIGURE, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self._wrong((_FIGURE,), "figures are tables", "write each as [[figure]]")
        return tuple(self._figure(one, swept) for one in found)

    def _figure(self, table: Mapping[str, Any], swept: set[str]) -> Figure:
        for name, value in table.items():
            at = (_FIGURE, name)
            if name not in _FIGURE_KEYS:
                raise self._wrong(at, f"a figure has no key {name}", f"it has {', '.join(_FIGURE_KEYS)}")
            if name.startswith("log_") and not isinstance(value, bool):
                raise self._wrong(at, f"{name} is true or false", "")
            if name == "measure" and value not in MEASURES:
                raise self._wrong(at, f"{value!r} is not a measure", f"there are {', '.join(MEASURES)}")
            if name in {"x", "y"} and value not in swept:
                raise self._wrong(at, f"{value!r} is not swept", f"there are {', '.join(sorted(swept))}")
        for name in ("measure", "x"):
            if name not in table:
                raise self._wrong((_FIGURE,), f"a figure needs {name}", "as [[figure]] measure = … x = …")
        return Figure(**table)

    def _check_both(self, settings: Mapping[str, Value], sweep: Mapping[str, object]) -> None:
        for name in sweep:
            if name in settings:
                raise self._wrong((_SWEEP, *name.split(".")), f"{name} is both set and swept", "remove one of them")

    def _check_points(self, declared: Declared) -> None:
        count = 1
        for values in declared.sweep.values():
            count *= len(values)
        if count > MAX_POINTS:
            raise self._wrong((_SWEEP,), f"{count:,} points", f"sweep no more than {MAX_POINTS:,}")
        kinds = {str(point["transfer.kind"]) for point in declared.points}
        for name in (*declared.settings, *declared.sweep):
            wanted = KEYS[name].kinds
            if wanted and not kinds & set(wanted):
                raise self._unfit(
                    declared,
                    name,
                    f"{name} does not apply to transfers of kind {', '.join(sorted(kinds))}",
                    f"it applies to {', '.join(wanted)}",
                )
        for point in declared.points:
            self._check_point(declared, point)

    def _check_point(self, declared: Declared, point: Point) -> None:
        medium, kind = str(point["path.medium"]), str(point["transfer.kind"])
        shaped = [name for name in SHAPING if point[name]]
        if medium not in SHAPED_MEDIA and shaped:
            raise self._unfit(
                declared, shaped[0], f"a path over {medium} has no {shaped[0].partition('.')[2]}", 'take medium = "tun" or "tap"'
            )
        if point["path.mtu"] > LARGEST_MTU.get(medium, point["path.mtu"]):
            raise self._unfit(declared, "path.mtu", f"the MTU of {medium} is at most {LARGEST_MTU[medium]:,}", 'take medium = "tun"')
        if kind in {"bulk", "udp"} and (point["transfer.total"] is None) == (point["transfer.writes"] is None):
            raise self._unfit(declared, "transfer.total", f"{kind} needs either total or writes", 'as total = "40K" in [transfer]')
        datagram = {"udp": "transfer.write", "udp-echo": "transfer.message"}.get(kind)
        if datagram is not None and point[datagram] > LARGEST_DATAGRAM:
            raise self._unfit(declared, datagram, f"a datagram has at most {LARGEST_DATAGRAM:,} bytes", "")

    def _unfit(self, declared: Declared, name: str, what: str, remedy: str) -> UsageError:
        """Return an error about a key. It names the place where the file sets the key: the short form, the sweep or the settings."""
        words = tuple(name.split("."))
        places = [(_SHORT, _SWEEP, *words), (_SHORT, *words)] if declared.is_short else []
        places += [(_SWEEP, *words), words, words[:1]]
        return self._wrong(next((place for place in places if place in self._lines), words), what, remedy)

    def _wrong(self, place: tuple[str, ...], what: str, remedy: str) -> UsageError:
        line = next((self._lines[place[:length]] for length in range(len(place), 0, -1) if place[:length] in self._lines), None)
        return UsageError(what, where=self._path if line is None else f"{self._path}, line {line}", remedy=remedy)


def _toml_text(raw: Any) -> str:  # noqa: ANN401
    if isinstance(raw, bool):
        return "yes" if raw else "no"
    if isinstance(raw, list):
        return "+".join(_toml_text(one) for one in raw)
    return f"{raw:,}" if isinstance(raw, int) else str(raw)


def _lines(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each table or key, and the line number of its first occurrence. Multi-line strings in the file can make a number wrong."""
    seen: set[tuple[str, ...]] = set()
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _TABLE_LINE.match(line), _KEY_LINE.match(line)
        if header is not None:
            table = _parts(header[1])
            found = [table]
        elif key is not None:
            parts = _parts(key[1])
            found = [(*table, *parts[:length]) for length in range(1, len(parts) + 1)]
        else:
            continue
        for one in found:
            if one not in seen:
                seen.add(one)
                yield one, number


def _parts(dotted: str) -> tuple[str, ...]:
    """Split a dotted name. Both `"transfer.write"` and `transfer . write` give (transfer, write)."""
    return tuple(part.strip() for part in dotted.replace('"', "").replace("'", "").split("."))
