"""`tcptrace-lab capture`: captures live traffic on this machine's interfaces with dumpcap."""

from __future__ import annotations

import contextlib
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.errors import LabFailed, OutputUnwritable, UsageError
from tcptrace_lab.lab.capturing.dumpcap import CaptureError, Dumpcap, require, running
from tcptrace_lab.process import interrupts
from tcptrace_lab.text.numbers import count

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

KB = 1_000
"""Unit of dumpcap's file size option: 1,000 bytes (dumpcap(1))."""

LIST_TIMEOUT_S = 10.0

_LOOPBACK = "loopback"
_TOLD = re.compile(r"^Packets(?: captured)?: (\d+)", re.MULTILINE)
_FILE = re.compile(r"(?:^|Packets: \d+ )File: (.*)$", re.MULTILINE)
_RIGHTS = re.compile(r"permission", re.IGNORECASE)
_NOT_NAMED = re.compile(r"no device named|no such device|no interface|isn't a valid|invalid|not up", re.IGNORECASE)
_LAST_WORDS = 4_096
"""Number of characters at the end of dumpcap's output in which the latest packet count and file name are searched."""
_NOISE = re.compile(r"^Capturing on |^File: |^Packets|^dumpcap: cap_set_proc|^$")


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface on which dumpcap can capture."""

    name: str
    title: str
    addresses: tuple[str, ...]
    is_loopback: bool


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring buffer of `files` capture files. When a file reaches `file_bytes`, the next file begins."""

    files: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Request:
    """The settings of a capture. If no limit is set, only Ctrl-C stops the capture.

    Attributes:
        interfaces: names of the interfaces. If there are none, dumpcap chooses the first interface that is not loopback.
        capture_filter: filter in the syntax of pcap-filter(7).
        snaplen_bytes: snaplen; None keeps whole packets.
    """

    interfaces: Sequence[str] = ()
    capture_filter: str = ""
    duration_s: int | None = None
    packets: int | None = None
    snaplen_bytes: int | None = None
    ring: Ring | None = None

    def arguments(self, path: Path) -> list[str]:
        """Return dumpcap's command-line arguments for a capture into `path`. Options before the first -i apply to all interfaces."""
        words = ["-f", self.capture_filter] if self.capture_filter else []
        words += ["-s", str(self.snaplen_bytes)] if self.snaplen_bytes else []
        words += [word for name in self.interfaces for word in ("-i", name)]
        words += ["-a", f"duration:{self.duration_s}"] if self.duration_s else []
        words += ["-c", str(self.packets)] if self.packets else []
        if self.ring:
            words += ["-b", f"files:{self.ring.files}", "-b", f"filesize:{self.ring.file_bytes // KB}"]
        return [*words, "-w", str(path), *(["-P"] if path.suffix == ".pcap" else [])]


@dataclass(frozen=True, slots=True)
class Recorded:
    """The result of a capture.

    `files` are the capture files in order. Files that a ring buffer has overwritten are not included. `received` and `dropped` are numbers
    of frames; None if unknown.
    """

    files: tuple[Path, ...]
    received: int | None
    dropped: int | None


def interfaces() -> list[Interface]:
    """List the interfaces on which dumpcap can capture.

    Raises:
        MissingTool: dumpcap is not installed.
        LabFailed: dumpcap does not list the interfaces.
    """
    require(("dumpcap",))
    try:
        done = subprocess.run(["dumpcap", "-D", "-M"], capture_output=True, text=True, check=False, timeout=LIST_TIMEOUT_S)  # noqa: S607
    except subprocess.TimeoutExpired as error:
        raise LabFailed(f"dumpcap lists no interfaces within {LIST_TIMEOUT_S:.0f} s") from error
    if done.returncode:
        raise LabFailed(f"dumpcap lists no interfaces: {_one_line(done.stderr)}")
    return [_interface(line) for line in done.stdout.splitlines() if line]


def _interface(line: str) -> Interface:
    """Parse one line of `dumpcap -D -M`: `1. eth0 ⇥ vendor ⇥ title ⇥ kind ⇥ addresses ⇥ loopback or network ⇥ …`."""
    fields = [*line.split("\t"), "", "", "", "", "", ""]
    addresses = tuple(address for address in fields[4].split(",") if address)
    return Interface(fields[0].partition(". ")[2], fields[2] or fields[1], addresses, fields[5] == _LOOPBACK)


def record(
    request: Request, path: Path, progress: Callable[[int, int], None] | None = None, on_start: Callable[[], None] | None = None
) -> Recorded:
    """Capture until a limit is reached, or until SIGINT (Ctrl-C) or SIGTERM arrives. The files are complete when this function returns.

    Args:
        request: what to capture.
        path: the file. In a ring buffer, dumpcap adds a number and a time to the name of each file. If dumpcap wrote only one file, it is
            renamed to `path`.
        progress: called periodically with the number of captured packets and of written bytes, over all files.
        on_start: called when the capture has started.

    Raises:
        MissingTool: dumpcap is not installed.
        UsageError: the interface does not exist, or the filter is invalid.
        LabFailed: permission is denied, or the file cannot be written.
    """
    with interrupts.noted() as interrupted, running(request.arguments(path), str(path)) as dumpcap:
        try:
            dumpcap.await_start(interrupted.is_set)
            if not dumpcap.opened:
                raise KeyboardInterrupt
            if on_start is not None:
                on_start()
            _follow(dumpcap, progress, interrupted)
        except CaptureError as error:
            raise _explained(dumpcap, request, path) from error
        if dumpcap.process.poll() is None:
            dumpcap.stop()
    counts = dumpcap.received_and_dropped or (None, None)
    written = _files(dumpcap.words)
    files = tuple(file for file in written if file.exists())
    if not files:
        raise LabFailed("dumpcap wrote no file", where=str(path), remedy="check free disk space")
    if len(written) == 1 and request.ring is not None:
        files = (files[0].replace(path),)
    return Recorded(files, *counts)


def _files(words: str) -> list[Path]:
    return [Path(name) for name in dict.fromkeys(_FILE.findall(words.replace("\r", "\n")))]


def _follow(dumpcap: Dumpcap, progress: Callable[[int, int], None] | None, interrupted: threading.Event) -> None:
    sizes: dict[Path, int] = {}

    def has_ended() -> bool:
        last_words = dumpcap.words[-_LAST_WORDS:]
        for file in {*_files(last_words), *list(sizes)[-1:]}:
            with contextlib.suppress(OSError):  # dumpcap has ended in the meantime
                sizes[file] = file.stat().st_size
        if progress is not None and (numbers := _TOLD.findall(last_words.replace("\r", "\n"))):
            progress(int(numbers[-1]), sum(sizes.values()))
        return interrupted.is_set()

    dumpcap.read_until(has_ended, None)


def _explained(dumpcap: Dumpcap, request: Request, path: Path) -> LabFailed | UsageError:
    words = _one_line(dumpcap.words)
    where = ", ".join(request.interfaces) or "dumpcap's first interface"
    if "could not be opened" in words and str(path) in words:
        return OutputUnwritable(
            f"dumpcap cannot write: {words}", where=str(path), remedy="name a file in a folder to which dumpcap can write"
        )
    if _RIGHTS.search(words):
        return LabFailed("no permission to capture", where=where, remedy="run it as root, or give dumpcap the capabilities (setcap)")
    if _NOT_NAMED.search(words):
        return UsageError(
            f"dumpcap rejected the options: {words}", where=where, remedy="--list shows the interfaces; filters are those of pcap-filter(7)"
        )
    return LabFailed(f"dumpcap failed: {words}", where=where)


def _one_line(words: str) -> str:
    """Return dumpcap's error message as one line: the first output lines that are not status messages."""
    lines = [line.strip().removeprefix("dumpcap: ") for line in words.replace("\r", "\n").splitlines() if not _NOISE.search(line.strip())]
    return " ".join(lines[:2])[:240].rstrip(".") or "it says nothing"


def summary(recorded: Recorded) -> str:
    """Return a summary in one line."""
    received = "an unknown number of packets" if recorded.received is None else f"{count(recorded.received)} packets"
    lost = f", {count(recorded.dropped)} more were dropped" if recorded.dropped else ""
    where = f"{recorded.files[0]}" + (f" and {len(recorded.files) - 1} more files" if len(recorded.files) > 1 else "")
    return f"{received} captured{lost}: {where}"
