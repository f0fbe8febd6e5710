"""Recordings of the terminal as text. `python -m tests.support.recordings` renews `tests/golden/terminal/`.

A recording has no colours and no erased progress lines. Its words, their order and the line breaks are compared. The commands read captures
of `captures/`.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.support.command import new_process
from tests.support.places import CAPTURES, ROOT
from tests.support.terminals import on_terminal

FOLDER = ROOT / "tests" / "golden" / "terminal"

_CONTROL = re.compile(r"\x1b\[[?\d;]*[A-Za-z]")
_SPINNER = re.compile(r"[\u2800-\u28ff] ")
_VOLATILE = ((re.compile(r"\d+(\.\d+)? (packets|captures)/s"), "N packets/s"), (re.compile(r"in \d+(\.\d+)? m?s\b"), "in N s"))


class Recording(NamedTuple):
    """A command, the width of its terminal (0 for a pipe), and whether NO_COLOR is set."""

    command: tuple[str, ...]
    columns: int = 0
    no_color: bool = False


_COMMANDS = {
    "alone": (),
    "analyze": ("analyze", "ethernet-nagle-on.pcapng"),
    "compare": ("compare", "ethernet-nagle-on.pcapng", "ethernet-nagle-off.pcapng"),
    "verify": ("verify", "ethernet-nagle-on.pcapng"),
    "batch": ("batch", "ethernet-nagle-on.pcapng", "ethernet-loss.pcapng", "-o", "out"),
}
RECORDINGS = {
    **{f"{name}-{columns}": Recording(command, columns) for name, command in _COMMANDS.items() for columns in (80, 120)},
    "analyze-80-no-color": Recording(_COMMANDS["analyze"], 80, no_color=True),
    **{f"piped-{name}": Recording(_COMMANDS[name]) for name in ("analyze", "compare")},
}


def shown(name: str, folder: Path) -> str:
    """Return the output of a recording's command.

    The command runs in an empty folder that links to the captures.
    """
    recording = RECORDINGS[name]
    for part in recording.command:
        if part.endswith(".pcapng"):
            (folder / part).symlink_to(CAPTURES / part)
    environment = {"NO_COLOR": "1"} if recording.no_color else {}
    if recording.columns:
        code, words = on_terminal(list(recording.command), folder, {"COLUMNS": str(recording.columns), **environment})
    else:
        done = new_process(*recording.command, folder=folder, environment=environment)
        code, words = done.returncode, done.stdout.decode()
    if recording.no_color and re.search(r"\x1b\[[\d;]*3\dm", words):
        raise AssertionError("a colour in spite of NO_COLOR")
    lines = [line.rpartition("\r")[2].rstrip() for line in _CONTROL.sub("", words).replace("\r\n", "\n").split("\n")]
    lines = [line for line in lines if not _SPINNER.match(line)]
    text = "\n".join([f"$ {' '.join(['tcptrace-lab', *recording.command])}", *lines, f"exit code {code}"]) + "\n"
    text = text.replace(str(folder), "FOLDER")
    for pattern, instead in _VOLATILE:
        text = pattern.sub(instead, text)
    return text


def main() -> None:
    """Make all recordings again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ.pop("NO_COLOR", None)
    for name in RECORDINGS:
        with tempfile.TemporaryDirectory() as folder:
            (FOLDER / f"{name}.txt").write_text(shown(name, Path(folder)))


if __name__ == "__main__":
    main()
