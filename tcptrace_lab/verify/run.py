"""`verify`: analyzes one capture with our engine and with other tools, then compares the results."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from tcptrace_lab.engine.segments import read
from tcptrace_lab.verify import analyzers, tcptrace, tshark
from tcptrace_lab.verify.checksums import Checksums
from tcptrace_lab.verify.connections import Connections
from tcptrace_lab.verify.differences import Account
from tcptrace_lab.verify.figures import FigureComparison
from tcptrace_lab.verify.our_verdicts import COLUMNS
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
"""The tools whose results `verify` compares with ours."""


@dataclass(slots=True)
class Verification:
    """The result of `verify`.

    Attributes:
        path: the capture.
        tools: the tools that were compared.
        account: counts and differences.
        refused: tool → why it did not read the whole file. Tools that read the whole file are not in this mapping.
        problems: problems that our engine found while it read the capture.
        loss: the part of the capture that we could not use, if there is one.
        checksums: the TCP checksums that tshark verified.
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
        """Number of differences that no rule explains."""
        return self.account.unexplained


def verify(
    path: str | os.PathLike[str],
    tools: Sequence[str] = TOOLS,
    *,
    progress: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
    theirs: Iterator[pl.DataFrame] | None = None,
) -> Verification:
    """Compare our tables of the capture `path` with the results of `tools`.

    The engine's tables take as much memory as for `read`. The comparison adds a few batches of rows, and about 1 kB for each followed
    connection (at most `bounded_state.MAX_FOLLOWED`).

    Args:
        path: the capture. It must be a regular file, because it is read several times.
        tools: names in `TOOLS`.
        progress: called with the number of segments compared so far.
        say: called with a message if another program has to convert the file's format.
        theirs: tshark's segments (`tshark.segments`), if they are already available.

    Raises:
        MissingTool: a tool is not installed. This is checked before anything is read.
        CaptureUnreadable: as for `read`.
    """
    name = os.fspath(path)
    for tool in tools:
        if tool != "tshark" or theirs is None:
            analyzers.found(tool)
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
                done.refused["tcptrace"] = f"it lists more than {len(listed):,} connections; the others are not compared"
                return
            listed.append(one)
    except analyzers.Refused as refusal:
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
    except analyzers.Refused as refusal:
        done.refused[refusal.program] = refusal.words


def _batches(tables: Tables) -> Iterator[pl.DataFrame]:
    """Yield our segments in batches. The first batch is empty; it only defines the columns."""
    wanted = tables.segments.select(COLUMNS)
    return chain([wanted.collect_schema().to_frame()], wanted.collect_batches(maintain_order=True))
