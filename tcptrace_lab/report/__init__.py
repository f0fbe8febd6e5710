"""Makes the HTML report of one analysis: `data(analysis)` returns a plain dictionary, `render(dictionary)` one self-contained HTML page.

Read in this order:

- `data_types`: the input of a report, and the dictionary that `data` returns.
- `data`: builds that dictionary; `selection`: chooses the connections that get figures; `largest`: finds the largest rows of a table.
- `parts/`: one module per part of the page, such as `lost_time`, `connection_table`, `connection_details` and `zoom`.
- `figures/`: `series` reads the segments in one pass, for `collector` and `finding_windows`. `engine.figures` reduces the series, and
  `plots`
  makes Plotly figures.
- `render` makes HTML of the dictionary: `definitions` has the terms of a page, `pack` packs figures, `template_cache` stores compiled
  templates.
- Other outputs: `summary` and `markdown_table` write Markdown, and `multiqc` writes files for MultiQC. `multiqc_plugin` and
  `multiqc_documents` are a plugin for MultiQC. `notebook`, `experiment_page` and `prediction_page` are pages of their own.
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

    With `scripts="shared"`, for one of many reports, the figures have fewer points, and the report's folder must contain the files of
    `shared_scripts`. `provenance` contains lines for the page's footer (`parts.provenance`).

    Raises:
        OutputUnwritable: the disk is full, or permission is denied.
    """
    page = render(data(analysis, pair, AMONG_MANY if scripts == "shared" else ALONE), scripts, provenance)
    with opened(path) as stream:
        stream.write(page.encode("utf-8"))
