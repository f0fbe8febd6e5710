"""A program of the corpus: the commands of a server and its client, as text."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ELSEWHERE = ("/usr/sbin", "/usr/lib/postgresql/15/bin", "/usr/libexec")
"""Folders in which Debian installs servers, and that are possibly not in a user's PATH."""
PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), *ELSEWHERE))
PORT = 8_000
FILE = "file.bin"
_OF_THE_SHELL = frozenset({"for"})


@dataclass(frozen=True, slots=True)
class Program:
    """A server and a client.

    A shell runs the commands. The placeholders `{address}`, `{port}`, `{folder}`, `{file}`, `{python}` and `{here}` are filled in.

    Attributes:
        family: the software that sends. All programs of a family count as one source.
        server: command that listens at the address and port, in the foreground.
        client: command that works for one to five seconds. If it takes longer, it is stopped.
        packages: Debian packages with the needed programs.
        file_bytes: size of a file of random bytes, which server and client find at `{file}`.
        files: names and texts of further files in the folder.
        prepare: command that runs before the server starts, for example to make a database.
        before: command that runs on the server's host when the server listens, before the capture starts.
        needs: programs that the commands call, in addition to the first word of each command.
    """

    family: str
    server: str
    client: str
    packages: str = ""
    file_bytes: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    prepare: str = ""
    before: str = ""
    needs: tuple[str, ...] = ()

    def missing(self) -> tuple[str, ...]:
        """Return the programs that this entry needs and that are not installed."""
        words = (command.split()[0] for command in (self.server, self.client))
        wanted = dict.fromkeys(word for word in (*words, *self.needs) if word not in _OF_THE_SHELL and word[0] not in "{(")
        return tuple(name for name in wanted if shutil.which(name, path=PATH) is None)


def filled(text: str, folder: Path, address: str, port: int = PORT) -> str:
    """Fill in the placeholders of a command or of a file's text. Other braces stay."""
    words = {
        "address": address,
        "port": str(port),
        "folder": str(folder),
        "file": str(folder / FILE),
        "python": sys.executable,
        "here": str(Path(__file__).parent),
    }
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text
