"""Finds the captures in the files, folders, globs and URLs that the user names. Also lists the other files there."""

from __future__ import annotations

import glob
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.archive.sources import rotation
from tcptrace_lab.archive.storage import file_system, is_url
from tcptrace_lab.errors import CaptureUnreadable, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIXES = (
    ".pcap",
    ".pcapng",
    ".cap",
    ".dmp",
    ".erf",
    ".trace",
    ".trc",
    ".snoop",
    ".ntar",
    ".5vw",
    ".bfr",
    ".enc",
    ".syc",
    ".tr1",
    ".fdc",
    ".atc",
)
"""Suffixes of capture files, as Wireshark lists them. A compression suffix or tcpdump's file number can follow."""

PACKINGS = (".gz", ".zst", ".lz4", ".xz")

_MAGICS = (
    b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x34\xcd\xb2\xa1", b"\xa1\xb2\xcd\x34",  # pcap
    b"\n\r\r\n",  # pcapng
    b"snoop\0\0\0", b"GMBU", b"RTSS", b"iptrace 1.0", b"iptrace 2.0", b"btsnoop\0", b"TRSNIFF data",
)  # fmt: skip
"""First bytes of captures, from Wireshark's wiretap. They identify a capture whose name has no known suffix."""

_MAGIC_BYTES = 16


@dataclass(frozen=True, slots=True)
class Found:
    """The files of the sources.

    Attributes:
        captures: the files of each capture, as paths or URLs.
        others: regular files in the folders that are not captures, according to name and first bytes.
    """

    captures: tuple[tuple[str, ...], ...]
    others: tuple[str, ...]

    @property
    def files(self) -> int:
        """Number of all files."""
        return sum(map(len, self.captures)) + len(self.others)


def walk(sources: Iterable[str], *, apart: bool = False, but: str | None = None) -> Found:
    """Find the captures.

    A file that the user names counts as a capture, whatever its name. In folders and globs, only regular files are read, hidden files are
    skipped, and symbolic links to folders are not followed.

    Args:
        sources: files, folders, globs (`**` is recursive) and URLs that fsspec can read. A URL can be a glob or a folder.
        apart: treat each file of a rotated set as a separate capture.
        but: the archive's own folder, which is skipped.

    Raises:
        UsageError: no files found, or a source is a pipe or a device.
        CaptureUnreadable: a source does not exist, or cannot be read or listed.
        MissingTool: a URL needs a package that is not installed.
    """
    named: dict[str, None] = {}
    others: dict[str, None] = {}
    for source in sources:
        for path, is_named in _remote(source) if is_url(source) else _local(source, but):
            (named if is_named or _is_capture(path) else others)[path] = None
    if not named and not others:
        raise UsageError("no files found", where=", ".join(sources), remedy="give captures, or a folder with captures")
    captures = [(path,) for path in named] if apart else rotation.joined(named)
    return Found(tuple(captures), tuple(path for path in others if path not in named))


def _local(source: str, but: str | None) -> Iterator[tuple[str, bool]]:
    """Yield each path, and whether the user named it directly."""
    if not os.path.lexists(source) and glob.has_magic(source):
        hits = sorted(glob.glob(source, recursive=True))  # noqa: PTH207  (the user's pattern stays as it is, and can be absolute)
        if not hits:
            raise UsageError("nothing matches", where=source, remedy="give existing files, or a folder")
        for hit in hits:
            if os.path.isdir(hit) and "**" not in source:  # noqa: PTH112  (the user's path stays as it is)
                yield from _folder(hit, but)
            elif os.path.isfile(hit):  # noqa: PTH113
                yield hit, False
        return
    try:
        mode = os.stat(source).st_mode  # noqa: PTH116
    except OSError as error:
        raise CaptureUnreadable(error.strerror or str(error), where=source, remedy="give existing, readable files or folders") from error
    if stat.S_ISDIR(mode):
        yield from _folder(source, but)
    elif stat.S_ISREG(mode):
        yield source, True
    else:
        raise UsageError(
            "not a regular file, and this command reads each file more than once", where=source, remedy="use analyze for pipes and devices"
        )


def _folder(folder: str, but: str | None) -> Iterator[tuple[str, bool]]:
    own = None if but is None else os.path.realpath(but)
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and os.path.realpath(os.path.join(place, name)) != own)  # noqa: PTH118
        for name in sorted(names):
            path = os.path.join(place, name)  # noqa: PTH118
            if not name.startswith(".") and os.path.isfile(path):  # noqa: PTH113
                yield path, False


def _remote(source: str) -> Iterator[tuple[str, bool]]:
    system = file_system(source)
    inner = system._strip_protocol(source)  # noqa: SLF001  (fsspec documents this function, which returns the path of a URL)
    try:
        if glob.has_magic(source.split("://", 1)[1]):
            hits = sorted(hit for hit in system.glob(inner) if system.isfile(hit))
        elif system.isdir(inner):
            hits = sorted(system.find(inner))
        else:
            yield source, True
            return
    except OSError as error:
        raise CaptureUnreadable(str(error) or type(error).__name__, where=source, remedy="name a URL that can be listed") from error
    for hit in hits:
        yield system.unstrip_protocol(hit), False


def _is_capture(path: str) -> bool:
    """Return whether a file is a capture, by its name or, if the file is local, by its first bytes."""
    name = path.lower()
    for packing in PACKINGS:
        name = name.removesuffix(packing)
    if name.rstrip("0123456789").endswith(SUFFIXES) or name.endswith(SUFFIXES):
        return True
    if is_url(path):
        return False
    try:
        with open(path, "rb") as file:  # noqa: PTH123  (the user's path stays as it is)
            return file.read(_MAGIC_BYTES).startswith(_MAGICS)
    except OSError:
        return False
