"""Joins the files of a rotated capture, by the file names that dumpcap and tcpdump write.

- `dumpcap -b`: `name_00001_20261121063000.pcapng`; since Wireshark 4.2 also `name_20261121063000_00001.pcapng` (`-b nametimenum:1`).
- `tcpdump -C`: `name.pcap`, `name.pcap1`, `name.pcap2`; with `-W`: `name.pcap0`, … or `name.pcap00`, ….

Files with consecutive numbers form a set. The set ends at a gap in the numbers. The set also ends where the numbers start again, because
the capture was restarted there. Each file can be compressed. A file with any other name is a separate capture.
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
"""dumpcap writes numbers of at least five digits, and times as YYYYMMDDhhmmss."""

_ROTATED = re.compile(r"(?P<base>.*\.(?:pcap|cap|dmp|pcapng))(?P<number>\d*)" + _PACKED)
"""tcpdump appends a number to the name that the user gave.

If this name has no suffix, the appended number looks like digits at the end of the name.
"""


def joined(paths: Iterable[str]) -> list[tuple[str, ...]]:
    """Group files into captures. A rotated set is one capture, in the order of rotation. Any other file is a capture by itself.

    Args:
        paths: distinct paths. The files of a set are in one folder.

    Returns:
        One tuple of paths per capture. The captures are in the order of their first appearance in `paths`.
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
    """Return the family of file names to which a file belongs, and its position in the family: (time, number).

    Zero-padded numbers (`padded`) form one family per number of digits.
    """
    for index, pattern in enumerate(_RINGS):
        if match := pattern.fullmatch(path):
            return ("ring", str(index), match["base"], match["ending"], match["packed"]), (match["time"], int(match["number"]))
    if match := _ROTATED.fullmatch(path):
        key = match["base"], match["packed"], len(match["number"])
        return ("rotated", *key[:2], str(key[2]) if key in padded else ""), ("", int(match["number"] or 0))
    return ("alone", path), ("", 0)


def _runs(family: list[tuple[tuple[str, int], str]]) -> list[tuple[str, ...]]:
    """Split a sorted family where a number is not the previous number plus one."""
    runs: list[list[str]] = []
    last: int | None = None
    for (_, number), path in family:
        if last is None or number != last + 1:
            runs.append([])
        runs[-1].append(path)
        last = number
    return [tuple(run) for run in runs]
