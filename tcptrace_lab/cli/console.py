"""Prints answers for people to stdout: as wide as the terminal, or in 80 columns if stdout is not a terminal."""

from __future__ import annotations

import io
import sys
import textwrap
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.style import Style

FALLBACK_WIDTH = 80
"""Width of the output if stdout is not a terminal."""

MAX_TEXT_WIDTH = 120
"""Maximum width of lines of text. Longer lines are hard to read."""


def console(*, beside_result: bool = False) -> Console:
    """Return a Rich console, which honours NO_COLOR, COLUMNS and TERM=dumb. A character that its stream cannot encode becomes `?`.

    Args:
        beside_result: write to stderr, because stdout receives another result.
    """
    stream = sys.stderr if beside_result else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return Console(file=stream, highlight=False, width=None if stream.isatty() else FALLBACK_WIDTH)


def plain_table() -> Table:
    """Return a table without borders, with one blank between its columns."""
    return Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, collapse_padding=True)


def paragraph(out: Console, words: str, head: str = "", *, style: str | Style = "", head_style: str | Style = "") -> None:
    """Print `words` after `head` in lines of at most `MAX_TEXT_WIDTH`. Further lines are indented by the length of `head`."""
    width = min(out.width, MAX_TEXT_WIDTH) - len(head)
    for line in textwrap.wrap(words, max(width, 1), break_on_hyphens=False) or [""]:
        out.print(Text.assemble((head, head_style), (line, style)), soft_wrap=True)
        head = " " * len(head)
