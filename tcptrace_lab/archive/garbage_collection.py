"""`archive gc` removes files of an archive that no capture needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.archive import fingerprint, registry
from tcptrace_lab.archive.dataset import tables
from tcptrace_lab.archive.index import page
from tcptrace_lab.archive.registry import Registry
from tcptrace_lab.archive.run import tidy
from tcptrace_lab.archive.storage import TMP, at, is_url, part_name, report_name
from tcptrace_lab.archive.work import lock
from tcptrace_lab.errors import UsageError

if TYPE_CHECKING:
    from tcptrace_lab.archive.storage import Place


@dataclass(frozen=True, slots=True)
class Removed:
    """What `archive gc` removed, or would remove in a dry run.

    Attributes:
        files: name → size in bytes.
        captures: name → first path, for each removed capture. The files of these captures do not exist any more.
    """

    files: dict[str, int]
    captures: dict[str, str]

    @property
    def size_bytes(self) -> int:
        """Total size of the removed files."""
        return sum(self.files.values())


def collect_garbage(root: str, *, missing: bool = False, dry_run: bool = False) -> Removed:
    """Remove files that no capture of an archive needs.

    Three kinds of files are removed: parts that another program version wrote, reports and parts of captures that are not in the archive,
    and temporary files of killed runs. If the files of a capture do not exist any more, the capture cannot be analyzed again. Its part is
    kept, whatever version wrote it.

    Args:
        root: the archive.
        missing: also remove captures whose files were deleted, moved or changed.
        dry_run: only report what would be removed.

    Raises:
        UsageError: not an archive, another run writes it, or `missing` is true for an anonymous archive.
        OutputUnwritable: permission is denied.
    """
    place = at(root)
    registry.check(place, must_exist=True)
    if missing and registry.is_anonymous(place):
        raise UsageError("the archive is anonymous, and has no paths of its captures", where=root, remedy="leave out --missing")
    with lock.hold_lock(place):
        known = Registry(place)
        settings = _settings(place, known)
        forgotten = _forgotten(known) if missing else {}
        orphans = place.names(TMP)
        needed = {part_name(by, name) for name, capture in known.captures.items() for by in [settings.get(name)] if by}
        reports = {report_name(name) for name in known.captures}
        unneeded = {name: size for name, size in place.names("parts").items() if name not in needed}
        unneeded |= {name: size for name, size in place.names("reports").items() if name.endswith(".html") and name not in reports}
        found = Removed(unneeded | orphans, forgotten)
        if not dry_run:
            with tidy(place):
                known.save()
                for name in unneeded:
                    place.remove(name)
                if forgotten:
                    tables.build(place, known, "", {})
                    page.write(place, None)
        return found


def _settings(place: Place, known: Registry) -> dict[str, str]:
    """Return capture → settings of the part to keep: the part in the tables, otherwise a part of this program version."""
    part_names = set(place.names("parts"))
    own = [fingerprint.settings(reports=True), fingerprint.settings(reports=False)]
    stay = {}
    for name, capture in known.captures.items():
        # The tables contain the rows of the part that `made_by` names, so this part comes first.
        stay[name] = next((by for by in (capture.made_by, *own) if by and part_name(by, name) in part_names), "")
    return stay


def _forgotten(known: Registry) -> dict[str, str]:
    """Remove captures from the registry whose files were deleted or changed. Return name → first path."""
    forgotten = {}
    for name, capture in list(known.captures.items()):
        left = [
            paths
            for paths in capture.places
            if all(known.digest(path) == digest for path, digest in zip(paths, capture.files, strict=True))
        ]
        if not left:
            forgotten[name] = capture.places[0][0]
            del known.captures[name]
        else:
            capture.places = left
    for path in [path for path in known.hashed if not is_url(path) and fingerprint.looks(path) is None]:
        del known.hashed[path]
    return forgotten
