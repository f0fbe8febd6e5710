"""Writes the man page from the texts of `--help`: `python -m tcptrace_lab.cli.man > tcptrace-lab.1`."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import typer

from tcptrace_lab.cli.guide import GUIDES
from tcptrace_lab.cli.parameters import adapt
from tcptrace_lab.cli.program import app
from tcptrace_lab.cli.terminal import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_STATUS = (
    ("0", "Done."),
    ("1", "A finding at or above --fail-on, or another condition of that option; for verify: unexplained differences."),
    ("2", "Wrong usage, or a result cannot be written."),
    ("3", "Not a capture, or unreadable."),
    ("4", "Partly read: stderr shows where reading stopped; the results cover the part before that point."),
    ("5", "A required tool or permission is missing."),
    ("70", "Internal error in tcptrace-lab."),
    ("130", "Interrupted."),
)

ENVIRONMENT = (
    ("NO_COLOR", "Any value: no colours."),
    ("COLUMNS", "Width of tables on a terminal; without a terminal, 80 columns."),
    ("TMPDIR", "Folder for data that does not fit into memory."),
)

_COMMENT = re.compile(r"^([.'])", re.MULTILINE)


def page() -> str:
    """Return the page as roff with the macros of man(7)."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    root: Any = typer.main.get_command(app())
    adapt(root)
    yield f'.TH {PROGRAM.upper()} 1 "" "{PROGRAM} {version(PROGRAM)}" "User Commands"'
    yield ".SH NAME"
    yield f"{_text(PROGRAM)} \\- find out why a TCP transfer is slow, and what to change"
    yield ".SH SYNOPSIS"
    for name, command in _commands(root):
        yield f".B {_text(PROGRAM)} {_text(name)}"
        yield _text(" ".join(command.collect_usage_pieces(_context(command, name))))
        yield ".br"
    yield ".SH DESCRIPTION"
    yield _text(root.help)
    yield (
        "The answer goes to standard output, unless an option such as \\-\\-json \\- writes there; progress and notes go to standard error."
    )
    yield ".SH OPTIONS"
    yield from _options(root, "")
    yield ".SH COMMANDS"
    for name, command in _commands(root):
        yield f".SS {_text(name)}"
        yield from _paragraphs(command.help or "")
        yield from _options(command, name)
        yield from _examples(name)
    yield ".SH EXIT STATUS"
    for code, words in EXIT_STATUS:
        yield from _term(code, words)
    yield ".SH ENVIRONMENT"
    for name, words in ENVIRONMENT:
        yield from _term(name, words)
    yield ".SH SEE ALSO"
    yield ".BR tcpdump (8),\n.BR dumpcap (1),\n.BR tshark (1),\n.BR tcptrace (1)"


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  (Typer's own classes)
    """Yield the full name (such as `lab run`) and the object of each command, in the order of the help."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def _context(command: Any, name: str) -> Any:  # noqa: ANN401
    return command.make_context(f"{PROGRAM} {name}".strip(), [], resilient_parsing=True)


def _options(command: Any, name: str) -> Iterator[str]:  # noqa: ANN401
    """Yield each argument and option with its help text."""
    context = _context(command, name)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            term, words = record
            yield from _term(term, words)


def _term(term: str, words: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {_text(term)}"
    yield _text(words)


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.split()))


def _examples(name: str) -> Iterator[str]:
    guide = GUIDES.get(name)
    for command, words in guide.examples if guide else ():
        yield ".PP"
        yield f"Example: {_text(words)}"
        yield ".EX"
        yield _text(f"  {command}")
        yield ".EE"


def _text(words: str) -> str:
    """Escape `words` for roff: backslashes, hyphens (so that they can be copied), and dots at the start of a line."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    return _COMMENT.sub(r"\\&\1", escaped)


if __name__ == "__main__":
    sys.stdout.write(page())
