"""A table of GitHub-flavoured Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the table, which ends with a newline. Cells are Markdown with escaped bars. Only the first column is left-aligned."""
    lines = [headings, ["---", *("---:" for _ in headings[1:])], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
