"""`tcptrace-lab batch`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.commands.analyze import SeverityName
from tcptrace_lab.cli.options import Anonymize, AnonymizeKey, Debug, Quiet, anonymizer
from tcptrace_lab.cli.terminal import say
from tcptrace_lab.errors import EXIT_DONE, EXIT_FINDING, EXIT_READ_IN_PART, EXIT_UNREADABLE, UsageError
from tcptrace_lab.process import output
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable
from tcptrace_lab.text.quantities import size_bytes

if TYPE_CHECKING:
    from tcptrace_lab.archive.run import Batch

WORST = 5
"""Maximum number of captures that are listed at the end. The captures that lost the most time are chosen. The index lists all captures."""

TOLD = 10
"""Maximum number of failed captures that are printed to stderr. The tables list all failed captures."""

Sources = Annotated[
    list[str], typer.Argument(metavar="DIR|FILE|GLOB|URL", help="Captures to analyze; rotated files are joined.", show_default=False)
]
Output = Annotated[str, typer.Option("-o", "--output", metavar="ARCHIVE", help="Archive: a folder or a URL.", show_default=False)]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=0, metavar="N", help="Number of worker processes; 0: one per processor.")]
Memory = Annotated[
    str, typer.Option("--memory", metavar="SIZE", help="Memory limit of a worker; beyond it, the worker is killed and its capture fails.")
]
Scheduler = Annotated[str | None, typer.Option("--scheduler", metavar="tcp://…", help="Run the workers on this Dask cluster.")]
NoReports = Annotated[bool, typer.Option("--no-reports", help="Write only tables and index.")]
Separate = Annotated[bool, typer.Option("--separate", help="Analyze the files of a rotated set as separate captures.")]
Baseline = Annotated[str | None, typer.Option("--baseline", metavar="ARCHIVE", help="List what became slower since this other archive.")]
FailOn = Annotated[
    SeverityName | None,
    typer.Option(
        "--fail-on",
        help="Exit with 1 if a finding has at least this severity. With --baseline, only slower transfers count: "
        "25% slower is medium, twice as slow is high.",
    ),
]
Watch = Annotated[
    bool, typer.Option("--watch", help="After the last capture, wait for new files until Ctrl-C, and analyze each when it is closed.")
]
Until = Annotated[
    int, typer.Option("--stop-after", min=0, metavar="N", help="With --watch: stop after this many captures.", show_default=False)
]


def batch(
    sources: Sources,
    archive: Output,
    jobs: Jobs = 0,
    memory: Memory = "2G",
    scheduler: Scheduler = None,
    no_reports: NoReports = False,
    separate: Separate = False,
    baseline: Baseline = None,
    fail_on: FailOn = None,
    watch: Watch = False,
    stop_after: Until = 0,
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Analyze thousands of captures into an archive: one report per capture, tables of all captures, and an index.

    Captures that are already in the archive are not analyzed again: after an interruption, repeat the command to analyze the remaining
    captures. A capture that cannot be read is listed with the reason; the other captures are analyzed. With --anonymize, file names become
    pseudonyms as well; to add captures later, use --anonymize-key.
    """
    if archive == output.STDOUT or output.STDOUT in sources:
        raise UsageError("an archive cannot be written to standard output or read from standard input", remedy="name a folder with -o")
    if stop_after and not watch:
        raise UsageError("--stop-after needs --watch")
    memory_bytes, hidden = size_bytes(memory), anonymizer(anonymize_key, wanted=anonymize)
    from tcptrace_lab.cli.batch_progress import shown  # noqa: PLC0415  (Rich)

    with shown(quiet=quiet) as progress:
        from tcptrace_lab.archive import ring_buffer, run  # noqa: PLC0415

        means = run.Means(jobs or None, scheduler, memory_bytes)
        analyze = partial(ring_buffer.watch, stop_after=stop_after) if watch else run.batch
        done = analyze(
            sources,
            archive,
            means=means,
            apart=separate,
            baseline=baseline,
            reports=not no_reports,
            anonymizer=hidden,
            watcher=progress,
        )
    if not quiet:
        _tell(done)
    return _exit_code(done, fail_on)


def _tell(done: Batch) -> None:
    """Print a summary of the run."""
    states = done.states
    words = [f"{states[state]:,} {name}" for state, name in _STATES.items() if states.get(state)]
    captures = f"{len(done.named):,} capture{'' if len(done.named) == 1 else 's'}"
    say(f"{captures}: {', '.join(words) or 'none'}; {done.made:,} analyzed now, {done.kept:,} already analyzed")
    if done.others:
        say(f"{done.others:,} other file{'' if done.others == 1 else 's'} skipped")
    bad = [(row["path"], row["reason"]) for row in done.captures.iter_rows(named=True) if row["state"] in {"failed", "lost"}]
    bad += list(done.unreadable.items())
    for path, reason in bad[:TOLD]:
        say(f"failed: {path}: {reason}")
    if len(bad) > TOLD:
        say(f"{len(bad) - TOLD:,} more failed: see archive list --state failed, or the index")
    if done.comparison is not None:
        for change in done.comparison.changes[:TOLD]:
            say(f"slower: {change.words}")
        say(done.comparison.words)
    say(f"index written: {done.root.rstrip('/')}/index.html")
    _tell_worst(done)


def _tell_worst(done: Batch) -> None:
    """Print to stdout the captures of this run that lost the most time to fixable causes."""
    mine = done.captures.filter(done.captures["capture"].is_in(list(done.named)) & (done.captures["fixable_ns"] > 0))
    if mine.is_empty():
        return
    from tcptrace_lab.cli.console import console, paragraph  # noqa: PLC0415  (Rich)

    out = console()
    worst = mine.sort("fixable_ns", "path", descending=[True, False]).head(WORST)
    paragraph(out, f"most time lost to fixable causes, {worst.height} of {numbers.counted(mine.height, 'capture')}:")
    for row in worst.iter_rows(named=True):
        lost = f"{numbers.duration(row['fixable_ns'])} of {numbers.duration(row['active_ns'])}"
        out.out(f"{lost}  {printable(row['path'])}")  # a line without breaks, so that the path can be copied
        paragraph(out, printable(row["verdict"]), "  ")


_STATES = {"whole": "whole", "part": "in part", "failed": "failed", "lost": "lost"}


def _exit_code(done: Batch, fail_on: SeverityName | None) -> int:
    from tcptrace_lab.findings.finding import Severity  # noqa: PLC0415

    if fail_on is not None and done.worst is not None and done.worst >= Severity.named(fail_on):
        return EXIT_FINDING
    if done.complete:
        return EXIT_DONE
    return EXIT_READ_IN_PART if done.states.get("whole") or done.states.get("part") else EXIT_UNREADABLE
