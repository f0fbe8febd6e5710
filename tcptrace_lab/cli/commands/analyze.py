"""`tcptrace-lab analyze`."""

from __future__ import annotations

import shlex
import sys
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.commands.pair import check_two, compare
from tcptrace_lab.cli.options import Anonymize, AnonymizeKey, Debug, Files, Json, Markdown, Quiet, Where, anonymizer
from tcptrace_lab.cli.terminal import PROGRAM, activity, exit_code, say
from tcptrace_lab.engine import memory
from tcptrace_lab.errors import CaptureUnreadable, UsageError, place
from tcptrace_lab.process import output

if TYPE_CHECKING:
    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.cli.terminal import Activity
    from tcptrace_lab.pair import Pair

NOTES = 10
"""Maximum number of problems of the capture that are printed to stderr. The JSON lists all problems."""


class SeverityName(StrEnum):
    """Values of `--fail-on`."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


Report = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="REPORT.html", help="File for the report.", show_default="reports/<capture's name>.html"),
]
PairOption = Annotated[
    bool,
    typer.Option(
        "--pair",
        help="The two FILEs are captures of the same transfers at two capture points: show what the path between them did. "
        "Only findings in the first capture count for --fail-on.",
    ),
]
Multiqc = Annotated[
    str | None, typer.Option("--multiqc", metavar="FOLDER", help="Also write custom content for MultiQC into this folder (*_mqc.json).")
]
Connection = Annotated[int | None, typer.Option("--connection", metavar="N", min=0, help="Analyze only the connection with this number.")]
WhatIf = Annotated[
    bool,
    typer.Option(
        "--whatif", help="Compute the gain of each remedy with models of the TCP stacks, as replay whatif does; takes at most 30 s more."
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print all findings in full, and the behaviour of the endpoints.")]
Open = Annotated[bool, typer.Option("--open", help="Open the report in the browser.")]
FailOn = Annotated[
    SeverityName | None,
    typer.Option("--fail-on", help="Exit with 1 if a finding has at least this severity."),
]


def analyze(
    files: Files,
    report: Report = None,
    json_path: Json = None,
    markdown: Markdown = None,
    multiqc: Multiqc = None,
    connection: Connection = None,
    where: Where = None,
    pair: PairOption = False,
    whatif: WhatIf = False,
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    fail_on: FailOn = None,
    verbose: Verbose = False,
    open_report: Open = False,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Analyze the TCP connections of a capture: verdict, findings, a table, JSON, and a report with figures over time.

    Several FILEs are one capture, merged by time. With --pair, two FILEs are compared packet by packet; the answer, the JSON and the report
    then show loss, one-way delays and reordering. The answer goes to stdout, unless an option such as --json - writes there.
    """
    if pair:
        _check_pair(files, markdown, multiqc)
    _offer_batch(files)
    output.check_all({"-o": report, "--json": json_path, "--markdown": markdown}, files, ("-o",))
    if multiqc is not None:
        output.check_folder(multiqc)
    with activity("reading", quiet=quiet) as shown, memory.at_hand(files):
        from tcptrace_lab.analysis import analyze as analyze_paths  # noqa: PLC0415  (importing Polars takes 0.1 s, which `--help` saves)

        words = None if quiet else say
        named, hidden = files[:1] if pair else files, anonymizer(anonymize_key, wanted=anonymize)
        analysis = analyze_paths(named, connection=connection, where=where, anonymizer=hidden, progress=shown.segments, say=words)
        second = analyze_paths(files[1:], anonymizer=hidden, progress=shown.segments, say=words) if pair else None
        if whatif:
            analysis = _modelled(analysis, shown, quiet=quiet)
        between = compare(analysis, second, shown, where) if second else None
        if json_path is not None:
            shown.doing("writing the JSON")
            with output.opened(json_path) as stream:
                if between is None:
                    analysis.write_json(stream, shown.connections)
                else:
                    between.write_json(stream)
        _write_summaries(analysis, markdown, multiqc)
        shown.doing("writing the report")
        written = _write_report(analysis, report, between, files, anonymous=hidden is not None)
    if not quiet:
        if output.STDOUT not in {json_path, markdown}:
            _answer(analysis, between, verbose=verbose)
        _tell(analysis, written)
    if open_report:
        _open(written)
    if second is not None and second.loss is not None and analysis.loss is None:
        raise second.loss
    return _exit_code(analysis, fail_on)


def _check_pair(files: list[str], markdown: str | None, multiqc: str | None) -> None:
    check_two(files)
    if markdown is not None or multiqc is not None:
        raise UsageError("--markdown and --multiqc need exactly one capture", remedy="omit --pair, or use --json and -o")


def _offer_batch(files: list[str]) -> None:
    """Raise CaptureUnreadable if one of the files is a folder. The error names `batch` as the remedy."""
    for folder in files:
        if Path(folder).is_dir():
            remedy = f"tcptrace-lab batch {shlex.quote(folder)} -o archive analyzes every capture in it"
            raise CaptureUnreadable("a folder, not a capture", where=folder, remedy=remedy)


def _modelled(analysis: Analysis, shown: Activity, *, quiet: bool) -> Analysis:
    """Add the simulated gain to the findings, and print why some findings have none."""
    from tcptrace_lab.replay.gains import modelled  # noqa: PLC0415

    analysis, refused = modelled(analysis, doing=shown.doing)
    if not quiet:
        for words in refused:
            say(f"note: no simulated gain, so the upper bound is shown: {words}")
    return analysis


def _write_summaries(analysis: Analysis, markdown: str | None, multiqc: str | None) -> None:
    if markdown is not None:
        from tcptrace_lab.report import summary  # noqa: PLC0415

        with output.opened(markdown) as stream:
            stream.write(summary.text(analysis).encode())
    if multiqc is not None:
        from tcptrace_lab.report import multiqc as sections  # noqa: PLC0415

        output.make_folder(multiqc)
        sections.write(analysis, multiqc)


def _write_report(analysis: Analysis, report: str | None, between: Pair | None, files: list[str], *, anonymous: bool) -> str:
    from tcptrace_lab.report import write_report  # noqa: PLC0415  (the library for the figures is the slowest import)
    from tcptrace_lab.report.parts.provenance import lines  # noqa: PLC0415

    path = str(output.reports() / f"{analysis.name}.html") if report is None else report
    output.check(path, ())
    try:
        made = lines([PROGRAM, *sys.argv[1:]], files, datetime.now().astimezone(), anonymous=anonymous)
        write_report(analysis, path, between, provenance=made)
    except OSError as error:
        raise output.refused(error, path) from error
    return path


def _answer(analysis: Analysis, between: Pair | None, *, verbose: bool) -> None:
    """Print the answer to stdout."""
    from tcptrace_lab.cli.tables import answer  # noqa: PLC0415  (Rich and Polars)

    if between is None:
        answer.show(analysis, verbose=verbose)
    else:
        from tcptrace_lab.cli.tables import pair  # noqa: PLC0415  (NumPy)

        pair.show(between)
        answer.show_findings_of_first(analysis, verbose=verbose)
    sys.stdout.flush()  # shows the answer before the next line on stderr


def _open(report: str) -> None:
    """Open the report in the default browser, or in the browser that the environment variable BROWSER names."""
    import webbrowser  # noqa: PLC0415

    if not webbrowser.open(Path(report).absolute().as_uri()):
        say(f"note: no browser found; open it yourself: {report}")


def _tell(analysis: Analysis, report: str) -> None:
    """Print the problems of the capture and the path of the report to stderr."""
    lost = [problem for problem in analysis.problems if problem["loses_data"]]
    told_by_exit_line = lost if len(lost) == 1 and lost[0]["count"] == 1 else []  # the final error message names this problem
    problems = [problem for problem in analysis.problems if problem not in told_by_exit_line]
    for problem in problems[:NOTES]:
        times = f" ({problem['count']:,} times)" if problem["count"] > 1 else ""
        say(f"note: {problem['what']}{times}: {place(problem['path'], problem['frame'], problem['offset'])}")
    if len(problems) > NOTES:
        say(f"note: {len(problems) - NOTES} more kinds of problem are in --json")
    say(f"report written: {report}")


def _exit_code(analysis: Analysis, fail_on: SeverityName | None) -> int:
    """Return the exit code for `--fail-on`; see `exit_code`."""
    from tcptrace_lab.findings.finding import Severity  # noqa: PLC0415

    met = fail_on is not None and any(finding.severity >= Severity.named(fail_on) for finding in analysis.findings)
    return exit_code(analysis.loss, met=met)
