"""The HTML report of one analysis: `data(analysis)` returns a plain dictionary, `render(dictionary)` one self-contained HTML page.

Read in this order:

- `data_types`: the input of a report, and the dictionary that `data` returns;
- `data`: builds that dictionary; `selection`: chooses the connections that get figures; `largest`: finds the largest rows of a table;
- `parts/`: one module per part of the page, such as `lost_time`, `connection_table`, `connection_details` and `zoom`;
- `figures/`: `series` reads the segments in one pass (`collector`, `finding_windows`; `engine.figures` reduces them), `plots` makes Plotly
  figures;
- `render`: dictionary → HTML (`definitions`: the terms of a page, `pack`: compact figures, `template_cache`: compiled templates);
- other outputs: `summary` and `markdown_table` (Markdown), `multiqc` (files for it), `multiqc_plugin` and `multiqc_documents`, `notebook`,
  `experiment_page`, `prediction_page`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.process.output import opened
from tcptrace_lab.report.data import data
from tcptrace_lab.report.render import render, shared_scripts
from tcptrace_lab.report.selection import ALONE, AMONG_MANY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.pair import Pair
    from tcptrace_lab.report.data_types import Analysed
    from tcptrace_lab.report.render import Scripts

__all__ = ["AMONG_MANY", "data", "render", "shared_scripts", "write_report"]


def write_report(
    analysis: Analysed, path: str, pair: Pair | None = None, scripts: Scripts = "inline", provenance: Sequence[str] = ()
) -> None:
    """Write the report to `path`, completely or not at all. With `pair`, add the section on both captures.

    `scripts="shared"` is for one report of many: its figures have fewer points, and the files of `shared_scripts` must lie beside it.
    `provenance` has lines for the footer (`parts.provenance`).

    Raises:
        OutputUnwritable: the disk is full, or permission is denied.
    """
    page = render(data(analysis, pair, AMONG_MANY if scripts == "shared" else ALONE), scripts, provenance)
    with opened(path) as stream:
        stream.write(page.encode("utf-8"))
