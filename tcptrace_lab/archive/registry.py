"""What an archive knows of files: which contents they had, and which captures they make. It is saved now and then, and may be behind.

Nothing in it is a result: what it lost is hashed again. But it alone remembers captures whose files are gone, as those of a ring buffer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcptrace_lab.archive import fingerprint
from tcptrace_lab.errors import UsageError
from tcptrace_lab.schema import STORE_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcptrace_lab.archive.place import Place

MARK = "archive.json"
REGISTRY = "state/registry.json"


@dataclass(slots=True)
class Known:
    """A capture that was taken in.

    Attributes:
        files: SHA-256 and bytes of each of its files.
        places: their paths; several lists where the same contents were at several places.
        made_by: settings (`fingerprint.settings`) of the last part that was made of it; empty without one.
    """

    files: list[tuple[str, int]]
    places: list[list[str]]
    made_by: str = ""

    @property
    def size_bytes(self) -> int:
        """Of all its files."""
        return sum(size for _, size in self.files)


class Registry:
    """The files that an archive was given.

    Attributes:
        hashed: path → looks (`fingerprint.looks`), SHA-256 and bytes; so that what looks the same is not read again.
        captures: name → what is known of it.
        others: files that are no captures.
        unreadable: path → why it could not be read.
    """

    def __init__(self, place: Place) -> None:
        """What is saved at a place."""
        self._place = place
        saved: dict[str, Any] = json.loads(place.read(REGISTRY) or b"{}")
        self.hashed: dict[str, list[Any]] = saved.get("hashed", {})
        self.captures = {name: _known(told) for name, told in saved.get("captures", {}).items()}
        self.others: list[str] = saved.get("others", [])
        self.unreadable: dict[str, str] = saved.get("unreadable", {})
        self._saved = self._text()

    def digest(self, path: str) -> tuple[str, int] | None:
        """SHA-256 and bytes of a file, if it looks as it did when it was hashed."""
        entry = self.hashed.get(path)
        if entry is None or entry[0] is None or entry[0] != fingerprint.looks(path):
            return None
        return str(entry[1]), int(entry[2])

    def has(self, files: Sequence[str]) -> bool:
        """Whether these files make a capture together."""
        return any(list(files) in known.places for known in self.captures.values())

    def looks(self, path: str) -> tuple[int | str, ...]:
        """How a file looked when it was hashed; empty where that tells nothing."""
        entry = self.hashed.get(path)
        return tuple(entry[0] or ()) if entry else ()

    def take(self, paths: Sequence[str], files: Sequence[tuple[str, int]], *, keep: bool) -> str:
        """Remember that files make a capture, and give its name.

        Args:
            paths: of its files.
            files: their SHA-256 and bytes.
            keep: whether what stood at the same paths before stays, as it should where a ring buffer uses its names again.
        """
        name = fingerprint.capture_of([digest for digest, _ in files])
        if not keep:
            self._forget(set(paths), but=name)
        known = self.captures.setdefault(name, Known(list(files), []))
        if list(paths) not in known.places:
            known.places = sorted([*known.places, list(paths)])
        return name

    def absorb(self, name: str, paths: Sequence[str]) -> None:
        """Let go of captures that are a part of this one, taken in before the rest was there: these contents at some of these paths."""
        digests = dict(zip(paths, (digest for digest, _ in self.captures[name].files), strict=True))
        for other, known in list(self.captures.items()):
            own = [digest for digest, _ in known.files]
            left = [files for files in known.places if [digests.get(path) for path in files] != own]
            if other != name and len(left) < len(known.places):
                known.places = left
                if not left:
                    del self.captures[other]

    def _forget(self, paths: set[str], but: str) -> None:
        """Let go of captures that had one of these files: it has other contents now, or is one of more files."""
        for name, known in list(self.captures.items()):
            left = [files for files in known.places if paths.isdisjoint(files)]
            if name == but:
                known.places = left
            elif not left:
                del self.captures[name]
            else:
                known.places = left

    def save(self) -> None:
        """Write it, if it has changed. Raises OutputUnwritable."""
        text = self._text()
        if text != self._saved:
            self._place.write(REGISTRY, text)
            self._saved = text

    def _text(self) -> bytes:
        captures = {name: {"files": known.files, "places": known.places, "made_by": known.made_by} for name, known in self.captures.items()}
        told = {"hashed": self.hashed, "captures": captures, "others": self.others, "unreadable": self.unreadable}
        return json.dumps(told, sort_keys=True).encode()


def _known(told: dict[str, Any]) -> Known:
    return Known([(str(digest), int(size)) for digest, size in told["files"]], told["places"], told["made_by"])


def begin(place: Place) -> None:
    """Mark a place as an archive, if it is not marked yet. Raises OutputUnwritable."""
    if place.read(MARK) is None:
        place.write(MARK, json.dumps({"what": "an archive of tcptrace-lab", "store_version": STORE_VERSION}).encode() + b"\n")


def check(place: Place, *, must_exist: bool = False) -> None:
    """See that a place is an archive of this version, or may become one.

    Raises:
        UsageError: it holds something else, or an archive of another version; or nothing, if there must be one.
    """
    mark = place.read(MARK)
    if mark is None:
        if must_exist:
            raise UsageError("not an archive", where=place.root, remedy="name a folder that batch has written")
        if any(not name.startswith(("state/", "parts/", "tmp/", "reports/", "tables/")) for name in _first_names(place)):
            raise UsageError("the folder has other contents", where=place.root, remedy="name a new folder, or an archive")
        return
    try:
        found = json.loads(mark)["store_version"]
    except (ValueError, KeyError, TypeError):
        raise UsageError("not an archive", where=place.root, remedy="name a folder that batch has written") from None
    if found != STORE_VERSION:
        raise UsageError(
            f"archive version {found}; this program writes version {STORE_VERSION}",
            where=place.root,
            remedy="analyze its captures again with batch, into another folder",
        )


def _first_names(place: Place) -> Iterable[str]:
    return place.names("")
