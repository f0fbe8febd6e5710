"""Tests of the help, the shell completion, the man page and the progress display of the command."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tcptrace_lab.cli import guide, man, terminal
from tcptrace_lab.cli.program import app
from tests.support import needs, packets, transfer
from tests.support.command import PROGRAM, TIME_LIMIT_S, new_process
from tests.support.terminals import on_terminal

COLUMNS = 80
SHARE = Path("docs/wheel/data/share")
MAN_PAGE = SHARE / "man/man1/tcptrace-lab.1"
COMPLETIONS = {
    "bash": SHARE / "bash-completion/completions/tcptrace-lab",
    "fish": SHARE / "fish/vendor_completions.d/tcptrace-lab.fish",
    "zsh": SHARE / "zsh/site-functions/_tcptrace-lab",
}
"""Maps each shell to the completion file that the wheel installs for it."""

COMMANDS = dict(guide.commands(app()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_line_and_examples_that_fit(name: str) -> None:
    reported = guide.GUIDES[name]
    assert reported.examples
    assert len(reported.short) <= COLUMNS - len("  annotate  ")
    for command, _ in reported.examples:
        assert "tcptrace-lab" in command
        assert max(map(len, command.splitlines())) <= guide.WIDTH
    shown = new_process(*name.split(), "--help").stdout.decode()
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert all(" ".join(line.split()) in lines for command, _ in reported.examples for line in command.splitlines())
    assert max(map(len, shown.splitlines())) <= COLUMNS
    assert not re.findall(r" <\w|list\[|\{", shown), "types and brackets of Typer"


def test_options_in_examples_are_options_of_the_command() -> None:
    for name, reported in guide.GUIDES.items():
        if name not in COMMANDS:
            continue
        shown = new_process(*name.split(), "--help").stdout.decode()
        own = [part for command, _ in reported.examples for part in command.split("|") if f"tcptrace-lab {name}" in part]
        options = {word.strip('"') for part in own for word in part.split("&&")[0].split() if word.startswith("--")}
        assert all(option in shown for option in options), (name, options)


def completed(line: str, shell: str = "bash") -> list[str]:
    """Return the completions of `line` that the shell receives."""
    words = line.split(" ")
    asked = {
        "bash": {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    environment = {**os.environ, **asked, "_TCPTRACE_LAB_COMPLETE": f"complete_{shell}"}
    done = subprocess.run([PROGRAM], env=environment, capture_output=True, timeout=TIME_LIMIT_S, check=True)
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


def test_commands_options_and_values_are_completed() -> None:
    assert completed("tcptrace-lab ana") == ["analyze"]
    assert completed("tcptrace-lab analyze --mark") == ["--markdown"]
    assert completed("tcptrace-lab analyze --fail-on ") == ["high", "medium", "low", "info"]
    assert "analyze" in "\n".join(completed("tcptrace-lab ana", "zsh"))
    assert completed("tcptrace-lab ana", "fish")[0].split("\t")[0] == "analyze"


ASKED = {
    "bash": 'source {file}; COMP_WORDS=(tcptrace-lab ver); COMP_CWORD=1; _tcptrace_lab_completion tcptrace-lab; echo "${{COMPREPLY[@]}}"',
    "fish": "source {file}; complete -C 'tcptrace-lab ver'",
    "zsh": """compdef() {{ }}; _arguments() {{ print -r -- "$@" }}
              words=(tcptrace-lab ver); CURRENT=2; fpath=({folder} $fpath); autoload -Uz {name}; {name}""",
}
"""Maps each shell to a script that prints the completions of `tcptrace-lab ver` at the first Tab."""

OFFERED = {
    "bash": "verify",
    "fish": "verify Check results against tshark and tcptrace.",
    "zsh": '*: :(("verify":"Check results against tshark and tcptrace."))',
}


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_the_shell_completes_with_the_file_that_the_wheel_installs(shell: str) -> None:
    path = COMPLETIONS[shell].absolute()
    script = ASKED[shell].format(file=path, folder=path.parent, name=path.name)
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    done = subprocess.run([needs.program(shell), "-c", script], env=environment, capture_output=True, timeout=TIME_LIMIT_S, check=True)
    assert (" ".join(done.stdout.decode().split()), done.stderr) == (OFFERED[shell], b"")


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_the_completions_are_those_that_the_program_prints(shell: str) -> None:
    """`make completions` renews the completion scripts.

    In the script for zsh, the last line calls the function that the script defines.
    """
    call = {"zsh": '_tcptrace_lab_completion "$@"\n'}.get(shell, "")
    assert COMPLETIONS[shell].read_text() == new_process("--show-completion", shell).stdout.decode() + call


def test_the_man_page_is_that_of_the_help() -> None:
    """`make man` renews the man page."""
    assert MAN_PAGE.read_text(encoding="utf-8") == man.page()


def test_the_man_page_is_clean_and_names_every_command() -> None:
    done = subprocess.run(
        [needs.program("groff"), "-man", "-ww", "-Kutf8", "-Tutf8", MAN_PAGE],
        capture_output=True,
        timeout=TIME_LIMIT_S,
        env={**os.environ, "GROFF_NO_SGR": "1"},
        check=True,
    )
    assert done.stderr == b""
    overstruck = done.stdout.decode()
    plain = "".join(letter for place, letter in enumerate(overstruck) if overstruck[place + 1 : place + 2] != "\b" and letter != "\b")
    assert all(f"tcptrace-lab {name}" in " ".join(plain.split()) for name in COMMANDS)


def test_pace_and_time_left_are_reported_after_a_second() -> None:
    """In 2 s, 2,000,000 of 8,000,000 segments are read. The pace is one million per second, and 6 s remain."""
    seconds = iter([0.0, 0.0, 2.0, 2.0, 2.0])
    shown = terminal.Activity("reading", clock=lambda: next(seconds))
    shown.segments(2_000_000, 0.25)
    assert shown.text == "2,000,000 segments read, 25%, 1 M/s, 6 s left"


def test_the_file_is_named_where_there_are_several_and_its_name_cut() -> None:
    shown = terminal.Activity("reading")
    shown.next_file("a-very-long-name-of-a-capture.pcap")
    shown.segments(1, None)
    assert shown.text == "a-very-long-n…: 1 segments read"


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_on_a_poor_terminal_nothing_is_coloured_or_moved(tmp_path: Path, environment: dict[str, str]) -> None:
    path = packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    code, shown = on_terminal(["analyze", path.name], tmp_path, environment)
    assert code == 0
    colours = [part for part in shown.split("\x1b[")[1:] if any(part.startswith(f"{number}m") for number in range(30, 48))]
    assert not colours
    if environment.get("TERM") == "dumb":
        assert "\x1b" not in shown
