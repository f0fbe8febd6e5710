"""The registry of an archive lists the hash of each file that was read, and the files of each capture. It contains no results.

The registry is saved periodically. After a crash, files are hashed again if they were hashed after the last save. A ring buffer deletes its
files, and then only the registry still lists their captures.

With an anonymizer, the registry stores pseudonyms instead of paths. The methods of the registry accept real paths. A run can translate only
the pseudonyms of paths that it has read itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcptrace_lab.archive import fingerprint
from tcptrace_lab.errors import UsageError
from tcptrace_lab.schema import STORE_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tcptrace_lab.archive.storage import Place
    from tcptrace_lab.connections.anonymizer import Anonymizer

MARK = "archive.json"
REGISTRY = "state/registry.json"


@dataclass(slots=True)
class Known:
    """A capture in the archive.

    Attributes:
        files: SHA-256 and size in bytes of each file.
        places: the paths of the files, or their pseudonyms. If the same files exist in several places, each place has one list of paths.
        made_by: settings (`fingerprint.settings`) of the capture's last part; empty if it has no part.
    """

    files: list[tuple[str, int]]
    places: list[list[str]]
    made_by: str = ""

    @property
    def size_bytes(self) -> int:
        """Total size of the capture's files."""
        return sum(size for _, size in self.files)


class Registry:
    """The files and captures that runs on an archive have read. With an anonymizer, its attributes contain pseudonyms of paths.

    Attributes:
        hashed: path → [metadata (`fingerprint.looks`), SHA-256, size in bytes]. A file with unchanged metadata is not read again.
        captures: name → capture.
        others: files that are not captures.
        unreadable: path → why the file could not be read.
    """

    def __init__(self, place: Place, anonymizer: Anonymizer | None = None) -> None:
        """Load the registry of an archive. It is empty if the archive has no registry."""
        self._place = place
        self._anonymizer = anonymizer
        self._paths: dict[str, str] = {}
        saved: dict[str, Any] = json.loads(place.read(REGISTRY) or b"{}")
        self.hashed: dict[str, list[Any]] = saved.get("hashed", {})
        self.captures = {name: _known(saved_capture) for name, saved_capture in saved.get("captures", {}).items()}
        self.others: list[str] = saved.get("others", [])
        self.unreadable: dict[str, str] = saved.get("unreadable", {})
        self._saved = self._text()

    def digest(self, path: str) -> tuple[str, int] | None:
        """Return the SHA-256 and size in bytes of a file; None if it was never hashed, or its metadata has changed."""
        entry = self.hashed.get(self._name(path))
        if entry is None or entry[0] is None or entry[0] != fingerprint.looks(path):
            return None
        return str(entry[1]), int(entry[2])

    def has(self, files: Sequence[str]) -> bool:
        """Return whether the registry has a capture with exactly these files."""
        names = list(map(self._name, files))
        return any(names in known.places for known in self.captures.values())

    def is_unreadable(self, path: str) -> bool:
        """Return whether the registry lists this file as unreadable."""
        return self._name(path) in self.unreadable

    def looks(self, path: str) -> tuple[int | str, ...]:
        """Return the metadata (`fingerprint.looks`) that a file had when it was hashed; empty if unknown."""
        entry = self.hashed.get(self._name(path))
        return tuple(entry[0] or ()) if entry else ()

    def paths(self, known: Known) -> list[str]:
        """Return the paths of a capture's files; an empty list if this run knows only their pseudonyms."""
        if self._anonymizer is None:
            return known.places[0]
        return next(([self._paths[name] for name in names] for names in known.places if self._paths.keys() >= set(names)), [])

    def add_hash(self, path: str, looks: list[int | str] | None, sha256: str, size_bytes: int) -> None:
        """Store the hash of a file."""
        self.hashed[self._name(path)] = [looks, sha256, size_bytes]

    def note(self, paths: Sequence[str], others: Sequence[str], refused: Mapping[str, str]) -> None:
        """Store which files are not captures (`others`), and why files could not be read (`refused`)."""
        found = list(map(self._name, others))
        now = {*map(self._name, paths), *found}
        self.others = sorted({*(name for name in self.others if name not in now), *found})
        reasons = {self._name(path): self.without_paths(why, [path]) for path, why in refused.items()}
        self.unreadable = {name: why for name, why in self.unreadable.items() if name not in now} | reasons

    def without_paths(self, words: str, paths: Iterable[str]) -> str:
        """Return the message. If the archive is anonymous, pseudonyms replace these paths in the message."""
        return words if self._anonymizer is None else self._anonymizer.without_paths(words, paths)

    def _name(self, path: str) -> str:
        """Return the name of a path in the archive: the path itself, or its pseudonym if the archive is anonymous."""
        if self._anonymizer is None:
            return path
        name = self._anonymizer.file(path)
        self._paths[name] = path
        return name

    def take(self, paths: Sequence[str], files: Sequence[tuple[str, int]], *, keep: bool) -> str:
        """Add a capture, and return its name.

        Args:
            paths: paths of the capture's files.
            files: SHA-256 and size in bytes of each file.
            keep: True: earlier captures with these paths stay. A ring buffer reuses its file names, so the captures of its earlier files
                must stay.
        """
        name = fingerprint.capture_of([digest for digest, _ in files])
        names = list(map(self._name, paths))
        if not keep:
            self._forget(set(names), but=name)
        known = self.captures.setdefault(name, Known(list(files), []))
        if names not in known.places:
            known.places = sorted([*known.places, names])
        return name

    def absorb(self, name: str, paths: Sequence[str]) -> None:
        """Remove captures that consist of files of this capture, with equal paths and contents."""
        digests = dict(zip(map(self._name, paths), (digest for digest, _ in self.captures[name].files), strict=True))
        for other, known in list(self.captures.items()):
            own = [digest for digest, _ in known.files]
            left = [files for files in known.places if [digests.get(path) for path in files] != own]
            if other != name and len(left) < len(known.places):
                known.places = left
                if not left:
                    del self.captures[other]

    def _forget(self, paths: set[str], but: str) -> None:
        """Remove captures at these paths, except `but`. Their files have new contents, or now belong to a larger set."""
        for name, known in list(self.captures.items()):
            left = [files for files in known.places if paths.isdisjoint(files)]
            if name == but:
                known.places = left
            elif not left:
                del self.captures[name]
            else:
                known.places = left

    def save(self) -> None:
        """Write the registry, if it has changed. Raises OutputUnwritable."""
        text = self._text()
        if text != self._saved:
            self._place.write(REGISTRY, text)
            self._saved = text

    def _text(self) -> bytes:
        captures = {name: {"files": known.files, "places": known.places, "made_by": known.made_by} for name, known in self.captures.items()}
        saved_capture = {"hashed": self.hashed, "captures": captures, "others": self.others, "unreadable": self.unreadable}
        return json.dumps(saved_capture, sort_keys=True).encode()


def _known(saved_capture: dict[str, Any]) -> Known:
    return Known([(str(digest), int(size)) for digest, size in saved_capture["files"]], saved_capture["places"], saved_capture["made_by"])


def begin(place: Place, anonymizer: Anonymizer | None = None) -> None:
    """Write `archive.json`, which marks an archive, if it is missing. Raises OutputUnwritable."""
    if place.read(MARK) is None:
        mark = {"what": "an archive of tcptrace-lab", "store_version": STORE_VERSION}
        place.write(MARK, json.dumps(mark if anonymizer is None else mark | {"key": anonymizer.mark}).encode() + b"\n")


def check_key(place: Place, anonymizer: Anonymizer | None) -> None:
    """Check that this run uses the anonymization key of earlier runs, or no key if the earlier runs had none. Raises UsageError."""
    mark = place.read(MARK)
    if mark is not None and json.loads(mark).get("key") != (None if anonymizer is None else anonymizer.mark):
        raise UsageError(
            "the archive was not written with this key of --anonymize",
            where=place.root,
            remedy="name another folder, or give the archive's --anonymize-key",
        )


def is_anonymous(place: Place) -> bool:
    """Return whether an archive contains pseudonyms."""
    return "key" in json.loads(place.read(MARK) or b"{}")


def check(place: Place, *, must_exist: bool = False) -> None:
    """Check that a folder or URL is an archive of this format version, or can become one.

    Raises:
        UsageError: the place has other contents, or is an archive of another version. With `must_exist`, the error is also raised if the
            place is not yet an archive.
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
