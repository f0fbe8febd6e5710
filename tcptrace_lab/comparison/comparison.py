"""Defines `compare`, which runs all steps from captures to a `Comparison`."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcptrace_lab.analysis import Analysis, analyze
from tcptrace_lab.comparison import significance
from tcptrace_lab.comparison.document import document
from tcptrace_lab.comparison.findings import Kind, kinds
from tcptrace_lab.comparison.match import Lane, Unmatched, match
from tcptrace_lab.comparison.run import Run, of_analysis
from tcptrace_lab.comparison.texts import figure_name, letter, service_name
from tcptrace_lab.engine import memory
from tcptrace_lab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcptrace_lab.engine.reread import Progress

Capture = str | os.PathLike[str] | Analysis
Group = Capture | Iterable[Capture]

MAX_GROUPS = 26
"""Maximum number of groups. Their names are the letters A to Z."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of `compare`: groups of captures, each compared with the first group.

    Attributes:
        groups: the captures of each group.
        lanes: the services that all groups have, those with most payload first.
        figures: compared figures of each service, in the order of `lanes`.
        ledger: compared causes of each service, in the order of `lanes`.
        unmatched: services that some group lacks.
        findings: kinds of findings, the worst first.
    """

    groups: tuple[tuple[Run, ...], ...]
    lanes: tuple[Lane, ...]
    figures: tuple[tuple[significance.Compared, ...], ...]
    ledger: tuple[tuple[significance.Compared, ...], ...]
    unmatched: tuple[Unmatched, ...]
    findings: tuple[Kind, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `compare --json` writes (`compare.schema.json`)."""
        return document(self)

    @property
    def tested(self) -> bool:
        """True if a significance test was possible for at least one figure."""
        return any(change.tested is not None for lane in self.figures for one in lane for change in one.changes)

    @property
    def regressions(self) -> tuple[str, ...]:
        """Return the names of figures that are significantly worse than in the first group.

        Example, for a group called B: `B port 443 throughput, client → server`.
        """
        return self._with_verdict({significance.Verdict.WORSE})

    @property
    def differences(self) -> tuple[str, ...]:
        """Return the names of figures that differ significantly from those of the first group, in the form of `regressions`."""
        return self._with_verdict({significance.Verdict.WORSE, significance.Verdict.BETTER})

    def _with_verdict(self, verdicts: set[significance.Verdict]) -> tuple[str, ...]:
        return tuple(
            f"{letter(group)} {service_name(lane)} {figure_name(one)}"
            for lane, figures in zip(self.lanes, self.figures, strict=True)
            for one in figures
            for group, change in enumerate(one.changes, start=1)
            if change.verdict in verdicts
        )


def compare(
    first: Group,
    *others: Group,
    where: str | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare each group of captures with the first group.

    Args:
        first: the reference: one capture, or several repetitions of an experiment. A capture is a path or an `Analysis`.
        others: the groups to compare with the reference. Without them, the result has the means and intervals of the first group.
        where: as for `analyze`; applied to every capture that is a path.
        progress: as for `read`.
        say: as for `read`.

    Raises:
        UsageError: a group is empty, there are more than `MAX_GROUPS`, or `where` is invalid.
        CaptureUnreadable: a capture cannot be read.
        MissingTool: as for `read`.
        OutputUnwritable: no space for temporary files.
    """
    listed = [_listed(group) for group in (first, *others)]
    if len(listed) > MAX_GROUPS:
        raise UsageError(f"{len(listed)} groups of captures", remedy=f"compare {MAX_GROUPS} at most")
    if not all(listed):
        raise UsageError("a group without captures", remedy="name at least one capture of each group")
    return of_runs([[_run(capture, where, progress, say) for capture in group] for group in listed])


def of_runs(groups: Sequence[Sequence[Run]]) -> Comparison:
    """Compare captures that are already reduced to `Run`s."""
    lanes, unmatched = match(groups)
    return Comparison(
        groups=tuple(map(tuple, groups)),
        lanes=lanes,
        figures=tuple(map(tuple, significance.figures(lanes))),
        ledger=tuple(map(tuple, significance.ledger(lanes))),
        unmatched=unmatched,
        findings=kinds(groups, lanes),
    )


def _listed(group: Group) -> list[Capture]:
    return [group] if isinstance(group, (str, os.PathLike, Analysis)) else list(group)


def _run(capture: Capture, where: str | None, progress: Progress | None, say: Callable[[str], None] | None) -> Run:
    """Analyze one capture, and reduce the analysis to a `Run`. The analysis is then released, so only one is in memory at a time."""
    if isinstance(capture, Analysis):
        return of_analysis(capture)
    run = of_analysis(analyze(capture, where=where, progress=progress, say=say))
    gc.collect()  # an analysis has reference cycles
    memory.give_back()
    return run
