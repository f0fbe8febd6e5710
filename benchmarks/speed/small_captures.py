"""The rows of the table for small captures: `analyze` on one small capture, and `batch` on all captures of the repository."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import peers
from measure import Command, Printed

if TYPE_CHECKING:
    from pathlib import Path

SMALL: Final = "small"
BATCH: Final = "batch"
KINDS: Final = (SMALL, BATCH)
"""The names of these rows, in the table and in `Command.capture`."""
BATCH_TABLES: Final = "batch, with reports"
TSHARK_CONVERSATIONS: Final = "tshark -z conv,tcp"
TSHARK_LOOP: Final = "tshark loop, all cores"

_CAPTURES: Final = peers.HERE.parent / "captures"
_SMALL_CAPTURE: Final = _CAPTURES / "ethernet-bulk.pcapng"
_SMALL_PACKETS: Final = 505
_CONVERSATIONS: Final = ("tshark", "-n", "-q", "-z", "conv,tcp", "-r")
"""The command that `batch` is compared with. It lists TCP conversations with bytes and times, without name resolution."""
_SUFFIXES: Final = (".pcap", ".pcapng", ".gz", ".zst")
_SHIFT_S: Final = 1
"""Shift of all timestamps in the second copy of each capture, because `batch` analyzes equal files once."""
COPIES: Final = 2


def copies(into: Path) -> list[Path]:
    """Copy all captures of the repository that editcap can read to `into`, and return the files.

    Each capture is copied `COPIES` times with different times. Without editcap, there are no files.
    """
    editcap = shutil.which("editcap")
    if editcap is None:
        return []
    into.mkdir(parents=True, exist_ok=True)
    made = []
    for capture in sorted(path for path in _CAPTURES.iterdir() if path.suffix in _SUFFIXES):
        targets = [into / f"{capture.name.replace('.', '-')}-{copy}.pcapng" for copy in range(COPIES)]
        for copy, target in enumerate(targets):
            if not target.exists():
                unfinished = target.with_suffix(".unfinished")
                moved = subprocess.run(
                    [editcap, "-t", str(copy * _SHIFT_S), str(capture), str(unfinished)], capture_output=True, check=False
                )
                if moved.returncode:
                    unfinished.unlink(missing_ok=True)
                    break
                unfinished.replace(target)
        else:
            made += targets
    return made


def small(reports: Path) -> list[Command]:
    """Return `analyze` with its report on a capture of 505 packets, and tshark's conversations of this capture."""
    report = reports / "small.html"
    ours = (*peers.PROGRAM, "analyze", str(_SMALL_CAPTURE), "-o", str(report), "--quiet")
    return [
        Command(peers.ANALYZE, SMALL, ours, _SMALL_PACKETS, _SMALL_PACKETS, lambda _: peers.report_is_there(report)),
        Command(TSHARK_CONVERSATIONS, SMALL, (*_CONVERSATIONS, str(_SMALL_CAPTURE)), _SMALL_PACKETS, _SMALL_PACKETS, _conversations),
    ]


def batch(captures: Path, reports: Path) -> list[Command]:
    """Return `batch` on all captures, and tshark on all captures.

    `batch` writes reports and tables to a new archive each time. As many tsharks run at a time as there are cores.
    """
    files = copies(captures)
    if not files:
        return []
    archive = reports / "archive"
    ours = shlex.join([*peers.PROGRAM, "batch", "--separate", str(captures), "-o", str(archive), "--quiet"])
    made = f"rm -rf {shlex.quote(str(archive))} && {ours}"
    loop = f"printf '%s\\0' {shlex.quote(str(captures))}/*.pcapng | xargs -0 -n 1 -P \"$(nproc)\" {shlex.join(_CONVERSATIONS)}"

    def archived(_: Printed) -> str | None:
        reports_made = len(list(archive.rglob("*.html")))
        return None if reports_made >= len(files) else f"{reports_made} reports of {len(files)} captures"

    def all_told(printed: Printed) -> str | None:
        return None if printed.lines >= len(files) else "tshark says less than a line of each capture"

    return [
        Command(BATCH_TABLES, BATCH, ("sh", "-c", made), len(files), len(files), archived),
        Command(TSHARK_LOOP, BATCH, ("sh", "-c", loop), len(files), len(files), all_told),
    ]


def _conversations(printed: Printed) -> str | None:
    return None if "TCP Conversations" in printed.head else "no conversations"
