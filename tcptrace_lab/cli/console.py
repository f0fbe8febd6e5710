"""Where tables and words for people go: stderr, as wide as it is on a terminal, 80 columns and plain elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

FALLBACK_WIDTH = 80
"""Columns where stderr is no terminal."""


def console() -> Console:
    """A console of Rich for stderr. It honours NO_COLOR, COLUMNS and TERM=dumb."""
    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else FALLBACK_WIDTH)


def plain_table() -> Table:
    """A table without lines, whose columns stand one blank apart."""
    return Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, collapse_padding=True)
