"""`tcptrace-lab compare`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.options import Anonymize, AnonymizeKey, Debug, Json, Markdown, Quiet, Where, anonymizer
from tcptrace_lab.cli.terminal import activity, exit_code, say
from tcptrace_lab.errors import UsageError
from tcptrace_lab.process import output

if TYPE_CHECKING:
    from tcptrace_lab.cli.terminal import Activity
    from tcptrace_lab.comparison import Comparison
    from tcptrace_lab.comparison.run import Run
    from tcptrace_lab.connections.anonymizer import Anonymizer
    from tcptrace_lab.errors import ReadInPart

SEPARATOR = "vs"
"""Separator between groups of captures. A capture file with this name must be written as ./vs."""


class Failure(StrEnum):
    """Values of `--fail-on`."""

    REGRESSION = "regression"
    DIFFERENCE = "difference"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


Captures = Annotated[
    list[str],
    typer.Argument(metavar="A B [C…] | A… vs B… [vs C…]", help="Captures; vs separates groups of repetitions.", show_default=False),
]
Repetitions = Annotated[
    bool, typer.Option("--repetitions", help="Treat all captures as repetitions of one experiment: means and intervals, without tests.")
]
Page = Annotated[str | None, typer.Option("-o", "--output", metavar="REPORT.html", help="Write a report.", show_default=False)]
FailOn = Annotated[
    list[Failure] | None,
    typer.Option(
        "--fail-on",
        help="Exit with 1 if a figure is significantly worse than in A (regression) or significantly different "
        "(difference), or if there is "
        "a new finding of at least this severity. May be given several times.",
        show_default=False,
    ),
]


def compare(
    captures: Captures,
    repetitions: Repetitions = False,
    page: Page = None,
    json_path: Json = None,
    markdown: Markdown = None,
    where: Where = None,
    fail_on: FailOn = None,
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Compare captures before and after a change, or repetitions: what changed, by how much, and whether it is significant.

    Without vs, each capture is a separate group. Every group is compared with the first group: throughput, latency, time by cause, and new,
    resolved and remaining findings. Means have 95% confidence intervals (Student's t); differences are tested with Welch's t test.
    """
    groups = _groups(captures, repetitions=repetitions)
    output.check_all({"-o": page, "--json": json_path, "--markdown": markdown}, [path for group in groups for path in group], ("-o",))
    with activity("reading", quiet=quiet) as shown:
        hidden = anonymizer(anonymize_key, wanted=anonymize)
        comparison, loss = _compared(groups, where, hidden, shown, quiet=quiet)
        shown.doing("writing")
        _write(comparison, page, json_path, markdown)
    if not quiet and output.STDOUT not in {json_path, markdown}:
        from tcptrace_lab.cli.tables.comparison import show  # noqa: PLC0415  (Rich)

        show(comparison)
    if not quiet and page is not None:
        say(f"report written: {page}")
    return _exit_code(comparison, loss, fail_on or [], quiet=quiet)


def _groups(captures: list[str], *, repetitions: bool) -> list[list[str]]:
    """Return the groups between separators. Without a separator, each capture is a group, or all are one group (`repetitions`)."""
    if SEPARATOR not in captures:
        groups = [captures] if repetitions else [[path] for path in captures]
    elif repetitions:
        raise UsageError(f"--repetitions makes one group of all captures, {SEPARATOR} makes several", remedy="leave one of them out")
    else:
        groups = [[]]
        for path in captures:
            if path == SEPARATOR:
                groups.append([])
            else:
                groups[-1].append(path)
    if not all(groups):
        raise UsageError(f"no capture before or after {SEPARATOR}", remedy="give at least one before and after it")
    if len(captures) == 1:
        raise UsageError("compare needs at least two captures", where=captures[0], remedy="name another one")
    if captures.count(output.STDOUT) > 1:
        raise UsageError("standard input can be read only once", remedy="give the other captures as files")
    return groups


def _compared(
    groups: list[list[str]], where: str | None, hidden: Anonymizer | None, shown: Activity, *, quiet: bool
) -> tuple[Comparison, ReadInPart | None]:
    """Read the captures one after the other, and compare them.

    Return the comparison, and what is missing from the first capture that was read only in part. The second value is None if all captures
    were read completely.
    """
    from tcptrace_lab.analysis import analyze  # noqa: PLC0415  (importing Polars takes 0.1 s, which `--help` saves)
    from tcptrace_lab.comparison.comparison import MAX_GROUPS, of_runs  # noqa: PLC0415
    from tcptrace_lab.comparison.run import of_analysis  # noqa: PLC0415

    if len(groups) > MAX_GROUPS:
        raise UsageError(
            f"{len(groups)} groups of captures", remedy=f"compare {MAX_GROUPS} at most; {SEPARATOR} separates groups of repetitions"
        )
    loss = None
    runs: list[list[Run]] = []
    for group in groups:
        runs.append([])
        for path in group:
            shown.next_file(Path(path).name)
            analysis = analyze(path, where=where, anonymizer=hidden, progress=shown.segments, say=None if quiet else say)
            shown.doing("finding messages")
            runs[-1].append(of_analysis(analysis))
            loss = loss or analysis.loss
    return of_runs(runs), loss


def _write(comparison: Comparison, page: str | None, json_path: str | None, markdown: str | None) -> None:
    if json_path is not None:
        output.write_json(json_path, comparison.to_dict())
    if markdown is not None:
        from tcptrace_lab.comparison.markdown import text  # noqa: PLC0415

        with output.opened(markdown) as stream:
            stream.write(text(comparison).encode())
    if page is not None:
        from tcptrace_lab.comparison.page import write_page  # noqa: PLC0415

        write_page(comparison, page)


def _exit_code(comparison: Comparison, loss: ReadInPart | None, fail_on: list[Failure], *, quiet: bool) -> int:
    """Return the exit code for the conditions of `--fail-on` (see `terminal.exit_code`)."""
    from tcptrace_lab.comparison.findings import APPEARED  # noqa: PLC0415
    from tcptrace_lab.findings.finding import Severity  # noqa: PLC0415

    least = min((Severity.named(one) for one in fail_on if one not in {Failure.REGRESSION, Failure.DIFFERENCE}), default=None)
    appeared = [kind for kind in comparison.findings if APPEARED in kind.states]
    met = [
        *(comparison.regressions if Failure.REGRESSION in fail_on else ()),
        *(comparison.differences if Failure.DIFFERENCE in fail_on else ()),
        *(kind.id for kind in appeared if least is not None and kind.severity >= least),
    ]
    if not met and not quiet and {Failure.REGRESSION, Failure.DIFFERENCE} & set(fail_on) and not comparison.tested:
        say("note: --fail-on finds no significant change with one value per group; capture each case several times")
    return exit_code(loss, met=bool(met))
