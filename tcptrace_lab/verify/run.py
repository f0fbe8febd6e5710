"""One capture through us and through other tools: the road from a file to a `Verification`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from tcptrace_lab.engine.segments import read
from tcptrace_lab.verify import programs, tcptrace, tshark
from tcptrace_lab.verify.checksums import Checksums
from tcptrace_lab.verify.connections import Connections
from tcptrace_lab.verify.differences import Account
from tcptrace_lab.verify.figures import FigureComparison
from tcptrace_lab.verify.ours import COLUMNS
from tcptrace_lab.verify.pairing import paired
from tcptrace_lab.verify.rules import FIGURES, SEGMENTS
from tcptrace_lab.verify.segments import SegmentComparison

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from tcptrace_lab._core import Problem
    from tcptrace_lab.engine.segments import Tables
    from tcptrace_lab.errors import ReadInPart
    from tcptrace_lab.verify.tcptrace import Listed

TOOLS = ("tshark", "tcptrace")
"""Programs that we are held against."""


@dataclass(slots=True)
class Verification:
    """What came of it.

    Attributes:
        path: the capture.
        tools: what it was held against.
        account: what was compared, and what differs.
        refused: tool → why it did not read the file, or not to its end; those that are not here did.
        problems: what our engine survived in reading the capture.
        loss: what of the capture we could not use, if anything.
        checksums: those that tshark reckoned.
    """

    path: str
    tools: tuple[str, ...]
    account: Account = field(default_factory=Account)
    refused: dict[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    loss: ReadInPart | None = None
    checksums: Checksums = field(default_factory=Checksums)

    @property
    def unexplained(self) -> int:
        """Differences that no rule explains."""
        return self.account.unexplained


def verify(
    path: str | os.PathLike[str],
    tools: Sequence[str] = TOOLS,
    *,
    progress: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
    theirs: Iterator[pl.DataFrame] | None = None,
) -> Verification:
    """Hold our tables of the capture `path` against those of `tools`.

    Memory: the engine's tables as for `read`, some batches of rows, and about a kilobyte for each of `following.MAX_FOLLOWED` connections.

    Args:
        path: the capture; a file, because it is read several times.
        tools: of `TOOLS`.
        progress: called now and then with the number of segments compared so far.
        say: is told in a line of a file that is read through another program, because of its format.
        theirs: tshark's segments (`tshark.segments`) if they are at hand.

    Raises:
        MissingTool: a tool is not installed; nothing was read.
        CaptureUnreadable: as for `read`.
    """
    name = os.fspath(path)
    for tool in tools:
        if tool != "tshark" or theirs is None:
            programs.found(tool)
    tables = read(name, say=say)
    done = Verification(name, tuple(tools), problems=tables.problems, loss=tables.loss)
    connections = Connections(tables.connections)
    if "tshark" in tools:
        _against_tshark(done, tables, connections, tshark.segments(name) if theirs is None else theirs, progress)
    if "tcptrace" in tools:
        _against_tcptrace(done, tables)
    return done


def _against_tcptrace(done: Verification, tables: Tables) -> None:
    listed: list[Listed] = []
    try:
        for one in tcptrace.connections(done.path):
            if len(listed) == tcptrace.MAX_CONNECTIONS:
                done.refused["tcptrace"] = f"it lists more than {len(listed):,} connections; those beyond are not compared"
                return
            listed.append(one)
    except programs.Refused as refusal:
        done.refused["tcptrace"] = refusal.words
        if not listed:
            return
    FigureComparison(done.account, FIGURES, tables).compare(listed, done.refused.get("tcptrace"))


def _against_tshark(
    done: Verification, tables: Tables, connections: Connections, theirs: Iterator[pl.DataFrame], progress: Callable[[int], None] | None
) -> None:
    comparison = SegmentComparison(done.account, SEGMENTS, connections, [problem["what"] for problem in tables.problems])
    compared = 0
    try:
        for both in paired(_batches(tables), theirs):
            comparison.take(both)
            done.checksums.take(both)
            compared += both.height
            if progress is not None:
                progress(compared)
    except programs.Refused as refusal:
        done.refused[refusal.program] = refusal.words


def _batches(tables: Tables) -> Iterator[pl.DataFrame]:
    """Our segments some at a time, behind an empty batch that has the columns, too."""
    wanted = tables.segments.select(COLUMNS)
    return chain([wanted.collect_schema().to_frame()], wanted.collect_batches(maintain_order=True))
