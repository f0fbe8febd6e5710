"""Files that one capture was rotated over: told by their names alone, as dumpcap and tcpdump make them.

- `dumpcap -b`: `name_00001_20261121063000.pcapng`; since Wireshark 4.2 also `name_20261121063000_00001.pcapng` (`-b nametimenum:1`).
- `tcpdump -C`: `name.pcap`, `name.pcap1`, `name.pcap2`; with `-W`: `name.pcap0`, … or `name.pcap00`, ….

Numbers that follow each other make a set; a gap ends it, and so does a number that starts again (the program was started again). Each may
be compressed. A name alone proves nothing, so a single file is no set, and nothing else is taken for one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PACKED = r"(?P<packed>(?:\.(?:gz|zst|lz4|xz))?)"
_RINGS = (
    re.compile(r"(?P<base>.*)_(?P<number>\d{5,})_(?P<time>\d{14})(?P<ending>(?:\.[^.]+)?)" + _PACKED),
    re.compile(r"(?P<base>.*)_(?P<time>\d{14})_(?P<number>\d{5,})(?P<ending>(?:\.[^.]+)?)" + _PACKED),
)
"""dumpcap's numbers have five digits at least, its times are YYYYMMDDhhmmss."""

_ROTATED = re.compile(r"(?P<base>.*\.(?:pcap|cap|dmp|pcapng))(?P<number>\d*)" + _PACKED)
"""tcpdump's numbers follow the name as it was given. Without an ending nothing tells such a name from others that end in a number."""


def joined(paths: Iterable[str]) -> list[tuple[str, ...]]:
    """The captures that files make: sets in the order of their rotation, other files alone.

    Args:
        paths: of files, each once; folders are part of a set's name.

    Returns:
        Each path in one tuple, in the order of the first of each.
    """
    order = {path: place for place, path in enumerate(paths)}
    matches = {path: match for path in order if (match := _ROTATED.fullmatch(path))}
    padded = {(match["base"], match["packed"], len(match["number"])) for match in matches.values() if re.match(r"0\d", match["number"])}
    families: dict[tuple[str, ...], list[tuple[tuple[str, int], str]]] = defaultdict(list)
    for path in order:
        family, place = _placed(path, padded)
        families[family].append((place, path))
    found = [run for family in families.values() for run in _runs(sorted(family))]
    return sorted(found, key=lambda run: min(order[path] for path in run))


def _placed(path: str, padded: set[tuple[str, str, int]]) -> tuple[tuple[str, ...], tuple[str, int]]:
    """The family of a file, and its place in it: time and number. Numbers filled up with zeros (`padded`) are a family of their width."""
    for index, pattern in enumerate(_RINGS):
        if match := pattern.fullmatch(path):
            return ("ring", str(index), match["base"], match["ending"], match["packed"]), (match["time"], int(match["number"]))
    if match := _ROTATED.fullmatch(path):
        key = match["base"], match["packed"], len(match["number"])
        return ("rotated", *key[:2], str(key[2]) if key in padded else ""), ("", int(match["number"] or 0))
    return ("alone", path), ("", 0)


def _runs(family: list[tuple[tuple[str, int], str]]) -> list[tuple[str, ...]]:
    """Files of one family, by place, cut where a number does not follow the one before."""
    runs: list[list[str]] = []
    last: int | None = None
    for (_, number), path in family:
        if last is None or number != last + 1:
            runs.append([])
        runs[-1].append(path)
        last = number
    return [tuple(run) for run in runs]
