"""Commands in the docs name options, files and targets that exist.

The tests run each command, unless it needs root, a network or a cluster.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest
from typer.main import get_command

from tcptrace_lab.cli.program import app
from tests.support.command import tcptrace_lab
from tests.support.places import CAPTURES, ROOT

PAGES = ["README.md", "CONTRIBUTING.md", "docs", "captures/README.md", "benchmarks/README.md"]

NOT_RUN = {
    "sudo": "needs root; tests marked live run it",
    "tcptrace-lab capture ": "needs root and an interface; tests/lab/test_live_capture.py runs it",
    "replay transfer": "needs private networks; tests/replay/test_transfer.py runs it",
    "s3://": "needs a store and a cluster; tests/archive/test_cluster.py runs it",
    "--watch": "runs until Ctrl-C; tests/archive/test_watch.py runs it",
    "tcptrace-lab view ": "serves until Ctrl-C; tests/view and tests/browser run it",
    "lab run": "needs root; tests/lab runs it",
}
"""Parts of commands, each with a reason. A command with such a part is parsed, but the tests do not run it."""

MADE_ELSEWHERE = {"docs/findings.md"}
"""Generated pages. `make docs` has already run their commands (`docs/pages.py`)."""

EXIT_CODES = {"--fail-on": {0, 1}, "--baseline": {0, 1}, "verify": {0, 5}}
"""The allowed exit codes of commands that contain these words.

All other commands must exit with 0. `verify` exits with 5 if tshark is not installed.
"""

SHELL_SIGNS = set("*?[|&;<>$`(){}~\\")
FILES = {
    "slow.pcap": "ethernet-nagle-on",
    "slow.pcapng": "ethernet-nagle-on",
    "web.pcap": "ethernet-nagle-on",
    "before.pcap": "ethernet-nagle-on",
    "before-1.pcap": "ethernet-nagle-on",
    "old-1.pcap": "ethernet-nagle-on",
    "after.pcap": "ethernet-nagle-off",
    "after-1.pcap": "ethernet-nagle-off",
    "new-1.pcap": "ethernet-nagle-off",
    "client.pcap": "ethernet-nagle-on",
    "at-client.pcap": "ethernet-nagle-on",
    "server.pcap": "ethernet-nagle-on-at-server",
    "at-server.pcap": "ethernet-nagle-on-at-server",
}
"""Maps a file that an example names to the capture in `captures/` that the test uses."""


class Line(NamedTuple):
    """One command.

    Attributes:
        page: page, relative to the repository.
        text: the command without its comment.
    """

    page: str
    text: str


def pages() -> list[Path]:
    paths = [ROOT / page for page in PAGES]
    return [file for path in paths for file in (sorted(path.rglob("*.md")) if path.is_dir() else [path])]


def without_comment(line: str) -> str:
    return re.sub(r"\s+#\s.*$", "", line)


def lines() -> list[Line]:
    """Return the indented commands of the pages, and the commands in the README's table.

    A quoted text can continue on the following lines.
    """
    found = []
    for path in pages():
        page, open_line = path.relative_to(ROOT).as_posix(), ""
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for line in text.splitlines():
            if not (line.startswith("    ") and (open_line or re.search(r"\b(tcptrace-lab|python|make) ", line))):
                continue
            open_line = without_comment(f"{open_line} {line.strip()}".strip())
            if open_line.count('"') % 2 == 0 and open_line.count("'") % 2 == 0 and not open_line.endswith("\\"):
                found += [Line(page, open_line)]
                open_line = ""
    table = re.findall(r"^\| [^|]+ \| `([^`|]+)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    return found + [Line("README.md", f"tcptrace-lab {command}") for command in table]


def ours(line: Line) -> list[list[str]]:
    words = shlex.shlex(line.text, posix=True, punctuation_chars="();<>|&")
    words.whitespace_split = True
    words.commenters = ""
    calls: list[list[str]] = []
    inside = False
    for word in words:
        if set(word) <= set("();<>|&"):
            inside = False
        elif not inside and PurePosixPath(word).name == "tcptrace-lab":
            inside = True
            calls.append([])
        elif inside:
            calls[-1].append(word)
    return calls


COMMANDS = [line for line in lines() if ours(line)]
SCRIPTS = [line for line in lines() if re.search(r"\bpython3? (-m tcptrace_lab|[\w/]+\.py)", line.text)]
TO_RUN = [
    line for line in COMMANDS if line.page not in MADE_ELSEWHERE and not any(part in line.text for part in [*NOT_RUN, "python3 -m venv"])
]


def test_the_docs_have_commands() -> None:
    assert len(COMMANDS) > 90
    assert len(SCRIPTS) > 15
    assert len(TO_RUN) > 40


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: f"{line.page}: {line.text[:60]}")
def test_options_and_arguments_are_accepted(line: Line) -> None:
    """The program parses each command, but does not run it."""
    for words in ours(line):
        command, name, rest = get_command(app()), "tcptrace-lab", words
        while commands := getattr(command, "commands", None):
            name, *rest = rest
            assert name in commands, name
            command = commands[name]
        command.make_context(name, rest)


@pytest.mark.parametrize("line", SCRIPTS, ids=lambda line: f"{line.page}: {line.text[:60]}")
def test_scripts_and_their_options_exist(line: Line) -> None:
    """An option exists if the script contains it as a string. The string can also be in another module of the script's folder."""
    match = re.search(r"\bpython3? (?:-m (tcptrace_lab[\w.]*)|([\w/]+\.py))(.*)", line.text)
    assert match
    module, script, arguments = match.groups()
    path = ROOT / (script or module.replace(".", "/"))
    if not script and not path.is_dir():
        path = path.with_suffix(".py")
    assert path.exists(), path
    sources = path.rglob("*.py") if path.is_dir() else path.parent.glob("*.py")
    text = "".join(source.read_text(encoding="utf-8") for source in sources)
    missing = [option for option in re.findall(r"(?<!\S)--?[a-z][\w-]*", arguments) if f'"{option}"' not in text]
    assert missing == []


def test_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8") + (ROOT / "rust/fuzz/fuzz.mk").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    named = {
        target for path in pages() for target in re.findall(r"(?:^    |`)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named - targets == set()


def test_paths_that_contributing_names_exist() -> None:
    """In CONTRIBUTING.md, a word in capitals stands for any name."""
    text = re.sub(
        r"```.*?```",
        "",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8") + (ROOT / "docs/architecture.md").read_text(encoding="utf-8"),
    )
    named = set(re.findall(r"`((?:rust|tcptrace_lab|tests|benchmarks|docs|captures|\.ci)/[\w./-]*)`", text))
    assert len(named) > 40
    assert {name for name in named if not (ROOT / name).exists() and not re.search(r"[A-Z]{4}", name)} == set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name, and an archive of two captures."""
    path = tmp_path_factory.mktemp("examples")
    for name, capture in FILES.items():
        shutil.copy(CAPTURES / f"{capture}.pcapng", path / name)
    (path / "captures").symlink_to(CAPTURES)
    (path / "all" / "today").mkdir(parents=True)
    for name in ("before.pcap", "after.pcap"):
        shutil.copy(path / name, path / "all" / "today" / name)
    for archive in ("archive", "yesterday"):
        assert _run(f"tcptrace-lab batch all -o {archive}", path).returncode == 0
    return path


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command.

    A command that needs a shell runs in bash. All other commands run in this process.
    """
    if command.startswith("tcptrace-lab ") and not SHELL_SIGNS & set(command):
        return tcptrace_lab(*shlex.split(command)[1:], folder=folder)
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-o", "pipefail", "-c", command]
    return subprocess.run(shell, cwd=folder, env={**os.environ, "PATH": search}, capture_output=True, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("line", {line.text: line for line in TO_RUN}.values(), ids=lambda line: f"{line.page}: {line.text[:60]}")
def test_commands_run_as_written(line: Line, folder: Path) -> None:
    command = line.text.replace("/captures", "all") if "batch /captures" in line.text else line.text
    done = _run(command, folder)
    allowed = next((codes for part, codes in EXIT_CODES.items() if part in command), {0})
    assert done.returncode in allowed, done.stderr.decode()
