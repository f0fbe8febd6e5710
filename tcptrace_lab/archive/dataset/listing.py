"""`archive list` prints one line for each capture of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.archive.dataset import query
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator


def lines(root: str, state: str | None) -> Iterator[str]:
    """Yield one line per capture, sorted by start time, then one line with the totals of all captures.

    Args:
        root: the archive.
        state: if not None, list only captures in this state (`schema.CAPTURE_STATES`).

    Raises:
        UsageError: not an archive.
    """
    with query.opened(root) as tables:
        captures = tables["captures"].sort("first_ts_ns", "path", nulls_last=True).collect()
    shown = captures if state is None else captures.filter(pl.col("state") == state)
    for row in shown.iter_rows(named=True):
        begins = "no time" if row["first_ts_ns"] is None else numbers.utc(row["first_ts_ns"])[:19]
        if row["state"] in {"failed", "lost"}:
            status = f"{row['state']}: {row['reason']}"
        else:
            worst = row["worst_severity"] or "nothing found"
            lost = numbers.duration(row["fixable_ns"])
            status = f"{numbers.counted(row['connections'], 'connection')}, {lost} lost, {worst}" + (
                "" if row["state"] == "whole" else ", read in part"
            )
        yield f"{row['capture']}  {begins:19}  {row['path']}: {status}"
    counts = ", ".join(f"{count:,} {name}" for name, count in sorted(captures.group_by("state").len().iter_rows()))
    yield f"{numbers.counted(captures.height, 'capture')}: {counts or 'none'}; {numbers.size(int(captures['file_bytes'].sum()))}"
