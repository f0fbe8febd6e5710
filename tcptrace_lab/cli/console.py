"""Output for people: stderr, in the width of the terminal, or plain in 80 columns elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

FALLBACK_WIDTH = 80
"""Width if stderr is not a terminal."""


def console() -> Console:
    """A console of Rich for stderr. It honours NO_COLOR, COLUMNS and TERM=dumb."""
    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else FALLBACK_WIDTH)


def plain_table() -> Table:
    """A table without rules; columns are separated by one blank."""
    return Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, collapse_padding=True)
