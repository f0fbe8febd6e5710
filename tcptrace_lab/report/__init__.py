"""The report of one analysis: `data(analysis)` → plain dictionary, `render(dictionary)` → one self-contained HTML page.

Read in this order: `shape` (the dictionary) · `data` (the page) · `table` · `udp` · `drawn` (a connection with its figures) · `choose`
(which connections have room) · `series` (segments → lines and marks, in one pass) · `thin` (which points are drawn) ·
`plots` (→ Plotly figures) · `numbers` (→ words) · `pack` and `render` (→ HTML).
"""

from __future__ import annotations

from tcptrace_lab.output import opened
from tcptrace_lab.report.data import data
from tcptrace_lab.report.render import render
from tcptrace_lab.report.shape import Analysed, ReportData

__all__ = ["Analysed", "ReportData", "data", "render", "write_report"]


def write_report(analysis: Analysed, path: str) -> None:
    """Write the report to `path`, whole or not at all.

    Raises:
        OutputUnwritable: no room, no rights.
    """
    page = render(data(analysis))
    with opened(path) as stream:
        stream.write(page.encode("utf-8"))
