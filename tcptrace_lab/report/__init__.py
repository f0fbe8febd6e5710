"""The report of one analysis: `data(analysis)` → plain dictionary, `render(dictionary)` → one self-contained HTML page.

Read in this order: `shape` (the dictionary) · `data` (the page) · `table` · `udp` · `pair` · `drawn` (a connection with its figures) ·
`choose` (which connections have room) · `tracked` and `series` (segments → lines and marks, in one pass) · `thin` (which points
are drawn) · `windows` and `zoom` (the place of a finding, with every segment) · `sizes` (messages by size) · `plots` (→ Plotly
figures) · `numbers` (→ words) · `pack` and `render` (→ HTML). `define` says what the words mean. `predicted` makes the
page of a prediction the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.process.output import opened
from tcptrace_lab.report.choose import ALONE, AMONG_MANY
from tcptrace_lab.report.data import data
from tcptrace_lab.report.render import render, shared_scripts

if TYPE_CHECKING:
    from tcptrace_lab.pair import Pair
    from tcptrace_lab.report.render import Scripts
    from tcptrace_lab.report.shape import Analysed

__all__ = ["AMONG_MANY", "data", "render", "shared_scripts", "write_report"]


def write_report(analysis: Analysed, path: str, pair: Pair | None = None, scripts: Scripts = "inline") -> None:
    """Write the report to `path`, whole or not at all; with a part about two captures if `analysis` is the first of a pair.

    With `scripts="shared"` it is one of many: its figures have fewer points, and the files of `shared_scripts` have to lie beside it.

    Raises:
        OutputUnwritable: no room, no rights.
    """
    page = render(data(analysis, pair, AMONG_MANY if scripts == "shared" else ALONE), scripts)
    with opened(path) as stream:
        stream.write(page.encode("utf-8"))
