"""The option `--pair` of `tcptrace-lab analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.errors import UsageError
from tcptrace_lab.process.output import STDOUT

if TYPE_CHECKING:
    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.cli.terminal import Activity
    from tcptrace_lab.pair import Pair

CAPTURES = 2


def check_two(files: list[str]) -> None:
    """Check that exactly two captures are given.

    Raises:
        UsageError: the number of captures is not two, or both are the same file.
    """
    if len(files) != CAPTURES:
        raise UsageError(f"--pair needs two captures, not {len(files)}", remedy="name one capture of each capture point")
    first, second = files
    same_file = STDOUT not in files and Path(first).exists() and Path(second).exists() and Path(first).samefile(second)
    if first == second or same_file:
        raise UsageError("both captures are the same file", where=first, remedy="name one capture of each capture point")


def compare(first: Analysis, second: Analysis, shown: Activity, where: str | None = None) -> Pair:
    """Compare the two captures with `pair.pair_captures`.

    Raises:
        UsageError: the captures have no common connection, or `where` selects no connection of the first capture.
    """
    from tcptrace_lab.pair import pair_captures  # noqa: PLC0415  (NumPy and Polars)

    if where is not None and first.connections.head(1).select("conn").collect().is_empty():
        raise UsageError("--where matches no connection of the first capture, so there is nothing to compare", where=where)
    shown.doing("matching packets")
    return pair_captures(first, second)
