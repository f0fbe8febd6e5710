"""What becomes of an archive over time: `gc` removes what no capture needs any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.archive import fingerprint, registry
from tcptrace_lab.archive.dataset import tables
from tcptrace_lab.archive.index import page
from tcptrace_lab.archive.place import TMP, at, is_url, part_name, report_name
from tcptrace_lab.archive.registry import Registry
from tcptrace_lab.archive.run import tidy
from tcptrace_lab.archive.work import lock

if TYPE_CHECKING:
    from tcptrace_lab.archive.place import Place


@dataclass(frozen=True, slots=True)
class Removed:
    """What was, or would be, removed.

    Attributes:
        files: name → bytes.
        captures: those that the archive forgets, because their files are gone: name → their first path.
    """

    files: dict[str, int]
    captures: dict[str, str]

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(self.files.values())


def collect_garbage(root: str, *, missing: bool = False, dry_run: bool = False) -> Removed:
    """Remove what no capture of an archive needs any more.

    That is what other versions of the program made of it (unless there is nothing newer, because its files are gone), reports and parts of
    captures that the archive no longer has, and what killed runs left half written.

    Args:
        root: the archive.
        missing: also forget captures whose files are no longer where they were, or have other contents now.
        dry_run: only tell.

    Raises:
        UsageError: it is no archive, or a run writes it.
        OutputUnwritable: no rights.
    """
    place = at(root)
    registry.check(place, must_exist=True)
    with lock.held(place):
        known = Registry(place)
        settings = _settings(place, known)
        gone = _forgotten(known) if missing else {}
        orphans = place.names(TMP)
        needed = {part_name(by, name) for name, capture in known.captures.items() for by in [settings.get(name)] if by}
        reports = {report_name(name) for name in known.captures}
        unneeded = {name: size for name, size in place.names("parts").items() if name not in needed}
        unneeded |= {name: size for name, size in place.names("reports").items() if name.endswith(".html") and name not in reports}
        found = Removed(unneeded | orphans, gone)
        if not dry_run:
            with tidy(place):
                known.save()
                for name in unneeded:
                    place.remove(name)
                if gone:
                    tables.build(place, known, "", {})
                    page.write(place, None)
        return found


def _settings(place: Place, known: Registry) -> dict[str, str]:
    """Capture → whose part of it is to stay: this program's, or else the last that was made."""
    there = set(place.names("parts"))
    own = [fingerprint.settings(reports=True), fingerprint.settings(reports=False)]
    stay = {}
    for name, capture in known.captures.items():
        # `made_by` is what the tables show, so it comes first.
        stay[name] = next((by for by in (capture.made_by, *own) if by and part_name(by, name) in there), "")
    return stay


def _forgotten(known: Registry) -> dict[str, str]:
    """Take captures out of the registry whose files are gone; their first paths."""
    gone = {}
    for name, capture in list(known.captures.items()):
        left = [
            paths
            for paths in capture.places
            if all(known.digest(path) == digest for path, digest in zip(paths, capture.files, strict=True))
        ]
        if not left:
            gone[name] = capture.places[0][0]
            del known.captures[name]
        else:
            capture.places = left
    for path in [path for path in known.hashed if not is_url(path) and fingerprint.looks(path) is None]:
        del known.hashed[path]
    return gone
