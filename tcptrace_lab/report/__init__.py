"""The HTML report of one analysis: `data(analysis)` returns a plain dictionary, `render(dictionary)` one self-contained HTML page.

Read in this order: `shape` (types of the dictionary) · `data` (builds it) · `table` (connection table) · `udp` · `pair` (two captures) ·
`drawn` (one connection with its figures) · `choose` (which connections get figures) · `tracked` and `series` (segments → lines and marks,
in one pass) · `thin` (reduces the points of a line) · `windows` and `zoom` (the surroundings of a finding, with every segment) · `sizes`
(messages by size) · `plots` (series → Plotly figures) · `pack` and `render` (→ HTML). `define` defines the report's terms. `compared` and
`predicted` build the pages of a comparison and of a prediction.
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
    """Write the report to `path`, completely or not at all. With `pair`, add the section on both captures.

    `scripts="shared"` is for one report of many: its figures have fewer points, and the files of `shared_scripts` must lie beside it.

    Raises:
        OutputUnwritable: the disk is full, or permission is denied.
    """
    page = render(data(analysis, pair, AMONG_MANY if scripts == "shared" else ALONE), scripts)
    with opened(path) as stream:
        stream.write(page.encode("utf-8"))
